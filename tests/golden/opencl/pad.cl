/*
kernel map_where (rows 9, 18)
  arg0 f32 in 128
  arg1 f32 out 162
  v0 bool = mask 1 <= i0, i1 < 16
  v1 f32 = load arg0[i0*16 + i1 - 16] if 1 <= i0, i1 < 16
  v2 f32 = const 7
  v3 f32 = where v0, v1, v2
  store arg1[i0*18 + i1] = v3
*/
W_NUMBERS(map_where) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, lo1_i0, hi1_i1, s1_i0, o1, c2, s0_i0;
};
W_KERNEL W_ITEMS(64, 1, 1) void map_where(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(map_where) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, lo1_i0 = of.lo1_i0, hi1_i1 = of.hi1_i1, s1_i0 = of.s1_i0, o1 = of.o1, c2 = of.c2, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1 = first_lane + lane;
        if (i1 < n_i1) {
            const int v0 = i0 >= lo1_i0 && i1 < hi1_i1;
            const int v1 = i0 >= lo1_i0 && i1 < hi1_i1 ? arg0[i0*s1_i0 + i1 + o1] : 0;
            const int v3 = w_sel_i32(v0, v1, c2);
            arg1[i0*s0_i0 + i1] = v3;
        }
    }
}

