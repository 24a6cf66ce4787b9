/*
kernel map_mul (rows 128)
  arg0 f16 in 128
  arg1 f32 in 128
  arg2 f16 out 128
  v0 f16 = load arg0[i0]
  v1 f32 = cast v0
  v2 f32 = load arg1[i0]
  v3 f32 = mul v1, v2
  v4 f16 = cast v3
  store arg2[i0] = v4
*/
W_NUMBERS(map_mul) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void map_mul_group(
    const W_GLOBAL half *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL half *arg2_,
    const W_NUMBERS(map_mul) of, const int group) {
    const W_GLOBAL half *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL half *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f16(arg0 + (i0), 0, m);
            const float16 v1 = v0;
            const float16 v2 = w_load_f32(arg1 + (i0), 0, m);
            const float16 v3 = v1 * v2;
            const float16 v4 = w_round_f16(v3);
            w_store_f16(arg2 + (i0), 0, m, v4);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul(
    const W_GLOBAL half *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL half *arg2_,
    const W_NUMBERS(map_mul) of) {
    map_mul_group(arg0_, arg1_, arg2_, of, w_group(0));
}

