/*
kernel row_max_eq_where_sum_sum (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  arg2 f32 in 128
  arg3 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 bool = eq v0, v1
  v3 f32 row = const 1
  v4 f32 row = const 0
  v5 f32 = where v2, v3, v4
  v6 f32 = load arg2[i0*16 + r0]
  v7 f32 row = reduce sum v6
  v8 f32 row = reduce sum v5
  v9 f32 row = div v7, v8
  v10 f32 = mul v5, v9
  store arg1[i0] = v1
  store arg3[i0*16 + r0] = v10
*/
W_NUMBERS(row_max_eq_where_sum_sum) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, n_r0, s0_i0;
};
W_KERNEL W_ITEMS(1, 1, 1) void row_max_eq_where_sum_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(row_max_eq_where_sum_sum) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 t1 = -INFINITY;
        float16 t7 = 0.0f;
        for (int strip = 0; strip < n_r0; strip += 512) {
            float16 p7 = 0.0f;
            const int end = min(strip + 512, n_r0);
            for (int r0 = strip; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                t1 = w_max_f32(t1, w_sel_f32(w_live(m), v0, (float16)(-INFINITY)));
                const float16 v6 = w_load_f32(arg2 + (i0*s0_i0 + r0), 0, m);
                p7 = p7 + w_sel_f32(w_live(m), v6, (float16)(0.0f));
            }
            t7 = t7 + p7;
        }
        t1 = w_max_f32(t1, t1.s89abcdef01234567);
        t1 = w_max_f32(t1, t1.s4567012389abcdef);
        t1 = w_max_f32(t1, t1.s23016745ab89efcd);
        t1 = w_max_f32(t1, t1.s1032547698badcfe);
        const float v1 = t1.s0;
        t7 = t7 + t7.s89abcdef01234567;
        t7 = t7 + t7.s4567012389abcdef;
        t7 = t7 + t7.s23016745ab89efcd;
        t7 = t7 + t7.s1032547698badcfe;
        const float v7 = t7.s0;
        float16 t8 = 0.0f;
        for (int strip = 0; strip < n_r0; strip += 512) {
            float16 p8 = 0.0f;
            const int end = min(strip + 512, n_r0);
            for (int r0 = strip; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                const int16 v2 = w_bool(v0 == (float16)(v1));
                const float16 v5 = w_sel_f32(v2, (float16)(1.0f), (float16)(0.0f));
                p8 = p8 + w_sel_f32(w_live(m), v5, (float16)(0.0f));
            }
            t8 = t8 + p8;
        }
        t8 = t8 + t8.s89abcdef01234567;
        t8 = t8 + t8.s4567012389abcdef;
        t8 = t8 + t8.s23016745ab89efcd;
        t8 = t8 + t8.s1032547698badcfe;
        const float v8 = t8.s0;
        const float v9 = w_div_f32(v7, v8);
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
            const int16 v2 = w_bool(v0 == (float16)(v1));
            const float16 v5 = w_sel_f32(v2, (float16)(1.0f), (float16)(0.0f));
            const float16 v10 = v5 * (float16)(v9);
            w_store_f32(arg3 + (i0*s0_i0 + r0), 0, m, v10);
        }
        arg1[i0] = v1;
    }
}

