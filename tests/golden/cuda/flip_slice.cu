/*
kernel copy (rows 4, 5)
  arg0 f32 in 128
  arg1 f32 out 20
  v0 f32 = load arg0[-i0*32 + i1*3 + 113]
  store arg1[i0*5 + i1] = v0
*/
W_NUMBERS(copy) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, s1_i0, s1_i1, o1, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void copy(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(copy) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s1_i0 = of.s1_i0, s1_i1 = of.s1_i1, o1 = of.o1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 8, team = w_item(0) / 8;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 32) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1 = first_lane + lane;
        if (i1 < n_i1) {
            const int v0 = arg0[i0*s1_i0 + i1*s1_i1 + o1];
            arg1[i0*s0_i0 + i1] = v0;
        }
    }
}

