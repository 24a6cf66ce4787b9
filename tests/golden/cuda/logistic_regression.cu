/*
kernel fold_mul_sum_add_gt_where (blocks 64; rows 160; reduce 4)
  arg0 f32 in 40960
  arg1 f32 in 16
  arg2 f32 in 10240
  arg3 f32 out 64
  arg4 f32 out 256
  arg5 f32 out 64
  v0 f32 = load arg0[i0*640 + f0*4 + r0]
  v1 f32 = load arg1[r0]
  v2 f32 = mul v0, v1
  v3 f32 row = reduce sum v2
  v4 f32 row = load arg1[0]
  v5 f32 row = add v3, v4
  v6 f32 row = const 0
  v7 bool row = gt v5, v6
  v8 f32 row = const 1
  v9 f32 row = where v7, v8, v6
  v10 f32 row = load arg2[i0*160 + f0]
  v11 f32 row = sub v9, v10
  v12 f32 row = mul v5, v11
  v13 f32 row = neg v5
  v14 f32 row = where v7, v13, v5
  v15 f32 row = exp v14
  v16 f32 row = log1p v15
  v17 f32 row = add v12, v16
  v18 f32 block = fold sum v17
  v19 f32 row = const 9.765625e-05
  v20 f32 row = const 1
  v21 f32 row = add v15, v20
  v22 f32 row = div v19, v21
  v23 f32 row = mul v22, v15
  v24 f32 row = where v7, v6, v23
  v25 f32 row = where v7, v23, v6
  v26 f32 row = neg v25
  v27 f32 row = add v24, v26
  v28 f32 row = mul v19, v11
  v29 f32 row = add v27, v28
  v30 f32 = mul v0, v29
  v31 f32 column = fold sum v30
  v32 f32 block = fold sum v29
  store arg3[i0] = v18
  store arg4[i0*4 + r0] = v31
  store arg5[i0] = v32
*/
W_SHARED(fold_mul_sum_add_gt_where) {
    float f32[128];
};
W_NUMBERS(fold_mul_sum_add_gt_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at;
    int per, units, n_f0, s1_i0, n_r0, s0_i0, s0_f0, s2_i0;
    float c19;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void fold_mul_sum_add_gt_where(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    const W_NUMBERS(fold_mul_sum_add_gt_where) of W_ALSO(fold_mul_sum_add_gt_where)) {
    W_MEMORY(fold_mul_sum_add_gt_where)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, n_f0 = of.n_f0, s1_i0 = of.s1_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_f0 = of.s0_f0, s2_i0 = of.s2_i0;
    const float c19 = of.c19;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float kept0[1];
        float b18 = 0.0f;
        float b32 = 0.0f;
        float s31[1];
        W_UNROLL
        for (int e = 0; e < 1; e++) s31[e] = 0.0f;
        for (int f0 = team; f0 < n_f0; f0 += 8) {
            const float v4 = arg1[0];
            const float v10 = arg2[i0*s1_i0 + f0];
            float t3 = 0.0f;
            W_UNROLL
            for (int turn = 0; turn < 1; turn++) {
                const int r0 = turn*32 + lane;
                if (r0 < n_r0) {
                    const float v0 = arg0[i0*s0_i0 + f0*s0_f0 + r0];
                    kept0[turn] = v0;
                    const float v1 = arg1[r0];
                    const float v2 = v0 * v1;
                    t3 = t3 + v2;
                }
            }
            W_HALVES(float, t3, shared->f32, 32, x + y);
            const float v3 = t3;
            const float v5 = v3 + v4;
            const int v7 = w_bool(v5 > 0.0f);
            const float v9 = w_sel_f32(v7, 1.0f, 0.0f);
            const float v11 = v9 - v10;
            const float v12 = v5 * v11;
            const float v13 = -v5;
            const float v14 = w_sel_f32(v7, v13, v5);
            const float v15 = w_exp_f32(v14);
            const float v16 = w_log1p_f32(v15);
            const float v17 = v12 + v16;
            const float v21 = v15 + 1.0f;
            const float v22 = w_div_f32(c19, v21);
            const float v23 = v22 * v15;
            const float v24 = w_sel_f32(v7, 0.0f, v23);
            const float v25 = w_sel_f32(v7, v23, 0.0f);
            const float v26 = -v25;
            const float v27 = v24 + v26;
            const float v28 = c19 * v11;
            const float v29 = v27 + v28;
            W_UNROLL
            for (int turn = 0; turn < 1; turn++) {
                const int r0 = turn*32 + lane;
                if (r0 < n_r0) {
                    const float v0 = kept0[turn];
                    const float v30 = v0 * v29;
                    s31[turn] = s31[turn] + v30;
                }
            }
            b18 = b18 + v17;
            b32 = b32 + v29;
        }
        W_TEAMS_SHARE(float, b18, shared->f32, 32, 8, x + y);
        const float v18 = b18;
        if (lane == 0 && team == 0) {
            arg3[i0] = v18;
        }
        W_TEAMS_SHARE(float, b32, shared->f32, 32, 8, x + y);
        const float v32 = b32;
        if (lane == 0 && team == 0) {
            arg5[i0] = v32;
        }
        W_TEAMS(float, s31, 1, shared->f32, 32, 8, x + y);
        if (team == 0) {
            W_UNROLL
            for (int turn = 0; turn < 1; turn++) {
                const int r0 = turn*32 + lane;
                if (r0 < n_r0) {
                    const float c31 = s31[turn];
                    const float v31 = c31;
                    arg4[i0*s2_i0 + r0] = v31;
                }
            }
        }
    }
}

