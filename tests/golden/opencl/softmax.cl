/*
kernel row_max_eq_where_sub_exp (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 f32 row = const -inf
  v3 bool row = eq v1, v2
  v4 f32 row = const 0
  v5 f32 row = where v3, v4, v1
  v6 f32 = sub v0, v5
  v7 f32 = exp v6
  v8 f32 row = reduce sum v7
  v9 bool row = eq v8, v4
  v10 f32 row = const 1
  v11 f32 row = where v9, v10, v8
  v12 f32 row = recip v11
  v13 f32 = mul v7, v12
  store arg1[i0*16 + r0] = v13
*/
W_NUMBERS(row_max_eq_where_sub_exp) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0;
};
W_ONCE void row_max_eq_where_sub_exp_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_max_eq_where_sub_exp) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float16 kept7[256];
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
        const int v3 = w_bool(v1 == -INFINITY);
        const float v5 = w_sel_f32(v3, 0.0f, v1);
        float16 t8 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p8 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + r0), 0, m);
                const float16 v6 = v0 - (float16)(v5);
                const float16 v7 = w_exp_f32(v6);
                kept7[r0 >> 4] = v7;
                p8 = p8 + w_sel_f32(w_live(m), v7, (float16)(0.0f));
            }
            t8 = t8 + p8;
        }
        t8 = t8 + t8.s89abcdef01234567;
        t8 = t8 + t8.s4567012389abcdef;
        t8 = t8 + t8.s23016745ab89efcd;
        t8 = t8 + t8.s1032547698badcfe;
        const float v8 = t8.s0;
        const int v9 = w_bool(v8 == 0.0f);
        const float v11 = w_sel_f32(v9, 1.0f, v8);
        const float v12 = w_recip_f32(v11);
        for (int r0 = 0; r0 < n_r0; r0 += 16) {
            const int m = n_r0 - r0;
            const float16 v7 = kept7[r0 >> 4];
            const float16 v13 = v7 * (float16)(v12);
            w_store_f32(arg1 + (i0*s0_i0 + r0), 0, m, v13);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_max_eq_where_sub_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_max_eq_where_sub_exp) of) {
    row_max_eq_where_sub_exp_group(arg0_, arg1_, of, w_group(0));
}

