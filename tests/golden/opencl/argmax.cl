/*
kernel row_max_eq_isnan_or_where (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 i32 out 8
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 bool = eq v0, v1
  v3 bool = isnan v0
  v4 bool = or v2, v3
  v5 i32 = index r0
  v6 i32 row = const 2147483647
  v7 i32 = where v4, v5, v6
  v8 i32 row = reduce min v7
  store arg1[i0] = v8
*/
W_NUMBERS(row_max_eq_isnan_or_where) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0, c6;
};
W_ONCE void row_max_eq_isnan_or_where_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0, c6 = of.c6;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 t1 = -INFINITY;
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
            t1 = w_max_f32(t1, w_sel_f32(w_live(m), v0, (float16)(-INFINITY)));
        }
        t1 = w_max_f32(t1, t1.s89abcdef01234567);
        t1 = w_max_f32(t1, t1.s4567012389abcdef);
        t1 = w_max_f32(t1, t1.s23016745ab89efcd);
        t1 = w_max_f32(t1, t1.s1032547698badcfe);
        const float v1 = t1.s0;
        int16 t8 = 2147483647;
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
            const int16 v2 = w_bool(v0 == (float16)(v1));
            const int16 v3 = w_isnan_f32(v0);
            const int16 v4 = v2 | v3;
            const int16 v5 = convert_int16((int16)((r0 + W_LANES)));
            const int16 v7 = w_sel_i32(v4, v5, (int16)(c6));
            t8 = w_min_i32(t8, w_sel_i32(w_live(m), v7, (int16)(2147483647)));
        }
        t8 = w_min_i32(t8, t8.s89abcdef01234567);
        t8 = w_min_i32(t8, t8.s4567012389abcdef);
        t8 = w_min_i32(t8, t8.s23016745ab89efcd);
        t8 = w_min_i32(t8, t8.s1032547698badcfe);
        const int v8 = t8.s0;
        arg1[i0] = v8;
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_max_eq_isnan_or_where(
    const W_GLOBAL float *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of) {
    row_max_eq_isnan_or_where_group(arg0_, arg1_, of, w_group(0));
}

