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
W_NUMBERS(row_mul_sum_mul_add_rsqrt) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0, s0_i0;
    float c3, c5;
};
W_ONCE void row_mul_sum_mul_add_rsqrt_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_mul_sum_mul_add_rsqrt) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const float c3 = of.c3, c5 = of.c5;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 t2 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p2 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                const float16 v1 = v0 * v0;
                p2 = p2 + w_sel_f32(w_live(m), v1, (float16)(0.0f));
            }
            t2 = t2 + p2;
        }
        t2 = t2 + t2.s89abcdef01234567;
        t2 = t2 + t2.s4567012389abcdef;
        t2 = t2 + t2.s23016745ab89efcd;
        t2 = t2 + t2.s1032547698badcfe;
        const float v2 = t2.s0;
        const float v4 = v2 * c3;
        const float v6 = v4 + c5;
        const float v7 = w_rsqrt_f32(v6);
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
            const float16 v8 = v0 * (float16)(v7);
            const float16 v9 = w_load_f32(arg1 + (r0), 0, m);
            const float16 v10 = v8 * v9;
            w_store_f32(arg2 + (i0*s0_i0 + r0), 0, m, v10);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_mul_sum_mul_add_rsqrt(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_mul_sum_mul_add_rsqrt) of) {
    row_mul_sum_mul_add_rsqrt_group(arg0_, arg1_, arg2_, of, w_group(0));
}

