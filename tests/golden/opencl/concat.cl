/*
kernel map_where (rows 8, 48)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 384
  v0 bool = mask 32 <= i1
  v1 f32 = load arg0[i0*16 + i1 - 32] if 32 <= i1
  v2 bool = mask 16 <= i1 < 32
  v3 f32 = load arg1[i0*16 + i1 - 16] if 16 <= i1 < 32
  v4 f32 = load arg0[i0*16 + i1] if i1 < 16
  v5 f32 = where v2, v3, v4
  v6 f32 = where v0, v1, v5
  store arg2[i0*48 + i1] = v6
*/
W_NUMBERS(map_where) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i1, lo1_i1, s1_i0, o1, lo2_i1, hi2_i1, s2_i0, o2, s3_i0, hi3_i1, s0_i0;
};
W_ONCE void map_where_group(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL int *arg1_,
    W_GLOBAL int *arg2_,
    const W_NUMBERS(map_where) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL int *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, lo1_i1 = of.lo1_i1, s1_i0 = of.s1_i0, o1 = of.o1, lo2_i1 = of.lo2_i1, hi2_i1 = of.hi2_i1, s2_i0 = of.s2_i0, o2 = of.o2, s3_i0 = of.s3_i0, hi3_i1 = of.hi3_i1, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const int16 v0 = w_bool((i1 + W_LANES) >= lo1_i1);
            const int16 v1 = w_load_i32(arg0 + (i0*s1_i0 + i1 + o1), (lo1_i1 - i1), m);
            const int16 v2 = w_bool((i1 + W_LANES) >= lo2_i1) & w_bool((i1 + W_LANES) < hi2_i1);
            const int16 v3 = w_load_i32(arg1 + (i0*s2_i0 + i1 + o2), (lo2_i1 - i1), min(m, (hi2_i1 - i1)));
            const int16 v4 = w_load_i32(arg0 + (i0*s3_i0 + i1), 0, min(m, (hi3_i1 - i1)));
            const int16 v5 = w_sel_i32(v2, v3, v4);
            const int16 v6 = w_sel_i32(v0, v1, v5);
            w_store_i32(arg2 + (i0*s0_i0 + i1), 0, m, v6);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_where(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL int *arg1_,
    W_GLOBAL int *arg2_,
    const W_NUMBERS(map_where) of) {
    map_where_group(arg0_, arg1_, arg2_, of, w_group(0));
}

