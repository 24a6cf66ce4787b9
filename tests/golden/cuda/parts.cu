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
    int per, units, tile_size, tiles, n_i0, s0_i0, s1_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_exp_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_exp_mul) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, tiles = of.tiles, n_i0 = of.n_i0, s0_i0 = of.s0_i0, s1_i0 = of.s1_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = rest % tiles * tile_size;
        rest /= tiles;
        const int i1 = rest;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            const float v0 = arg0[i0*s0_i0 + i1];
            const float v1 = w_exp_f32(v0);
            const float v2 = arg1[i0*s0_i0 + i1];
            const float v3 = v1 * v2;
            arg2[i0*s1_i0 + i1] = v3;
            arg3[i0*s1_i0 + i1] = v1;
        }
    }
}

