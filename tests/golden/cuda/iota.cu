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
W_KERNEL W_ITEMS(256, 1, 1) void map_add(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(map_add) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*4;
        if (i1_0 < n_i1) {
            int span1[4];
            W_READ_ALIGNED(i32, int, uint4, 4, arg0 + (i0*s0_i0 + i1_0), span1);
            int span3[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const int v0 = convert_int((int)(i1));
                const int v1 = span1[e];
                const int v2 = as_int(as_uint(v0) + as_uint(v1));
                span3[e] = v2;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg1 + (i0*s0_i0 + i1_0), span3);
        }
    }
}