/*
kernel row_sum_mul_sub (rows 4; reduce 64)
  arg0 f32 in 16
  arg1 f32 in 256
  arg2 f32 out 4
  v0 f32 row = load arg0[i0]
  v1 f32 = load arg1[i0 + r0*4]
  v2 f32 row = reduce sum v1
  v3 f32 row = const 0.1
  v4 f32 row = mul v2, v3
  v5 f32 row = sub v0, v4
  store arg2[i0] = v5
*/
W_SHARED(row_sum_mul_sub) {
    float f32[32];
};
W_NUMBERS(row_sum_mul_sub) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0, s0_r0;
    float c3;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum_mul_sub(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_sum_mul_sub) of W_ALSO(row_sum_mul_sub)) {
    W_MEMORY(row_sum_mul_sub)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
    const float c3 = of.c3;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        const float v0 = arg0[i0];
        float t2 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p2 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0 = tile + lane; r0 < end; r0 += 32) {
                const float v1 = arg1[i0 + r0*s0_r0];
                p2 = p2 + v1;
            }
            t2 = t2 + p2;
        }
        W_HALVES(float, t2, shared->f32, 32, x + y);
        const float v2 = t2;
        const float v4 = v2 * c3;
        const float v5 = v0 - v4;
        if (lane == 0) {
            arg2[i0] = v5;
        }
    }
}

/*
kernel row_sum_mul_sum_mul_sub (rows 1; reduce 64)
  arg0 f32 in 64
  arg1 f32 out 1
  arg2 f32 in 16
  arg3 f32 in 64
  arg4 f32 out 1
  v0 f32 = load arg0[r0]
  v1 f32 row = reduce sum v0
  v2 f32 row = const 9.765625e-05
  v3 f32 row = mul v1, v2
  v4 f32 row = load arg2[0]
  v5 f32 = load arg3[r0]
  v6 f32 row = reduce sum v5
  v7 f32 row = const 0.1
  v8 f32 row = mul v6, v7
  v9 f32 row = sub v4, v8
  store arg1[0] = v3
  store arg4[0] = v9
*/
W_SHARED(row_sum_mul_sum_mul_sub) {
    float f32[32];
};
W_NUMBERS(row_sum_mul_sum_mul_sub) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at;
    int per, units, n_r0;
    float c2, c7;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum_mul_sum_mul_sub(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    const W_NUMBERS(row_sum_mul_sum_mul_sub) of W_ALSO(row_sum_mul_sum_mul_sub)) {
    W_MEMORY(row_sum_mul_sum_mul_sub)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const float c2 = of.c2, c7 = of.c7;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const float v4 = arg2[0];
        float t1 = 0.0f;
        float t6 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p1 = 0.0f;
            float p6 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0_0 = tile + lane*2; r0_0 < end; r0_0 += 64) {
                float span0[2];
                W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (r0_0), span0);
                float span5[2];
                W_READ_ALIGNED(f32, float, ulong, 2, arg3 + (r0_0), span5);
                W_UNROLL
                for (int e = 0; e < 2; e++) {
                    const int r0 = r0_0 + e;
                    const float v0 = span0[e];
                    p1 = p1 + v0;
                    const float v5 = span5[e];
                    p6 = p6 + v5;
                }
            }
            t1 = t1 + p1;
            t6 = t6 + p6;
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        W_HALVES(float, t6, shared->f32, 32, x + y);
        const float v6 = t6;
        const float v3 = v1 * c2;
        const float v8 = v6 * c7;
        const float v9 = v4 - v8;
        if (lane == 0) {
            arg1[0] = v3;
        }
        if (lane == 0) {
            arg4[0] = v9;
        }
    }
}

