/*
kernel fold_sum_mul_sub_mul_sum (blocks 16; rows 32; reduce 16)
  arg0 f32 in 8192
  arg1 f32 in 16
  arg2 f32 out 8192
  arg3 f32 in 8192
  arg4 f32 out 8192
  arg5 f32 out 256
  arg6 f32 out 256
  v0 f32 = load arg0[i0*512 + f0*16 + r0]
  v1 f32 row = reduce sum v0
  v2 f32 row = const 0.0625
  v3 f32 row = mul v1, v2
  v4 f32 = sub v0, v3
  v5 f32 = mul v4, v4
  v6 f32 row = reduce sum v5
  v7 f32 row = mul v6, v2
  v8 f32 row = const 1e-05
  v9 f32 row = add v7, v8
  v10 f32 row = rsqrt v9
  v11 f32 = mul v4, v10
  v12 f32 = load arg1[r0]
  v13 f32 = mul v11, v12
  v14 f32 = neg v12
  v15 f32 = add v13, v14
  v16 f32 = load arg3[i0*512 + f0*16 + r0]
  v17 f32 = mul v16, v12
  v18 f32 = mul v17, v10
  v19 f32 = mul v17, v4
  v20 f32 row = reduce sum v19
  v21 f32 row = const -0.5
  v22 f32 row = mul v20, v21
  v23 f32 row = mul v10, v10
  v24 f32 row = mul v10, v23
  v25 f32 row = mul v22, v24
  v26 f32 row = mul v25, v2
  v27 f32 = mul v26, v4
  v28 f32 = add v18, v27
  v29 f32 = add v28, v27
  v30 f32 = neg v29
  v31 f32 row = reduce sum v30
  v32 f32 row = mul v31, v2
  v33 f32 = add v29, v32
  v34 f32 column = fold sum v16
  v35 f32 = mul v16, v11
  v36 f32 column = fold sum v35
  store arg2[i0*512 + f0*16 + r0] = v15
  store arg4[i0*512 + f0*16 + r0] = v33
  store arg5[i0*16 + r0] = v34
  store arg6[i0*16 + r0] = v36
*/
W_SHARED(fold_sum_mul_sub_mul_sum) {
    float f32[64];
};
W_NUMBERS(fold_sum_mul_sub_mul_sum) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at, arg6_at, fold34_at, fold36_at;
    int per, units, n_f0, n_r0, s0_i0, s0_f0, s1_i0;
    float c2, c8;
};
W_KERNEL W_ITEMS(64, 1, 1) void fold_sum_mul_sub_mul_sum(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL float *arg6_,
    W_GLOBAL float *fold34_,
    W_GLOBAL float *fold36_,
    const W_NUMBERS(fold_sum_mul_sub_mul_sum) of W_ALSO(fold_sum_mul_sub_mul_sum)) {
    W_MEMORY(fold_sum_mul_sub_mul_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    W_GLOBAL float *arg6 = arg6_ + of.arg6_at;
    W_GLOBAL float *fold34 = fold34_ + of.fold34_at;
    W_GLOBAL float *fold36 = fold36_ + of.fold36_at;
    const int per = of.per, units = of.units, n_f0 = of.n_f0, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_f0 = of.s0_f0, s1_i0 = of.s1_i0;
    const float c2 = of.c2, c8 = of.c8;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        for (int f0 = 0; f0 < n_f0; f0++) {
            const int fresh = f0 == 0;
            float t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 2048) {
                float p1 = 0.0f;
                const int end = min(tile + 2048, n_r0);
                for (int r0 = tile + lane; r0 < end; r0 += 64) {
                    const int column = (i0)*n_r0 + r0;
                    const float v0 = arg0[i0*s0_i0 + f0*s0_f0 + r0];
                    p1 = p1 + v0;
                    const float v16 = arg3[i0*s0_i0 + f0*s0_f0 + r0];
                    float s34 = v16;
                    if (!fresh) {
                        s34 = s34 + fold34[column];
                    }
                    fold34[column] = s34;
                }
                t1 = t1 + p1;
            }
            W_HALVES(float, t1, shared->f32, 64, x + y);
            const float v1 = t1;
            const float v3 = v1 * c2;
            float t6 = 0.0f;
            float t20 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 2048) {
                float p6 = 0.0f;
                float p20 = 0.0f;
                const int end = min(tile + 2048, n_r0);
                for (int r0 = tile + lane; r0 < end; r0 += 64) {
                    const float v0 = arg0[i0*s0_i0 + f0*s0_f0 + r0];
                    const float v4 = v0 - v3;
                    const float v5 = v4 * v4;
                    p6 = p6 + v5;
                    const float v12 = arg1[r0];
                    const float v16 = arg3[i0*s0_i0 + f0*s0_f0 + r0];
                    const float v17 = v16 * v12;
                    const float v19 = v17 * v4;
                    p20 = p20 + v19;
                }
                t6 = t6 + p6;
                t20 = t20 + p20;
            }
            W_HALVES(float, t6, shared->f32, 64, x + y);
            const float v6 = t6;
            W_HALVES(float, t20, shared->f32, 64, x + y);
            const float v20 = t20;
            const float v7 = v6 * c2;
            const float v9 = v7 + c8;
            const float v10 = w_rsqrt_f32(v9);
            const float v22 = v20 * -0x1p-1f;
            const float v23 = v10 * v10;
            const float v24 = v10 * v23;
            const float v25 = v22 * v24;
            const float v26 = v25 * c2;
            float t31 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 2048) {
                float p31 = 0.0f;
                const int end = min(tile + 2048, n_r0);
                for (int r0 = tile + lane; r0 < end; r0 += 64) {
                    const int column = (i0)*n_r0 + r0;
                    const float v0 = arg0[i0*s0_i0 + f0*s0_f0 + r0];
                    const float v4 = v0 - v3;
                    const float v11 = v4 * v10;
                    const float v12 = arg1[r0];
                    const float v16 = arg3[i0*s0_i0 + f0*s0_f0 + r0];
                    const float v17 = v16 * v12;
                    const float v18 = v17 * v10;
                    const float v27 = v26 * v4;
                    const float v28 = v18 + v27;
                    const float v29 = v28 + v27;
                    const float v30 = -v29;
                    p31 = p31 + v30;
                    const float v35 = v16 * v11;
                    float s36 = v35;
                    if (!fresh) {
                        s36 = s36 + fold36[column];
                    }
                    fold36[column] = s36;
                }
                t31 = t31 + p31;
            }
            W_HALVES(float, t31, shared->f32, 64, x + y);
            const float v31 = t31;
            const float v32 = v31 * c2;
            for (int r0 = lane; r0 < n_r0; r0 += 64) {
                const float v0 = arg0[i0*s0_i0 + f0*s0_f0 + r0];
                const float v4 = v0 - v3;
                const float v11 = v4 * v10;
                const float v12 = arg1[r0];
                const float v13 = v11 * v12;
                const float v14 = -v12;
                const float v15 = v13 + v14;
                const float v16 = arg3[i0*s0_i0 + f0*s0_f0 + r0];
                const float v17 = v16 * v12;
                const float v18 = v17 * v10;
                const float v27 = v26 * v4;
                const float v28 = v18 + v27;
                const float v29 = v28 + v27;
                const float v33 = v29 + v32;
                arg2[i0*s0_i0 + f0*s0_f0 + r0] = v15;
                arg4[i0*s0_i0 + f0*s0_f0 + r0] = v33;
            }
        }
        for (int r0 = lane; r0 < n_r0; r0 += 64) {
            const int column = (i0)*n_r0 + r0;
            const float s34 = fold34[column];
            const float v34 = s34;
            arg5[i0*s1_i0 + r0] = v34;
            const float s36 = fold36[column];
            const float v36 = s36;
            arg6[i0*s1_i0 + r0] = v36;
        }
    }
}

/*
kernel row_sum_neg_sum_add (rows 16; reduce 16)
  arg0 f32 in 256
  arg1 f32 in 256
  arg2 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  v2 f32 row = neg v1
  v3 f32 = load arg1[i0 + r0*16]
  v4 f32 row = reduce sum v3
  v5 f32 row = add v2, v4
  store arg2[i0] = v5
*/
W_NUMBERS(row_sum_neg_sum_add) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
};
W_KERNEL W_ITEMS(64, 1, 1) void row_sum_neg_sum_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_sum_neg_sum_add) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            float t1 = 0.0f;
            float t4 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                float p4 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0 + r0*s0_r0];
                    p1 = p1 + v0;
                    const float v3 = arg1[i0 + r0*s0_r0];
                    p4 = p4 + v3;
                }
                t1 = t1 + p1;
                t4 = t4 + p4;
            }
            const float v1 = t1;
            const float v4 = t4;
            const float v2 = -v1;
            const float v5 = v2 + v4;
            arg2[i0] = v5;
        }
    }
}

