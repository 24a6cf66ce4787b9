/*
kernel row_max_eq_isnan_or_where (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  arg2 f32 in 128
  arg3 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 bool = eq v0, v1
  v3 bool = isnan v0
  v4 bool = or v2, v3
  v5 f32 row = const 1
  v6 f32 row = const 0
  v7 f32 = where v4, v5, v6
  v8 f32 = load arg2[i0*16 + r0]
  v9 f32 row = reduce sum v8
  v10 f32 row = reduce sum v7
  v11 f32 row = div v9, v10
  v12 f32 = mul v7, v11
  store arg1[i0] = v1
  store arg3[i0*16 + r0] = v12
*/
W_NUMBERS(row_max_eq_isnan_or_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, n_r0, s0_i0;
};
W_ONCE void row_max_eq_isnan_or_where_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 t1 = -INFINITY;
        float16 t9 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p9 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                t1 = w_max_f32(t1, w_sel_f32(w_live(m), v0, (float16)(-INFINITY)));
                const float16 v8 = w_load_f32(arg2 + (i0*s0_i0 + r0), 0, m);
                p9 = p9 + w_sel_f32(w_live(m), v8, (float16)(0.0f));
            }
            t9 = t9 + p9;
        }
        t1 = w_max_f32(t1, t1.s89abcdef01234567);
        t1 = w_max_f32(t1, t1.s4567012389abcdef);
        t1 = w_max_f32(t1, t1.s23016745ab89efcd);
        t1 = w_max_f32(t1, t1.s1032547698badcfe);
        const float v1 = t1.s0;
        t9 = t9 + t9.s89abcdef01234567;
        t9 = t9 + t9.s4567012389abcdef;
        t9 = t9 + t9.s23016745ab89efcd;
        t9 = t9 + t9.s1032547698badcfe;
        const float v9 = t9.s0;
        float16 t10 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p10 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                const int16 v2 = w_bool(v0 == (float16)(v1));
                const int16 v3 = w_isnan_f32(v0);
                const int16 v4 = v2 | v3;
                const float16 v7 = w_sel_f32(v4, (float16)(1.0f), (float16)(0.0f));
                p10 = p10 + w_sel_f32(w_live(m), v7, (float16)(0.0f));
            }
            t10 = t10 + p10;
        }
        t10 = t10 + t10.s89abcdef01234567;
        t10 = t10 + t10.s4567012389abcdef;
        t10 = t10 + t10.s23016745ab89efcd;
        t10 = t10 + t10.s1032547698badcfe;
        const float v10 = t10.s0;
        const float v11 = w_div_f32(v9, v10);
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
            const int16 v2 = w_bool(v0 == (float16)(v1));
            const int16 v3 = w_isnan_f32(v0);
            const int16 v4 = v2 | v3;
            const float16 v7 = w_sel_f32(v4, (float16)(1.0f), (float16)(0.0f));
            const float16 v12 = v7 * (float16)(v11);
            w_store_f32(arg3 + (i0*s0_i0 + r0), 0, m, v12);
        }
        arg1[i0] = v1;
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_max_eq_isnan_or_where(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of) {
    row_max_eq_isnan_or_where_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

