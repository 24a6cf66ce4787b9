/*
kernel row_mul_sum_mul_add_rsqrt (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 in 16
  arg2 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 = mul v0, v0
  v2 f32 row = reduce sum v1
  v3 f32 row = const 0.0625
  v4 f32 row = mul v2, v3
  v5 f32 row = const 1e-05
  v6 f32 row = add v4, v5
  v7 f32 row = rsqrt v6
  v8 f32 = mul v0, v7
  v9 f32 = load arg1[r0]
  v10 f32 = mul v8, v9
  store arg2[i0*16 + r0] = v10
*/
W_SHARED(row_mul_sum_mul_add_rsqrt) {
    float f32[32];
};
W_NUMBERS(row_mul_sum_mul_add_rsqrt) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0, s0_i0;
    float c3, c5;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_mul_sum_mul_add_rsqrt(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_mul_sum_mul_add_rsqrt) of W_ALSO(row_mul_sum_mul_add_rsqrt)) {
    W_MEMORY(row_mul_sum_mul_add_rsqrt)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const float c3 = of.c3, c5 = of.c5;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
        float t2 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = arg0[i0*s0_i0 + r0];
                kept0[turn] = v0;
                const float v1 = v0 * v0;
                t2 = t2 + v1;
            }
        }
        W_HALVES(float, t2, shared->f32, 32, x + y);
        const float v2 = t2;
        const float v4 = v2 * c3;
        const float v6 = v4 + c5;
        const float v7 = w_rsqrt_f32(v6);
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v8 = v0 * v7;
                const float v9 = arg1[r0];
                const float v10 = v8 * v9;
                arg2[i0*s0_i0 + r0] = v10;
            }
        }
    }
}

