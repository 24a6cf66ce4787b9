/*
kernel fold_mul_sum_add_sub_mul (blocks 64; rows 160; reduce 4)
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
  v6 f32 row = load arg2[i0*160 + f0]
  v7 f32 row = sub v5, v6
  v8 f32 row = mul v7, v7
  v9 f32 block = fold sum v8
  v10 f32 row = const 9.765625e-05
  v11 f32 row = mul v10, v7
  v12 f32 row = add v11, v11
  v13 f32 = mul v0, v12
  v14 f32 column = fold sum v13
  v15 f32 block = fold sum v12
  store arg3[i0] = v9
  store arg4[i0*4 + r0] = v14
  store arg5[i0] = v15
*/
W_NUMBERS(fold_mul_sum_add_sub_mul) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at, fold14_at;
    int per, units, tile_size, n_i0, n_f0, s1_i0, n_r0, s0_i0, s0_f0, s2_i0;
    float c10;
};
W_ONCE void fold_mul_sum_add_sub_mul_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL float *fold14_,
    const W_NUMBERS(fold_mul_sum_add_sub_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    W_GLOBAL float *fold14 = fold14_ + of.fold14_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_f0 = of.n_f0, s1_i0 = of.s1_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_f0 = of.s0_f0, s2_i0 = of.s2_i0;
    const float c10 = of.c10;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            float16 kept0[256];
            float16 b9 = 0.0f;
            float16 b15 = 0.0f;
            for (int f0 = 0; f0 < n_f0; f0++) {
                const int fresh = f0 == 0;
                const float v4 = arg1[0];
                const float16 v6 = w_load_step_f32(arg2 + (i0*s1_i0 + f0), s1_i0, 0, m);
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
                const float16 v7 = v5 - v6;
                const float16 v8 = v7 * v7;
                const float16 v11 = (float16)(c10) * v7;
                const float16 v12 = v11 + v11;
                for (int r0 = 0; r0 < n_r0; r0 += 1) {
                    const int column = (r0)*n_i0 + i0;
                    const float16 v0 = kept0[r0];
                    const float16 v13 = v0 * v12;
                    float16 s14 = v13;
                    if (!fresh) {
                        s14 = s14 + w_load_f32(fold14 + column, 0, m);
                    }
                    w_store_f32(fold14 + column, 0, m, s14);
                }
                b9 = b9 + v8;
                b15 = b15 + v12;
            }
            const float16 v9 = b9;
            w_store_f32(arg3 + (i0), 0, m, v9);
            const float16 v15 = b15;
            w_store_f32(arg5 + (i0), 0, m, v15);
            for (int r0 = 0; r0 < n_r0; r0 += 1) {
                const int column = (r0)*n_i0 + i0;
                const float16 s14 = w_load_f32(fold14 + column, 0, m);
                const float16 v14 = s14;
                w_store_step_f32(arg4 + (i0*s2_i0 + r0), s2_i0, 0, m, v14);
            }
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void fold_mul_sum_add_sub_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL float *fold14_,
    const W_NUMBERS(fold_mul_sum_add_sub_mul) of) {
    fold_mul_sum_add_sub_mul_group(arg0_, arg1_, arg2_, arg3_, arg4_, arg5_, fold14_, of, w_group(0));
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

