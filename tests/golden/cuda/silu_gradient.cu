/*
kernel map_sigmoid_mul_neg_add_mul (rows 128)
  arg0 f32 in 128
  arg1 f32 out 128
  arg2 f32 in 128
  arg3 f32 out 128
  v0 f32 = load arg0[i0]
  v1 f32 = sigmoid v0
  v2 f32 = mul v0, v1
  v3 f32 = load arg2[i0]
  v4 f32 = mul v3, v1
  v5 f32 = mul v3, v0
  v6 f32 = neg v1
  v7 f32 = const 1
  v8 f32 = add v6, v7
  v9 f32 = mul v1, v8
  v10 f32 = mul v5, v9
  v11 f32 = add v4, v10
  store arg1[i0] = v2
  store arg3[i0] = v11
*/
W_NUMBERS(map_sigmoid_mul_neg_add_mul) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_sigmoid_mul_neg_add_mul(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_sigmoid_mul_neg_add_mul) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            float span0[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (i0_0), span0);
            float span3[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg2 + (i0_0), span3);
            float span12[4];
            float span13[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const float v0 = span0[e];
                const float v1 = w_sigmoid_f32(v0);
                const float v2 = v0 * v1;
                const float v3 = span3[e];
                const float v4 = v3 * v1;
                const float v5 = v3 * v0;
                const float v6 = -v1;
                const float v8 = v6 + 1.0f;
                const float v9 = v1 * v8;
                const float v10 = v5 * v9;
                const float v11 = v4 + v10;
                span12[e] = v2;
                span13[e] = v11;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span12);
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg3 + (i0_0), span13);
        }
    }
}

