/*
kernel row_sum (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0;
};
W_ONCE void row_sum_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 t1 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p1 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                p1 = p1 + w_sel_f32(w_live(m), v0, (float16)(0.0f));
            }
            t1 = t1 + p1;
        }
        t1 = t1 + t1.s89abcdef01234567;
        t1 = t1 + t1.s4567012389abcdef;
        t1 = t1 + t1.s23016745ab89efcd;
        t1 = t1 + t1.s1032547698badcfe;
        const float v1 = t1.s0;
        arg1[i0] = v1;
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    row_sum_group(arg0_, arg1_, of, w_group(0));
}

