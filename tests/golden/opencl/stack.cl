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
W_ONCE void map_exp_where_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_exp_where) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, lo1_i0 = of.lo1_i0, hi2_i0 = of.hi2_i0, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const int16 v0 = (int16)(i0 >= lo1_i0);
            const float16 v1 = w_load_f32(arg0 + (i1), 0, (i0 >= lo1_i0 ? m : 0));
            const float16 v2 = w_exp_f32(v1);
            const float16 v4 = w_sel_f32(v0, v2, (float16)(0.0f));
            const float16 v5 = w_load_f32(arg1 + (i1), 0, (i0 < hi2_i0 ? m : 0));
            const float16 v6 = w_sel_f32(v0, v4, v5);
            w_store_f32(arg2 + (i0*s0_i0 + i1), 0, m, v6);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_exp_where(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_exp_where) of) {
    map_exp_where_group(arg0_, arg1_, arg2_, of, w_group(0));
}

