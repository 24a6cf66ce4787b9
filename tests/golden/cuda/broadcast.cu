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
W_KERNEL W_ITEMS(256, 1, 1) void map_add_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_add_mul) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*4;
        if (i1_0 < n_i1) {
            float span0[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (i0*s0_i0 + i1_0), span0);
            float span1[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg1 + (i1_0), span1);
            float span5[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const float v0 = span0[e];
                const float v1 = span1[e];
                const float v2 = v0 + v1;
                const float v3 = arg2[i0];
                const float v4 = v2 * v3;
                span5[e] = v4;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg3 + (i0*s0_i0 + i1_0), span5);
        }
    }
}

