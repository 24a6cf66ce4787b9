/*
kernel row_gt_where_sub_mul_neg (one row; reduce 128)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 1
  v0 f32 = load arg0[r0]
  v1 f32 row = const 0
  v2 bool = gt v0, v1
  v3 f32 row = const 1
  v4 f32 = where v2, v3, v1
  v5 f32 = load arg1[r0]
  v6 f32 = sub v4, v5
  v7 f32 = mul v0, v6
  v8 f32 = neg v0
  v9 f32 = where v2, v8, v0
  v10 f32 = exp v9
  v11 f32 = log1p v10
  v12 f32 = add v7, v11
  v13 f32 row = reduce sum v12
  v14 f32 row = const 0.0078125
  v15 f32 row = mul v13, v14
  store arg2[0] = v15
*/
W_NUMBERS(row_gt_where_sub_mul_neg) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0;
    float c14;
};
W_ONCE void row_gt_where_sub_mul_neg_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_gt_where_sub_mul_neg) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const float c14 = of.c14;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        float16 t13 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 512) {
            float16 p13 = 0.0f;
            const int end = min(tile + 512, n_r0);
            for (int r0 = tile; r0 < end; r0 += 16) {
                const int m = n_r0 - r0;
                const float16 v0 = w_load_f32(arg0 + (r0), 0, m);
                const int16 v2 = w_bool(v0 > (float16)(0.0f));
                const float16 v4 = w_sel_f32(v2, (float16)(1.0f), (float16)(0.0f));
                const float16 v5 = w_load_f32(arg1 + (r0), 0, m);
                const float16 v6 = v4 - v5;
                const float16 v7 = v0 * v6;
                const float16 v8 = -v0;
                const float16 v9 = w_sel_f32(v2, v8, v0);
                const float16 v10 = w_exp_f32(v9);
                const float16 v11 = w_log1p_f32(v10);
                const float16 v12 = v7 + v11;
                p13 = p13 + w_sel_f32(w_live(m), v12, (float16)(0.0f));
            }
            t13 = t13 + p13;
        }
        t13 = t13 + t13.s89abcdef01234567;
        t13 = t13 + t13.s4567012389abcdef;
        t13 = t13 + t13.s23016745ab89efcd;
        t13 = t13 + t13.s1032547698badcfe;
        const float v13 = t13.s0;
        const float v15 = v13 * c14;
        arg2[0] = v15;
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_gt_where_sub_mul_neg(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_gt_where_sub_mul_neg) of) {
    row_gt_where_sub_mul_neg_group(arg0_, arg1_, arg2_, of, w_group(0));
}

