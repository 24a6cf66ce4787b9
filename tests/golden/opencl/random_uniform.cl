/*
kernel map_random_shr_and_mul (rows 128)
  arg0 i32 in 8
  arg1 f32 out 128
  v0 i32 = random arg0 at i0
  v1 i32 = const 8
  v2 i32 = shr v0, v1
  v3 i32 = const 16777215
  v4 i32 = and v2, v3
  v5 f32 = cast v4
  v6 f32 = const 5.9604644775390625e-08
  v7 f32 = mul v5, v6
  store arg1[i0] = v7
*/
W_NUMBERS(map_random_shr_and_mul) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, c3;
    float c6;
};
W_ONCE void map_random_shr_and_mul_group(
    const W_GLOBAL int *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_random_shr_and_mul) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, c3 = of.c3;
    const float c6 = of.c6;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const int16 v0 = w_random_line(arg0, convert_ulong(i0));
            const int16 v2 = w_shr_i32(v0, (int16)(8));
            const int16 v4 = v2 & (int16)(c3);
            const float16 v5 = convert_float16(v4);
            const float16 v7 = v5 * (float16)(c6);
            w_store_f32(arg1 + (i0), 0, m, v7);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_random_shr_and_mul(
    const W_GLOBAL int *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_random_shr_and_mul) of) {
    map_random_shr_and_mul_group(arg0_, arg1_, of, w_group(0));
}

