/*
kernel copy (rows 3, 2, 4, 16)
  arg0 f32 in 384
  arg1 f32 out 384
  v0 f32 = load arg0[i0*128 + i1*16 + i2*32 + i3]
  store arg1[i0*128 + i1*64 + i2*16 + i3] = v0
*/
W_NUMBERS(copy) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i2, n_i1, n_i3, s1_i0, s1_i1, s1_i2, s0_i0, s0_i1, s0_i2;
};
W_KERNEL W_ITEMS(256, 1, 1) void copy(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(copy) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i2 = of.n_i2, n_i1 = of.n_i1, n_i3 = of.n_i3, s1_i0 = of.s1_i0, s1_i1 = of.s1_i1, s1_i2 = of.s1_i2, s0_i0 = of.s0_i0, s0_i1 = of.s0_i1, s0_i2 = of.s0_i2;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i2 = rest % n_i2;
        rest /= n_i2;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const int i3_0 = first_lane + lane*4;
        if (i3_0 < n_i3) {
            int span0[4];
            W_READ_ALIGNED(i32, int, uint4, 4, arg0 + (i0*s1_i0 + i1*s1_i1 + i2*s1_i2 + i3_0), span0);
            int span1[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i3 = i3_0 + e;
                const int v0 = span0[e];
                span1[e] = v0;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg1 + (i0*s0_i0 + i1*s0_i1 + i2*s0_i2 + i3_0), span1);
        }
    }
}

