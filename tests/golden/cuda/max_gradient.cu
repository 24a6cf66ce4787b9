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
W_SHARED(row_max_eq_isnan_or_where) {
    float f32[32];
};
W_NUMBERS(row_max_eq_isnan_or_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, n_r0, s0_i0;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_max_eq_isnan_or_where(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of W_ALSO(row_max_eq_isnan_or_where)) {
    W_MEMORY(row_max_eq_isnan_or_where)
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
        float t1 = -INFINITY;
        float t9 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = arg0[i0*s0_i0 + r0];
                kept0[turn] = v0;
                t1 = w_max_f32(t1, v0);
                const float v8 = arg2[i0*s0_i0 + r0];
                t9 = t9 + v8;
            }
        }
        W_HALVES(float, t1, shared->f32, 32, w_max_f32(x, y));
        const float v1 = t1;
        W_HALVES(float, t9, shared->f32, 32, x + y);
        const float v9 = t9;
        float t10 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const int v2 = w_bool(v0 == v1);
                const int v3 = w_isnan_f32(v0);
                const int v4 = v2 | v3;
                const float v7 = w_sel_f32(v4, 1.0f, 0.0f);
                t10 = t10 + v7;
            }
        }
        W_HALVES(float, t10, shared->f32, 32, x + y);
        const float v10 = t10;
        const float v11 = w_div_f32(v9, v10);
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const int v2 = w_bool(v0 == v1);
                const int v3 = w_isnan_f32(v0);
                const int v4 = v2 | v3;
                const float v7 = w_sel_f32(v4, 1.0f, 0.0f);
                const float v12 = v7 * v11;
                arg3[i0*s0_i0 + r0] = v12;
            }
        }
        if (lane == 0) {
            arg1[i0] = v1;
        }
    }
}

