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
W_KERNEL W_ITEMS(256, 1, 1) void copy(
    const W_GLOBAL ushort *arg0_,
    W_GLOBAL ushort *arg1_,
    const W_NUMBERS(copy) of) {
    const W_GLOBAL ushort *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL ushort *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            const int v0 = w_get_u16(arg0, i0);
            w_put_u16(arg1, i0, v0);
        }
    }
}

