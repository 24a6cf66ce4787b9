/*
kernel map_exp (rows 128)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[a0 + a1*16] with a = (i0) in (16, 8)
  v1 f32 = exp v0
  store arg1[i0] = v1
*/
W_NUMBERS(map_exp) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n1_a1, n1_a0, s1_a1;
};
W_ONCE void map_exp_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_exp) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n1_a1 = of.n1_a1, n1_a0 = of.n1_a0, s1_a1 = of.s1_a1;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            int16 e0_a = (i0 + W_LANES);
            const int16 e0_a1 = e0_a % n1_a1;
            e0_a /= n1_a1;
            const int16 e0_a0 = e0_a;
            const float16 v0 = w_load_at_f32(arg0, (int16)(e0_a0 + e0_a1*s1_a1), w_live(m));
            const float16 v1 = w_exp_f32(v0);
            w_store_f32(arg1 + (i0), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_exp) of) {
    map_exp_group(arg0_, arg1_, of, w_group(0));
}

