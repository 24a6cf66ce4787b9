/*
kernel map_add (rows 8, 16)
  arg0 i32 in 128
  arg1 i32 out 128
  v0 i32 = index i1
  v1 i32 = load arg0[i0*16 + i1]
  v2 i32 = add v0, v1
  store arg1[i0*16 + i1] = v2
*/
W_NUMBERS(map_add) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, s0_i0;
};
W_ONCE void map_add_group(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(map_add) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const int16 v0 = convert_int16((int16)((i1 + W_LANES)));
            const int16 v1 = w_load_i32(arg0 + (i0*s0_i0 + i1), 0, m);
            const int16 v2 = as_int16(as_uint16(v0) + as_uint16(v1));
            w_store_i32(arg1 + (i0*s0_i0 + i1), 0, m, v2);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_add(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(map_add) of) {
    map_add_group(arg0_, arg1_, of, w_group(0));
}

