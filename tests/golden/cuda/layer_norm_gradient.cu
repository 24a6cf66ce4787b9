/*
kernel row_sum_mul_sub_mul_sum (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  arg2 f32 out 8
  arg3 f32 in 16
  arg4 f32 out 128
  arg5 f32 in 128
  arg6 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
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
  v12 f32 = load arg3[r0]
  v13 f32 = mul v11, v12
  v14 f32 = add v13, v12
  v15 f32 = load arg5[i0*16 + r0]
  v16 f32 = mul v15, v12
  v17 f32 = mul v16, v10
  v18 f32 = mul v16, v4
  v19 f32 row = reduce sum v18
  v20 f32 row = const -0.5
  v21 f32 row = mul v19, v20
  v22 f32 row = mul v10, v10
  v23 f32 row = mul v10, v22
  v24 f32 row = mul v21, v23
  v25 f32 row = mul v24, v2
  v26 f32 = mul v25, v4
  v27 f32 = add v17, v26
  v28 f32 = add v27, v26
  v29 f32 = neg v28
  v30 f32 row = reduce sum v29
  v31 f32 row = mul v30, v2
  v32 f32 = add v28, v31
  store arg1[i0] = v1
  store arg2[i0] = v6
  store arg4[i0*16 + r0] = v14
  store arg6[i0*16 + r0] = v32
*/
W_SHARED(row_sum_mul_sub_mul_sum) {
    float f32[32];
};
W_NUMBERS(row_sum_mul_sub_mul_sum) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at, arg6_at;
    int per, units, n_r0, s0_i0;
    float c2, c8;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_sum_mul_sub_mul_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    const W_GLOBAL float *arg5_,
    W_GLOBAL float *arg6_,
    const W_NUMBERS(row_sum_mul_sub_mul_sum) of W_ALSO(row_sum_mul_sub_mul_sum)) {
    W_MEMORY(row_sum_mul_sub_mul_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    W_GLOBAL float *arg6 = arg6_ + of.arg6_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const float c2 = of.c2, c8 = of.c8;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
        float kept12[1];
        float kept15[1];
        float t1 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = arg0[i0*s0_i0 + r0];
                kept0[turn] = v0;
                t1 = t1 + v0;
            }
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        const float v3 = v1 * c2;
        float t6 = 0.0f;
        float t19 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v4 = v0 - v3;
                const float v5 = v4 * v4;
                t6 = t6 + v5;
                const float v12 = arg3[r0];
                kept12[turn] = v12;
                const float v15 = arg5[i0*s0_i0 + r0];
                kept15[turn] = v15;
                const float v16 = v15 * v12;
                const float v18 = v16 * v4;
                t19 = t19 + v18;
            }
        }
        W_HALVES(float, t6, shared->f32, 32, x + y);
        const float v6 = t6;
        W_HALVES(float, t19, shared->f32, 32, x + y);
        const float v19 = t19;
        const float v7 = v6 * c2;
        const float v9 = v7 + c8;
        const float v10 = w_rsqrt_f32(v9);
        const float v21 = v19 * -0x1p-1f;
        const float v22 = v10 * v10;
        const float v23 = v10 * v22;
        const float v24 = v21 * v23;
        const float v25 = v24 * c2;
        float t30 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v4 = v0 - v3;
                const float v12 = kept12[turn];
                const float v15 = kept15[turn];
                const float v16 = v15 * v12;
                const float v17 = v16 * v10;
                const float v26 = v25 * v4;
                const float v27 = v17 + v26;
                const float v28 = v27 + v26;
                const float v29 = -v28;
                t30 = t30 + v29;
            }
        }
        W_HALVES(float, t30, shared->f32, 32, x + y);
        const float v30 = t30;
        const float v31 = v30 * c2;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v4 = v0 - v3;
                const float v11 = v4 * v10;
                const float v12 = kept12[turn];
                const float v13 = v11 * v12;
                const float v14 = v13 + v12;
                const float v15 = kept15[turn];
                const float v16 = v15 * v12;
                const float v17 = v16 * v10;
                const float v26 = v25 * v4;
                const float v27 = v17 + v26;
                const float v28 = v27 + v26;
                const float v32 = v28 + v31;
                arg4[i0*s0_i0 + r0] = v14;
                arg6[i0*s0_i0 + r0] = v32;
            }
        }
        if (lane == 0) {
            arg1[i0] = v1;
        }
        if (lane == 0) {
            arg2[i0] = v6;
        }
    }
}

/*
kernel row_sum_mul_sub_mul_add (rows 16; reduce 8)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 in 8
  arg3 f32 in 8
  arg4 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  v2 f32 = load arg1[i0 + r0*16]
  v3 f32 = load arg2[r0]
  v4 f32 row = const 0.0625
  v5 f32 = mul v3, v4
  v6 f32 = sub v2, v5
  v7 f32 = load arg3[r0]
  v8 f32 = mul v7, v4
  v9 f32 row = const 1e-05
  v10 f32 = add v8, v9
  v11 f32 = rsqrt v10
  v12 f32 = mul v6, v11
  v13 f32 = mul v0, v12
  v14 f32 row = reduce sum v13
  v15 f32 row = add v1, v14
  store arg4[i0] = v15
*/
W_NUMBERS(row_sum_mul_sub_mul_add) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
    float c4, c9;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum_mul_sub_mul_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    const W_NUMBERS(row_sum_mul_sub_mul_add) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const float c4 = of.c4, c9 = of.c9;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            float t1 = 0.0f;
            float t14 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                float p14 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0 + r0*s0_r0];
                    p1 = p1 + v0;
                    const float v2 = arg1[i0 + r0*s0_r0];
                    const float v3 = arg2[r0];
                    const float v5 = v3 * c4;
                    const float v6 = v2 - v5;
                    const float v7 = arg3[r0];
                    const float v8 = v7 * c4;
                    const float v10 = v8 + c9;
                    const float v11 = w_rsqrt_f32(v10);
                    const float v12 = v6 * v11;
                    const float v13 = v0 * v12;
                    p14 = p14 + v13;
                }
                t1 = t1 + p1;
                t14 = t14 + p14;
            }
            const float v1 = t1;
            const float v14 = t14;
            const float v15 = v1 + v14;
            arg4[i0] = v15;
        }
    }
}

