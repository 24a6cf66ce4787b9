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

/*
kernel copy (rows 16)
  arg0 i32 out 16
  v0 i32 = index i0
  store arg0[i0] = v0
*/
W_NUMBERS(copy) {
    long arg0_at;
    int per, units, tile_size, n_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void copy(
    W_GLOBAL int *arg0_,
    const W_NUMBERS(copy) of) {
    W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            int span1[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const int v0 = convert_int((int)(i0));
                span1[e] = v0;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg0 + (i0_0), span1);
        }
    }
}

/*
kernel row_sum (one row; reduce 128)
  arg0 f32 in 128
  arg1 f32 out 1
  v0 f32 = load arg0[r0]
  v1 f32 row = reduce sum v0
  store arg1[0] = v1
*/
W_SHARED(row_sum) {
    float f32[32];
};
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, n_r0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of W_ALSO(row_sum)) {
    W_MEMORY(row_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        float t1 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p1 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0_0 = tile + lane*4; r0_0 < end; r0_0 += 128) {
                float span0[4];
                W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (r0_0), span0);
                W_UNROLL
                for (int e = 0; e < 4; e++) {
                    const int r0 = r0_0 + e;
                    const float v0 = span0[e];
                    p1 = p1 + v0;
                }
            }
            t1 = t1 + p1;
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        if (lane == 0) {
            arg1[0] = v1;
        }
    }
}

/*
kernel row_max_eq_where_sub_exp (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 8
  arg2 i32 in 8
  arg3 i32 in 16
  arg4 f32 out 8
  arg5 f32 in 1
  arg6 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 f32 row = const -inf
  v3 bool row = eq v1, v2
  v4 f32 row = const 0
  v5 f32 row = where v3, v4, v1
  v6 f32 = sub v0, v5
  v7 f32 = exp v6
  v8 f32 row = reduce sum v7
  v9 i32 row = load arg2[i0]
  v10 i32 row = gather arg3[v9] bound v9 < 16
  v11 i32 = index r0
  v12 bool = eq v10, v11
  v13 f32 row = const 0
  v14 f32 = where v12, v6, v13
  v15 f32 row = reduce sum v14
  v16 f32 row = load arg5[0]
  v17 f32 row = const 0.125
  v18 f32 row = mul v16, v17
  v19 f32 row = neg v18
  v20 f32 = where v12, v19, v13
  v21 f32 row = const 0
  v22 bool row = eq v8, v21
  v23 f32 row = const 1
  v24 f32 row = where v22, v23, v8
  v25 f32 row = div v18, v24
  v26 f32 row = where v22, v21, v25
  v27 f32 = mul v26, v7
  v28 f32 = add v20, v27
  store arg1[i0] = v8
  store arg4[i0] = v15
  store arg6[i0*16 + r0] = v28
*/
W_SHARED(row_max_eq_where_sub_exp) {
    float f32[32];
};
W_NUMBERS(row_max_eq_where_sub_exp) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at, arg6_at;
    int per, units, bound10, pitch10, n_r0, s0_i0;
    float c17;
    int command;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void row_max_eq_where_sub_exp(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL int *arg2_,
    const W_GLOBAL int *arg3_,
    W_GLOBAL float *arg4_,
    const W_GLOBAL float *arg5_,
    W_GLOBAL float *arg6_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(row_max_eq_where_sub_exp) of W_ALSO(row_max_eq_where_sub_exp)) {
    W_MEMORY(row_max_eq_where_sub_exp)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL int *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL int *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    W_GLOBAL float *arg6 = arg6_ + of.arg6_at;
    const int per = of.per, units = of.units, bound10 = of.bound10, pitch10 = of.pitch10, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const float c17 = of.c17;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float kept0[1];
        float kept7[1];
        const int v9 = arg2[i0];
        const int in10 = v9 >= 0 && v9 < bound10;
        if (!in10) {
            w_fault(faults, of.command, W_FAULT_GATHER, v9, bound10, i0);
        }
        const int v10 = in10 ? arg3[0 + convert_int(v9)*pitch10] : 0;
        const float v16 = arg5[0];
        const float v18 = v16 * c17;
        const float v19 = -v18;
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
        float t15 = 0.0f;
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v0 = kept0[turn];
                const float v6 = v0 - v5;
                const float v7 = w_exp_f32(v6);
                kept7[turn] = v7;
                t8 = t8 + v7;
                const int v11 = convert_int((int)(r0));
                const int v12 = w_bool(v10 == v11);
                const float v14 = w_sel_f32(v12, v6, 0.0f);
                t15 = t15 + v14;
            }
        }
        W_HALVES(float, t8, shared->f32, 32, x + y);
        const float v8 = t8;
        W_HALVES(float, t15, shared->f32, 32, x + y);
        const float v15 = t15;
        const int v22 = w_bool(v8 == 0.0f);
        const float v24 = w_sel_f32(v22, 1.0f, v8);
        const float v25 = w_div_f32(v18, v24);
        const float v26 = w_sel_f32(v22, 0.0f, v25);
        W_UNROLL
        for (int turn = 0; turn < 1; turn++) {
            const int r0 = turn*32 + lane;
            if (r0 < n_r0) {
                const float v7 = kept7[turn];
                const int v11 = convert_int((int)(r0));
                const int v12 = w_bool(v10 == v11);
                const float v20 = w_sel_f32(v12, v19, 0.0f);
                const float v27 = v26 * v7;
                const float v28 = v20 + v27;
                arg6[i0*s0_i0 + r0] = v28;
            }
        }
        if (lane == 0) {
            arg1[i0] = v8;
        }
        if (lane == 0) {
            arg4[i0] = v15;
        }
    }
}

/*
kernel row_eq_where_log_sub_sum (one row; reduce 8)
  arg0 f32 in 8
  arg1 f32 in 8
  arg2 f32 out 1
  v0 f32 = load arg0[r0]
  v1 f32 row = const 0
  v2 bool = eq v0, v1
  v3 f32 row = const 1
  v4 f32 = where v2, v3, v0
  v5 f32 = log v4
  v6 f32 = load arg1[r0]
  v7 f32 = sub v5, v6
  v8 f32 row = reduce sum v7
  v9 f32 row = const 0.125
  v10 f32 row = mul v8, v9
  store arg2[0] = v10
*/
W_SHARED(row_eq_where_log_sub_sum) {
    float f32[32];
};
W_NUMBERS(row_eq_where_log_sub_sum) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0;
    float c9;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_eq_where_log_sub_sum(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_eq_where_log_sub_sum) of W_ALSO(row_eq_where_log_sub_sum)) {
    W_MEMORY(row_eq_where_log_sub_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const float c9 = of.c9;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        float t8 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p8 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0 = tile + lane; r0 < end; r0 += 32) {
                const float v0 = arg0[r0];
                const int v2 = w_bool(v0 == 0.0f);
                const float v4 = w_sel_f32(v2, 1.0f, v0);
                const float v5 = w_log_f32(v4);
                const float v6 = arg1[r0];
                const float v7 = v5 - v6;
                p8 = p8 + v7;
            }
            t8 = t8 + p8;
        }
        W_HALVES(float, t8, shared->f32, 32, x + y);
        const float v8 = t8;
        const float v10 = v8 * c9;
        if (lane == 0) {
            arg2[0] = v10;
        }
    }
}

