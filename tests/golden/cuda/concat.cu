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
    int per, units, tile_size, n_i1, lo1_i1, s1_i0, o1, lo2_i1, hi2_i1, s2_i0, o2, hi3_i1, s3_i0, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_where(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL int *arg1_,
    W_GLOBAL int *arg2_,
    const W_NUMBERS(map_where) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL int *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, lo1_i1 = of.lo1_i1, s1_i0 = of.s1_i0, o1 = of.o1, lo2_i1 = of.lo2_i1, hi2_i1 = of.hi2_i1, s2_i0 = of.s2_i0, o2 = of.o2, hi3_i1 = of.hi3_i1, s3_i0 = of.s3_i0, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 16, team = w_item(0) / 16;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 16) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*4;
        if (i1_0 < n_i1) {
            int span7[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const int v0 = i1 >= lo1_i1;
                const int v1 = i1 >= lo1_i1 ? arg0[i0*s1_i0 + i1 + o1] : 0;
                const int v2 = i1 >= lo2_i1 && i1 < hi2_i1;
                const int v3 = i1 >= lo2_i1 && i1 < hi2_i1 ? arg1[i0*s2_i0 + i1 + o2] : 0;
                const int v4 = i1 < hi3_i1 ? arg0[i0*s3_i0 + i1] : 0;
                const int v5 = w_sel_i32(v2, v3, v4);
                const int v6 = w_sel_i32(v0, v1, v5);
                span7[e] = v6;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg2 + (i0*s0_i0 + i1_0), span7);
        }
    }
}

