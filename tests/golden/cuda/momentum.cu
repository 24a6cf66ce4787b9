/*
kernel map_mul_add_mul_sub (rows 64)
  arg0 f32 in 64
  arg1 f32 in 64
  arg2 f32 out 64
  arg3 f32 in 64
  arg4 f32 in 1
  arg5 f32 out 64
  v0 f32 = load arg0[i0]
  v1 f32 = const 0.9
  v2 f32 = mul v0, v1
  v3 f32 = load arg1[i0]
  v4 f32 = add v2, v3
  v5 f32 = load arg3[i0]
  v6 f32 = load arg4[0]
  v7 f32 = mul v6, v4
  v8 f32 = sub v5, v7
  store arg2[i0] = v4
  store arg5[i0] = v8
*/
W_NUMBERS(map_mul_add_mul_sub) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at;
    int per, units, tile_size, n_i0;
    float c1;
    int command;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_add_mul_sub(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    const W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_add_mul_sub) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const float c1 = of.c1;
    W_RETURN_IF_FAULTED(256, 1)
    const int lane = w_item(0) % 16, team = w_item(0) / 16;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 16) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            float span0[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (i0_0), span0);
            float span3[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span3);
            float span5[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg3 + (i0_0), span5);
            float span9[4];
            float span10[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const float v0 = span0[e];
                const float v2 = v0 * c1;
                const float v3 = span3[e];
                const float v4 = v2 + v3;
                const float v5 = span5[e];
                const float v6 = arg4[0];
                const float v7 = v6 * v4;
                const float v8 = v5 - v7;
                span9[e] = v4;
                span10[e] = v8;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg2 + (i0_0), span9);
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg5 + (i0_0), span10);
        }
    }
}

