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
W_KERNEL W_ITEMS(256, 1, 1) void map_random_shr_and_mul(
    const W_GLOBAL int *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_random_shr_and_mul) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, c3 = of.c3;
    const float c6 = of.c6;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            float span8[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const int v0 = w_random(arg0, convert_ulong((int)(i0)));
                const int v2 = w_shr_i32(v0, 8);
                const int v4 = v2 & c3;
                const float v5 = convert_float(v4);
                const float v7 = v5 * c6;
                span8[e] = v7;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span8);
        }
    }
}

