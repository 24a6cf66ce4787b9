/*
kernel row_max_eq_where_sub_exp (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 f32 row = const -inf
  v3 bool row = eq v1, v2
  v4 f32 row = const 0
  v5 f32 row = where v3, v4, v1
  v6 f32 = sub v0, v5
  v7 f32 = exp v6
  v8 f32 row = reduce sum v7
  v9 bool row = eq v8, v4
  v10 f32 row = const 1
  v11 f32 row = where v9, v10, v8
  v12 f32 row = recip v11
  v13 f32 = mul v7, v12
  store arg1[i0*16 + r0] = v13
*/
W_NUMBERS(row_max_eq_where_sub_exp) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s0_i0;
};
W_KERNEL W_ITEMS(64, 1, 1) void row_max_eq_where_sub_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_max_eq_where_sub_exp) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            float t1 = -INFINITY;
            for (int r0 = 0; r0 < n_r0; r0 += 1) {
                const float v0 = arg0[i0*s0_i0 + r0];
                t1 = w_max_f32(t1, v0);
            }
            const float v1 = t1;
            const int v3 = w_bool(v1 == -INFINITY);
            const float v5 = w_sel_f32(v3, 0.0f, v1);
            float t8 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p8 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0*s0_i0 + r0];
                    const float v6 = v0 - v5;
                    const float v7 = w_exp_f32(v6);
                    p8 = p8 + v7;
                }
                t8 = t8 + p8;
            }
            const float v8 = t8;
            const int v9 = w_bool(v8 == 0.0f);
            const float v11 = w_sel_f32(v9, 1.0f, v8);
            const float v12 = w_recip_f32(v11);
            for (int r0 = 0; r0 < n_r0; r0 += 1) {
                const float v0 = arg0[i0*s0_i0 + r0];
                const float v6 = v0 - v5;
                const float v7 = w_exp_f32(v6);
                const float v13 = v7 * v12;
                arg1[i0*s0_i0 + r0] = v13;
            }
        }
    }
}

