/*
kernel row_sum_mul_sub_mul_sum (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce sum v0
  v2 f32 row = const 0.0625
  v3 f32 row = mul v1, v2
  v4 f32 = sub v0, v3
  v5 f32 = mul v4, v4
  v6 f32 row = reduce sum v5
  v7 f32 row = mul v6, v2
  store arg1[i0] = v7
*/
W_SHARED(row_sum_mul_sub_mul_sum) {
    float f32[32];
};
W_NUMBERS(row_sum_mul_sub_mul_sum) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0;
    float c2;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_sum_mul_sub_mul_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum_mul_sub_mul_sum) of W_ALSO(row_sum_mul_sub_mul_sum)) {
    W_MEMORY(row_sum_mul_sub_mul_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const float c2 = of.c2;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
        float t1 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = arg0[i0*s0_i0 + r0];
                kept0[turn] = v0;
                t1 = t1 + v0;
            }
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        const float v3 = v1 * c2;
        float t6 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v4 = v0 - v3;
                const float v5 = v4 * v4;
                t6 = t6 + v5;
            }
        }
        W_HALVES(float, t6, shared->f32, 32, x + y);
        const float v6 = t6;
        const float v7 = v6 * c2;
        if (lane == 0) {
            arg1[i0] = v7;
        }
    }
}

