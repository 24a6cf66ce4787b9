/*
kernel map_neg_where (rows 128)
  arg0 bool in 128
  arg1 f32 in 128
  arg2 f32 in 128
  arg3 f32 out 128
  v0 bool = load arg0[i0]
  v1 f32 = load arg1[i0]
  v2 f32 = load arg2[i0]
  v3 f32 = neg v2
  v4 f32 = where v0, v1, v3
  store arg3[i0] = v4
*/
W_NUMBERS(map_neg_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void map_neg_where_group(
    const W_GLOBAL uchar *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_neg_where) of, const int group) {
    const W_GLOBAL uchar *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const int16 v0 = w_load_bool(arg0 + (i0), 0, m);
            const float16 v1 = w_load_f32(arg1 + (i0), 0, m);
            const float16 v2 = w_load_f32(arg2 + (i0), 0, m);
            const float16 v3 = -v2;
            const float16 v4 = w_sel_f32(v0, v1, v3);
            w_store_f32(arg3 + (i0), 0, m, v4);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_neg_where(
    const W_GLOBAL uchar *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_neg_where) of) {
    map_neg_where_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

