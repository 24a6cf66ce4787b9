/*
kernel copy (rows 128)
  arg0 f16 in 128
  arg1 f16 out 128
  v0 f16 = load arg0[i0]
  store arg1[i0] = v0
*/
W_NUMBERS(copy) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void copy_group(
    const W_GLOBAL ushort *arg0_,
    W_GLOBAL ushort *arg1_,
    const W_NUMBERS(copy) of, const int group) {
    const W_GLOBAL ushort *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL ushort *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const int16 v0 = w_load_u16(arg0 + (i0), 0, m);
            w_store_u16(arg1 + (i0), 0, m, v0);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void copy(
    const W_GLOBAL ushort *arg0_,
    W_GLOBAL ushort *arg1_,
    const W_NUMBERS(copy) of) {
    copy_group(arg0_, arg1_, of, w_group(0));
}

