/*
kernel map_add_mul (rows 8, 16)
  arg0 f32 in 128
  arg1 f32 in 16
  arg2 f32 in 8
  arg3 f32 out 128
  v0 f32 = load arg0[i0*16 + i1]
  v1 f32 = load arg1[i1]
  v2 f32 = add v0, v1
  v3 f32 = load arg2[i0]
  v4 f32 = mul v2, v3
  store arg3[i0*16 + i1] = v4
*/
W_NUMBERS(map_add_mul) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i1, s0_i0;
};
W_ONCE void map_add_mul_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_add_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
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
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + i1), 0, m);
            const float16 v1 = w_load_f32(arg1 + (i1), 0, m);
            const float16 v2 = v0 + v1;
            const float v3 = arg2[i0];
            const float16 v4 = v2 * (float16)(v3);
            w_store_f32(arg3 + (i0*s0_i0 + i1), 0, m, v4);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_add_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_add_mul) of) {
    map_add_mul_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

