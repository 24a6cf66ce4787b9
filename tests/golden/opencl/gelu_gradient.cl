/*
kernel map_gelu (rows 128)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[i0]
  v1 f32 = gelu v0
  store arg1[i0] = v1
*/
W_NUMBERS(map_gelu) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void map_gelu_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_gelu) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            const float16 v1 = w_gelu_f32(v0);
            w_store_f32(arg1 + (i0), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_gelu(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_gelu) of) {
    map_gelu_group(arg0_, arg1_, of, w_group(0));
}

/*
kernel map_gelu_slope_mul (rows 128)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 128
  v0 f32 = load arg0[i0]
  v1 f32 = load arg1[i0]
  v2 f32 = gelu_slope v1
  v3 f32 = mul v0, v2
  store arg2[i0] = v3
*/
W_NUMBERS(map_gelu_slope_mul) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0;
};
W_ONCE void map_gelu_slope_mul_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_gelu_slope_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            const float16 v1 = w_load_f32(arg1 + (i0), 0, m);
            const float16 v2 = w_gelu_slope_f32(v1);
            const float16 v3 = v0 * v2;
            w_store_f32(arg2 + (i0), 0, m, v3);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_gelu_slope_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_gelu_slope_mul) of) {
    map_gelu_slope_mul_group(arg0_, arg1_, arg2_, of, w_group(0));
}

