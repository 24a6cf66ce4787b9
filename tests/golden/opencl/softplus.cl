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
W_ONCE void map_gt_where_neg_where_exp_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_gt_where_neg_where_exp) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            const int16 v2 = w_bool(v0 > (float16)(0.0f));
            const float16 v3 = w_sel_f32(v2, v0, (float16)(0.0f));
            const float16 v4 = -v0;
            const float16 v5 = w_sel_f32(v2, v4, v0);
            const float16 v6 = w_exp_f32(v5);
            const float16 v7 = w_log1p_f32(v6);
            const float16 v8 = v3 + v7;
            w_store_f32(arg1 + (i0), 0, m, v8);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_gt_where_neg_where_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_gt_where_neg_where_exp) of) {
    map_gt_where_neg_where_exp_group(arg0_, arg1_, of, w_group(0));
}

