/*
kernel map_add (rows 16, 8)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 128
  v0 f32 = load arg0[i0 + i1*16]
  v1 f32 = load arg1[i0*8 + i1]
  v2 f32 = add v0, v1
  store arg2[i0*8 + i1] = v2
*/
W_NUMBERS(map_add) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0, s1_i1, s0_i0;
};
W_KERNEL W_ITEMS(64, 1, 1) void map_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_add) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, s1_i1 = of.s1_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i1 = rest;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            const float v0 = arg0[i0 + i1*s1_i1];
            const float v1 = arg1[i0*s0_i0 + i1];
            const float v2 = v0 + v1;
            arg2[i0*s0_i0 + i1] = v2;
        }
    }
}

