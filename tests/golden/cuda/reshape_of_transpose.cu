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
W_KERNEL W_ITEMS(256, 1, 1) void map_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_exp) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n1_a1 = of.n1_a1, n1_a0 = of.n1_a0, s1_a1 = of.s1_a1;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            float span2[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                int e0_a = i0;
                const int e0_a1 = e0_a % n1_a1;
                e0_a /= n1_a1;
                const int e0_a0 = e0_a;
                const float v0 = arg0[e0_a0 + e0_a1*s1_a1];
                const float v1 = w_exp_f32(v0);
                span2[e] = v1;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span2);
        }
    }
}

