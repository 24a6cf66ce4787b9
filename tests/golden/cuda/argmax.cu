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
W_SHARED(row_max_eq_isnan_or_where) {
    float f32[32];
    int i32[32];
};
W_NUMBERS(row_max_eq_isnan_or_where) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0, c6;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_max_eq_isnan_or_where(
    const W_GLOBAL float *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(row_max_eq_isnan_or_where) of W_ALSO(row_max_eq_isnan_or_where)) {
    W_MEMORY(row_max_eq_isnan_or_where)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0, c6 = of.c6;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
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
        int t8 = 2147483647;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const int v2 = w_bool(v0 == v1);
                const int v3 = w_isnan_f32(v0);
                const int v4 = v2 | v3;
                const int v5 = convert_int((int)(r0));
                const int v7 = w_sel_i32(v4, v5, c6);
                t8 = w_min_i32(t8, v7);
            }
        }
        W_HALVES(int, t8, shared->i32, 32, w_min_i32(x, y));
        const int v8 = t8;
        if (lane == 0) {
            arg1[i0] = v8;
        }
    }
}

