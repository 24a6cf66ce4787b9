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
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0, s1_i0 = of.s1_i0;
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
            float span2[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg1 + (i0*s0_i0 + i1_0), span2);
            float span4[4];
            float span5[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const float v0 = span0[e];
                const float v1 = w_exp_f32(v0);
                const float v2 = span2[e];
                const float v3 = v1 * v2;
                span4[e] = v3;
                span5[e] = v1;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg2 + (i0*s1_i0 + i1_0), span4);
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg3 + (i0*s1_i0 + i1_0), span5);
        }
    }
}

