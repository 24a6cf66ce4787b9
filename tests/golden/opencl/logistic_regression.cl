/*
kernel fold_mul_sum_add_gt_where (blocks 64; rows 160; reduce 4)
  arg0 f32 in 40960
  arg1 f32 in 16
  arg2 f32 in 10240
  arg3 f32 out 64
  arg4 f32 out 256
  arg5 f32 out 64
  v0 f32 = load arg0[i0*640 + f0*4 + r0]
  v1 f32 = load arg1[r0]
  v2 f32 = mul v0, v1
  v3 f32 row = reduce sum v2
  v4 f32 row = load arg1[0]
  v5 f32 row = add v3, v4
  v6 f32 row = const 0
  v7 bool row = gt v5, v6
  v8 f32 row = const 1
  v9 f32 row = where v7, v8, v6
  v10 f32 row = load arg2[i0*160 + f0]
  v11 f32 row = sub v9, v10
  v12 f32 row = mul v5, v11
  v13 f32 row = neg v5
  v14 f32 row = where v7, v13, v5
  v15 f32 row = exp v14
  v16 f32 row = log1p v15
  v17 f32 row = add v12, v16
  v18 f32 block = fold sum v17
  v19 f32 row = const 9.765625e-05
  v20 f32 row = const 1
  v21 f32 row = add v15, v20
  v22 f32 row = div v19, v21
  v23 f32 row = mul v22, v15
  v24 f32 row = where v7, v6, v23
  v25 f32 row = where v7, v23, v6
  v26 f32 row = neg v25
  v27 f32 row = add v24, v26
  v28 f32 row = mul v19, v11
  v29 f32 row = add v27, v28
  v30 f32 = mul v0, v29
  v31 f32 column = fold sum v30
  v32 f32 block = fold sum v29
  store arg3[i0] = v18
  store arg4[i0*4 + r0] = v31
  store arg5[i0] = v32
*/
W_NUMBERS(fold_mul_sum_add_gt_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at, fold31_at;
    int per, units, tile_size, n_i0, n_f0, s1_i0, n_r0, s0_i0, s0_f0, s2_i0;
    float c19;
};
W_ONCE void fold_mul_sum_add_gt_where_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL float *fold31_,
    const W_NUMBERS(fold_mul_sum_add_gt_where) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    W_GLOBAL float *fold31 = fold31_ + of.fold31_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_f0 = of.n_f0, s1_i0 = of.s1_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_f0 = of.s0_f0, s2_i0 = of.s2_i0;
    const float c19 = of.c19;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            float16 kept0[256];
            float16 b18 = 0.0f;
            float16 b32 = 0.0f;
            for (int f0 = 0; f0 < n_f0; f0++) {
                const int fresh = f0 == 0;
                const float v4 = arg1[0];
                const float16 v10 = w_load_step_f32(arg2 + (i0*s1_i0 + f0), s1_i0, 0, m);
                float16 t3 = 0.0f;
                for (int tile = 0; tile < n_r0; tile += 32) {
                    float16 p3 = 0.0f;
                    const int end = min(tile + 32, n_r0);
                    for (int r0 = tile; r0 < end; r0 += 1) {
                        const float16 v0 = w_load_step_f32(arg0 + (i0*s0_i0 + f0*s0_f0 + r0), s0_i0, 0, m);
                        kept0[r0] = v0;
                        const float v1 = arg1[r0];
                        const float16 v2 = v0 * (float16)(v1);
                        p3 = p3 + v2;
                    }
                    t3 = t3 + p3;
                }
                const float16 v3 = t3;
                const float16 v5 = v3 + (float16)(v4);
                const int16 v7 = w_bool(v5 > (float16)(0.0f));
                const float16 v9 = w_sel_f32(v7, (float16)(1.0f), (float16)(0.0f));
                const float16 v11 = v9 - v10;
                const float16 v12 = v5 * v11;
                const float16 v13 = -v5;
                const float16 v14 = w_sel_f32(v7, v13, v5);
                const float16 v15 = w_exp_f32(v14);
                const float16 v16 = w_log1p_f32(v15);
                const float16 v17 = v12 + v16;
                const float16 v21 = v15 + (float16)(1.0f);
                const float16 v22 = w_div_f32((float16)(c19), v21);
                const float16 v23 = v22 * v15;
                const float16 v24 = w_sel_f32(v7, (float16)(0.0f), v23);
                const float16 v25 = w_sel_f32(v7, v23, (float16)(0.0f));
                const float16 v26 = -v25;
                const float16 v27 = v24 + v26;
                const float16 v28 = (float16)(c19) * v11;
                const float16 v29 = v27 + v28;
                for (int r0 = 0; r0 < n_r0; r0 += 1) {
                    const int column = (r0)*n_i0 + i0;
                    const float16 v0 = kept0[r0];
                    const float16 v30 = v0 * v29;
                    float16 s31 = v30;
                    if (!fresh) {
                        s31 = s31 + w_load_f32(fold31 + column, 0, m);
                    }
                    w_store_f32(fold31 + column, 0, m, s31);
                }
                b18 = b18 + v17;
                b32 = b32 + v29;
            }
            const float16 v18 = b18;
            w_store_f32(arg3 + (i0), 0, m, v18);
            const float16 v32 = b32;
            w_store_f32(arg5 + (i0), 0, m, v32);
            for (int r0 = 0; r0 < n_r0; r0 += 1) {
                const int column = (r0)*n_i0 + i0;
                const float16 s31 = w_load_f32(fold31 + column, 0, m);
                const float16 v31 = s31;
                w_store_step_f32(arg4 + (i0*s2_i0 + r0), s2_i0, 0, m, v31);
            }
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void fold_mul_sum_add_gt_where(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL float *fold31_,
    const W_NUMBERS(fold_mul_sum_add_gt_where) of) {
    fold_mul_sum_add_gt_where_group(arg0_, arg1_, arg2_, arg3_, arg4_, arg5_, fold31_, of, w_group(0));
}

