/*
kernel map_neg (rows 128)
  arg0 f16 in 128
  arg1 f16 out 128
  v0 f16 = load arg0[i0]
  v1 f16 = neg v0
  store arg1[i0] = v1
*/
W_NUMBERS(map_neg) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void map_neg_group(
    const W_GLOBAL half *arg0_,
    W_GLOBAL half *arg1_,
    const W_NUMBERS(map_neg) of, const int group) {
    const W_GLOBAL half *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL half *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f16(arg0 + (i0), 0, m);
            const float16 v1 = -v0;
            w_store_f16(arg1 + (i0), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_neg(
    const W_GLOBAL half *arg0_,
    W_GLOBAL half *arg1_,
    const W_NUMBERS(map_neg) of) {
    map_neg_group(arg0_, arg1_, of, w_group(0));
}

