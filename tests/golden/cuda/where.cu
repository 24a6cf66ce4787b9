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
W_KERNEL W_ITEMS(256, 1, 1) void map_neg_where(
    const W_GLOBAL uchar *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_neg_where) of) {
    const W_GLOBAL uchar *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            const int v0 = w_get_bool(arg0, i0);
            const float v1 = arg1[i0];
            const float v2 = arg2[i0];
            const float v3 = -v2;
            const float v4 = w_sel_f32(v0, v1, v3);
            arg3[i0] = v4;
        }
    }
}