/*
kernel row_sum_mul_sub (rows 4; reduce 64)
  arg0 f32 in 16
  arg1 f32 in 256
  arg2 f32 out 4
  v0 f32 row = load arg0[i0]
  v1 f32 = load arg1[i0 + r0*4]
  v2 f32 row = reduce sum v1
  v3 f32 row = const 0.1
  v4 f32 row = mul v2, v3
  v5 f32 row = sub v0, v4
  store arg2[i0] = v5
*/
W_NUMBERS(row_sum_mul_sub) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
    float c3;
};
W_ONCE void row_sum_mul_sub_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_sum_mul_sub) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const float c3 = of.c3;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            float16 t2 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float16 p2 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float16 v1 = w_load_f32(arg1 + (i0 + r0*s0_r0), 0, m);
                    p2 = p2 + v1;
                }
                t2 = t2 + p2;
            }
            const float16 v2 = t2;
            const float16 v4 = v2 * (float16)(c3);
            const float16 v5 = v0 - v4;
            w_store_f32(arg2 + (i0), 0, m, v5);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum_mul_sub(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_sum_mul_sub) of) {
    row_sum_mul_sub_group(arg0_, arg1_, arg2_, of, w_group(0));
}

/*
kernel row_sum_mul_sum_mul_sub (rows 1; reduce 64)
  arg0 f32 in 64
  arg1 f32 out 1
  arg2 f32 in 16
  arg3 f32 in 64
  arg4 f32 out 1
  v0 f32 = load arg0[r0]
  v1 f32 row = reduce sum v0
  v2 f32 row = const 9.765625e-05
  v3 f32 row = mul v1, v2
  v4 f32 row = load arg2[0]
  v5 f32 = load arg3[r0]
  v6 f32 row = reduce sum v5
  v7 f32 row = const 0.1
  v8 f32 row = mul v6, v7
  v9 f32 row = sub v4, v8
  store arg1[0] = v3
  store arg4[0] = v9
*/
W_NUMBERS(row_sum_mul_sum_mul_sub) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at;
    int per, units, n_r0;
    float c2, c7;
};
W_ONCE void row_sum_mul_sum_mul_sub_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    const W_NUMBERS(row_sum_mul_sum_mul_sub) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const float c2 = of.c2, c7 = of.c7;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const float v4 = arg2[0];
        float16 t1 = 0.0f;
        float16 t6 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p1 = 0.0f;
            float16 p6 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (r0), 0, m);
                p1 = p1 + w_sel_f32(w_live(m), v0, (float16)(0.0f));
                const float16 v5 = w_load_f32(arg3 + (r0), 0, m);
                p6 = p6 + w_sel_f32(w_live(m), v5, (float16)(0.0f));
            }
            t1 = t1 + p1;
            t6 = t6 + p6;
        }
        t1 = t1 + t1.s89abcdef01234567;
        t1 = t1 + t1.s4567012389abcdef;
        t1 = t1 + t1.s23016745ab89efcd;
        t1 = t1 + t1.s1032547698badcfe;
        const float v1 = t1.s0;
        t6 = t6 + t6.s89abcdef01234567;
        t6 = t6 + t6.s4567012389abcdef;
        t6 = t6 + t6.s23016745ab89efcd;
        t6 = t6 + t6.s1032547698badcfe;
        const float v6 = t6.s0;
        const float v3 = v1 * c2;
        const float v8 = v6 * c7;
        const float v9 = v4 - v8;
        arg1[0] = v3;
        arg4[0] = v9;
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum_mul_sum_mul_sub(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    const W_NUMBERS(row_sum_mul_sum_mul_sub) of) {
    row_sum_mul_sum_mul_sub_group(arg0_, arg1_, arg2_, arg3_, arg4_, of, w_group(0));
}

