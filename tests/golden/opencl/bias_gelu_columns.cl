/*
kernel row_add_gelu_gelu_slope_mul_sum (rows 16, 16; reduce 32)
  arg0 f32 in 8192
  arg1 f32 in 16
  arg2 f32 out 8192
  arg3 f32 in 8192
  arg4 f32 out 8192
  arg5 f32 out 256
  v0 f32 = load arg0[i0*512 + i1 + r0*16]
  v1 f32 row = load arg1[i1]
  v2 f32 = add v0, v1
  v3 f32 = gelu v2
  v4 f32 = load arg3[i0*512 + i1 + r0*16]
  v5 f32 = gelu_slope v2
  v6 f32 = mul v4, v5
  v7 f32 row = reduce sum v6
  store arg2[i0*512 + i1 + r0*16] = v3
  store arg4[i0*512 + i1 + r0*16] = v6
  store arg5[i0*16 + i1] = v7
*/
W_NUMBERS(row_add_gelu_gelu_slope_mul_sum) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at;
    int per, units, tile_size, n_i1, n_r0, s0_i0, s0_r0, s1_i0;
};
W_ONCE void row_add_gelu_gelu_slope_mul_sum_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    const W_NUMBERS(row_add_gelu_gelu_slope_mul_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_r0 = of.s0_r0, s1_i0 = of.s1_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const float16 v1 = w_load_f32(arg1 + (i1), 0, m);
            float16 t7 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float16 p7 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + i1 + r0*s0_r0), 0, m);
                    const float16 v2 = v0 + v1;
                    const float16 v3 = w_gelu_f32(v2);
                    const float16 v4 = w_load_f32(arg3 + (i0*s0_i0 + i1 + r0*s0_r0), 0, m);
                    const float16 v5 = w_gelu_slope_f32(v2);
                    const float16 v6 = v4 * v5;
                    p7 = p7 + v6;
                    w_store_f32(arg2 + (i0*s0_i0 + i1 + r0*s0_r0), 0, m, v3);
                    w_store_f32(arg4 + (i0*s0_i0 + i1 + r0*s0_r0), 0, m, v6);
                }
                t7 = t7 + p7;
            }
            const float16 v7 = t7;
            w_store_f32(arg5 + (i0*s1_i0 + i1), 0, m, v7);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_add_gelu_gelu_slope_mul_sum(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    const W_NUMBERS(row_add_gelu_gelu_slope_mul_sum) of) {
    row_add_gelu_gelu_slope_mul_sum_group(arg0_, arg1_, arg2_, arg3_, arg4_, arg5_, of, w_group(0));
}

/*
kernel row_sum (rows 16; reduce 16)
  arg0 f32 in 256
  arg1 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
};
W_ONCE void row_sum_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            float16 t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float16 p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float16 v0 = w_load_f32(arg0 + (i0 + r0*s0_r0), 0, m);
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float16 v1 = t1;
            w_store_f32(arg1 + (i0), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    row_sum_group(arg0_, arg1_, of, w_group(0));
}

