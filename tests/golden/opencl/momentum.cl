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
W_ONCE void map_mul_add_mul_sub_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    const W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_add_mul_sub) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const float c1 = of.c1;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v0 = w_load_f32(arg0 + (i0), 0, m);
            const float16 v2 = v0 * (float16)(c1);
            const float16 v3 = w_load_f32(arg1 + (i0), 0, m);
            const float16 v4 = v2 + v3;
            const float16 v5 = w_load_f32(arg3 + (i0), 0, m);
            const float v6 = arg4[0];
            const float16 v7 = (float16)(v6) * v4;
            const float16 v8 = v5 - v7;
            w_store_f32(arg2 + (i0), 0, m, v4);
            w_store_f32(arg5 + (i0), 0, m, v8);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_add_mul_sub(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    const W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_add_mul_sub) of) {
    W_RETURN_IF_FAULTED(1, 1)
    map_mul_add_mul_sub_group(arg0_, arg1_, arg2_, arg3_, arg4_, arg5_, faults, of, w_group(0));
}

