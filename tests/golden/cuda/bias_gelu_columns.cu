/*
kernel row_add_gelu_gelu_slope_mul_sum (rows 16, 16; reduce 32)
  arg0 f32 in 8192
  arg1 f32 in 16
  arg2 f32 out 8192
  arg3 f32 in 8192
  arg4 f32 out 8192
  arg5 f32 out 256
  v0 f32 = load arg0[i0*512 + i1 + r0*16]
  v1 f32 row = load arg1[i1]
  v2 f32 = add v0, v1
  v3 f32 = gelu v2
  v4 f32 = load arg3[i0*512 + i1 + r0*16]
  v5 f32 = gelu_slope v2
  v6 f32 = mul v4, v5
  v7 f32 row = reduce sum v6
  store arg2[i0*512 + i1 + r0*16] = v3
  store arg4[i0*512 + i1 + r0*16] = v6
  store arg5[i0*16 + i1] = v7
*/
W_SHARED(row_add_gelu_gelu_slope_mul_sum) {
    float f32[32];
};
W_NUMBERS(row_add_gelu_gelu_slope_mul_sum) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at;
    int per, units, n_i1, n_r0, s0_i0, s0_r0, s1_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_add_gelu_gelu_slope_mul_sum(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    const W_NUMBERS(row_add_gelu_gelu_slope_mul_sum) of W_ALSO(row_add_gelu_gelu_slope_mul_sum)) {
    W_MEMORY(row_add_gelu_gelu_slope_mul_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, n_i1 = of.n_i1, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_r0 = of.s0_r0, s1_i0 = of.s1_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        int rest = unit;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const float v1 = arg1[i1];
        float t7 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p7 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0 = tile + lane; r0 < end; r0 += 32) {
                const float v0 = arg0[i0*s0_i0 + i1 + r0*s0_r0];
                const float v2 = v0 + v1;
                const float v3 = w_gelu_f32(v2);
                const float v4 = arg3[i0*s0_i0 + i1 + r0*s0_r0];
                const float v5 = w_gelu_slope_f32(v2);
                const float v6 = v4 * v5;
                p7 = p7 + v6;
                arg2[i0*s0_i0 + i1 + r0*s0_r0] = v3;
                arg4[i0*s0_i0 + i1 + r0*s0_r0] = v6;
            }
            t7 = t7 + p7;
        }
        W_HALVES(float, t7, shared->f32, 32, x + y);
        const float v7 = t7;
        if (lane == 0) {
            arg5[i0*s1_i0 + i1] = v7;
        }
    }
}

/*
kernel row_sum (rows 16; reduce 16)
  arg0 f32 in 256
  arg1 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            float t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0 + r0*s0_r0];
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float v1 = t1;
            arg1[i0] = v1;
        }
    }
}

