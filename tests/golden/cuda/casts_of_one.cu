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
    const int lane = w_item(0) % 16, team = w_item(0) / 16;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 16) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*8;
        if (i0_0 < n_i0) {
            int span0[8];
            W_READ_ALIGNED(u16, ushort, uint4, 8, arg0 + (i0_0), span0);
            int span1[8];
            W_UNROLL
            for (int e = 0; e < 8; e++) {
                const int i0 = i0_0 + e;
                const int v0 = span0[e];
                span1[e] = v0;
            }
            W_WRITE_ALIGNED(u16, ushort, uint4, 8, arg1 + (i0_0), span1);
        }
    }
}

