/*
kernel row_max_eq_where_sub_exp (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 128
  arg2 f32 in 128
  arg3 f32 out 128
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
  v14 f32 = load arg2[i0*16 + r0]
  v15 f32 = mul v14, v12
  v16 f32 = mul v14, v7
  v17 f32 row = reduce sum v16
  v18 f32 row = mul v12, v12
  v19 f32 row = mul v17, v18
  v20 f32 row = neg v19
  v21 f32 row = where v9, v4, v20
  v22 f32 = add v15, v21
  v23 f32 = mul v22, v7
  store arg1[i0*16 + r0] = v13
  store arg3[i0*16 + r0] = v23
*/
W_SHARED(row_max_eq_where_sub_exp) {
    float f32[32];
};
W_NUMBERS(row_max_eq_where_sub_exp) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, n_r0, s0_i0;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_max_eq_where_sub_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(row_max_eq_where_sub_exp) of W_ALSO(row_max_eq_where_sub_exp)) {
    W_MEMORY(row_max_eq_where_sub_exp)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
        float kept7[1];
        float kept14[1];
        float t1 = -INFINITY;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = arg0[i0*s0_i0 + r0];
                kept0[turn] = v0;
                t1 = w_max_f32(t1, v0);
            }
        }
        W_HALVES(float, t1, shared->f32, 32, w_max_f32(x, y));
        const float v1 = t1;
        const int v3 = w_bool(v1 == -INFINITY);
        const float v5 = w_sel_f32(v3, 0.0f, v1);
        float t8 = 0.0f;
        float t17 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v6 = v0 - v5;
                const float v7 = w_exp_f32(v6);
                kept7[turn] = v7;
                t8 = t8 + v7;
                const float v14 = arg2[i0*s0_i0 + r0];
                kept14[turn] = v14;
                const float v16 = v14 * v7;
                t17 = t17 + v16;
            }
        }
        W_HALVES(float, t8, shared->f32, 32, x + y);
        const float v8 = t8;
        W_HALVES(float, t17, shared->f32, 32, x + y);
        const float v17 = t17;
        const int v9 = w_bool(v8 == 0.0f);
        const float v11 = w_sel_f32(v9, 1.0f, v8);
        const float v12 = w_recip_f32(v11);
        const float v18 = v12 * v12;
        const float v19 = v17 * v18;
        const float v20 = -v19;
        const float v21 = w_sel_f32(v9, 0.0f, v20);
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v7 = kept7[turn];
                const float v13 = v7 * v12;
                const float v14 = kept14[turn];
                const float v15 = v14 * v12;
                const float v22 = v15 + v21;
                const float v23 = v22 * v7;
                arg1[i0*s0_i0 + r0] = v13;
                arg3[i0*s0_i0 + r0] = v23;
            }
        }
    }
}

