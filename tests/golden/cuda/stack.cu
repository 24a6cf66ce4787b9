/*
kernel map_exp_where (rows 2, 128)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 256
  v0 bool = mask 1 <= i0
  v1 f32 = load arg0[i1] if 1 <= i0
  v2 f32 = exp v1
  v3 f32 = const 0
  v4 f32 = where v0, v2, v3
  v5 f32 = load arg1[i1] if i0 < 1
  v6 f32 = where v0, v4, v5
  store arg2[i0*128 + i1] = v6
*/
W_NUMBERS(map_exp_where) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i1, lo1_i0, hi2_i0, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_exp_where(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_exp_where) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, lo1_i0 = of.lo1_i0, hi2_i0 = of.hi2_i0, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*4;
        if (i1_0 < n_i1) {
            float span7[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const int v0 = i0 >= lo1_i0;
                const float v1 = i0 >= lo1_i0 ? arg0[i1] : 0;
                const float v2 = w_exp_f32(v1);
                const float v4 = w_sel_f32(v0, v2, 0.0f);
                const float v5 = i0 < hi2_i0 ? arg1[i1] : 0;
                const float v6 = w_sel_f32(v0, v4, v5);
                span7[e] = v6;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg2 + (i0*s0_i0 + i1_0), span7);
        }
    }
}

