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
W_ONCE void map_sigmoid_mul_neg_add_mul_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_sigmoid_mul_neg_add_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            const float16 v1 = w_sigmoid_f32(v0);
            const float16 v2 = v0 * v1;
            const float16 v3 = w_load_f32(arg2 + (i0), 0, m);
            const float16 v4 = v3 * v1;
            const float16 v5 = v3 * v0;
            const float16 v6 = -v1;
            const float16 v8 = v6 + (float16)(1.0f);
            const float16 v9 = v1 * v8;
            const float16 v10 = v5 * v9;
            const float16 v11 = v4 + v10;
            w_store_f32(arg1 + (i0), 0, m, v2);
            w_store_f32(arg3 + (i0), 0, m, v11);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_sigmoid_mul_neg_add_mul(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_sigmoid_mul_neg_add_mul) of) {
    map_sigmoid_mul_neg_add_mul_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

