/*
kernel map_exp_mul (rows 512, 16)
  arg0 f32 in 8192
  arg1 f32 in 8192
  arg2 f32 out 16368
  arg3 f32 out 16368
  v0 f32 = load arg0[i0*16 + i1]
  v1 f32 = exp v0
  v2 f32 = load arg1[i0*16 + i1]
  v3 f32 = mul v1, v2
  store arg2[i0*32 + i1] = v3
  store arg3[i0*32 + i1] = v1
*/
W_NUMBERS(map_exp_mul) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i1, s0_i0, s1_i0;
};
W_ONCE void map_exp_mul_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_exp_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0, s1_i0 = of.s1_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + i1), 0, m);
            const float16 v1 = w_exp_f32(v0);
            const float16 v2 = w_load_f32(arg1 + (i0*s0_i0 + i1), 0, m);
            const float16 v3 = v1 * v2;
            w_store_f32(arg2 + (i0*s1_i0 + i1), 0, m, v3);
            w_store_f32(arg3 + (i0*s1_i0 + i1), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_exp_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_exp_mul) of) {
    map_exp_mul_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

