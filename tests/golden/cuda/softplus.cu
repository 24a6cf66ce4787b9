/*
kernel map_gt_where_neg_where_exp (rows 128)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[i0]
  v1 f32 = const 0
  v2 bool = gt v0, v1
  v3 f32 = where v2, v0, v1
  v4 f32 = neg v0
  v5 f32 = where v2, v4, v0
  v6 f32 = exp v5
  v7 f32 = log1p v6
  v8 f32 = add v3, v7
  store arg1[i0] = v8
*/
W_NUMBERS(map_gt_where_neg_where_exp) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_gt_where_neg_where_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_gt_where_neg_where_exp) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            float span0[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (i0_0), span0);
            float span9[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const float v0 = span0[e];
                const int v2 = w_bool(v0 > 0.0f);
                const float v3 = w_sel_f32(v2, v0, 0.0f);
                const float v4 = -v0;
                const float v5 = w_sel_f32(v2, v4, v0);
                const float v6 = w_exp_f32(v5);
                const float v7 = w_log1p_f32(v6);
                const float v8 = v3 + v7;
                span9[e] = v8;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span9);
        }
    }
}

