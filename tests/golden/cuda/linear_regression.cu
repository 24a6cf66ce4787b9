/*
kernel fold_mul_sum_add_sub_mul (blocks 64; rows 160; reduce 4)
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
  v6 f32 row = load arg2[i0*160 + f0]
  v7 f32 row = sub v5, v6
  v8 f32 row = mul v7, v7
  v9 f32 block = fold sum v8
  v10 f32 row = const 9.765625e-05
  v11 f32 row = mul v10, v7
  v12 f32 row = add v11, v11
  v13 f32 = mul v0, v12
  v14 f32 column = fold sum v13
  v15 f32 block = fold sum v12
  store arg3[i0] = v9
  store arg4[i0*4 + r0] = v14
  store arg5[i0] = v15
*/
W_SHARED(fold_mul_sum_add_sub_mul) {
    float f32[128];
};
W_NUMBERS(fold_mul_sum_add_sub_mul) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at, arg5_at;
    int per, units, n_f0, s1_i0, n_r0, s0_i0, s0_f0, s2_i0;
    float c10;
};
W_KERNEL W_ITEMS_BESIDE(256, 3) void fold_mul_sum_add_sub_mul(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL float *arg5_,
    const W_NUMBERS(fold_mul_sum_add_sub_mul) of W_ALSO(fold_mul_sum_add_sub_mul)) {
    W_MEMORY(fold_mul_sum_add_sub_mul)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    W_GLOBAL float *arg5 = arg5_ + of.arg5_at;
    const int per = of.per, units = of.units, n_f0 = of.n_f0, s1_i0 = of.s1_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_f0 = of.s0_f0, s2_i0 = of.s2_i0;
    const float c10 = of.c10;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float kept0[1];
        float b9 = 0.0f;
        float b15 = 0.0f;
        float s14[1];
        W_UNROLL
        for (int e = 0; e < 1; e++) s14[e] = 0.0f;
        for (int f0 = team; f0 < n_f0; f0 += 8) {
            const float v4 = arg1[0];
            const float v6 = arg2[i0*s1_i0 + f0];
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
            const float v7 = v5 - v6;
            const float v8 = v7 * v7;
            const float v11 = c10 * v7;
            const float v12 = v11 + v11;
            W_UNROLL
            for (int turn = 0; turn < 1; turn++) {
                const int r0 = turn*32 + lane;
                if (r0 < n_r0) {
                    const float v0 = kept0[turn];
                    const float v13 = v0 * v12;
                    s14[turn] = s14[turn] + v13;
                }
            }
            b9 = b9 + v8;
            b15 = b15 + v12;
        }
        W_TEAMS_SHARE(float, b9, shared->f32, 32, 8, x + y);
        const float v9 = b9;
        if (lane == 0 && team == 0) {
            arg3[i0] = v9;
        }
        W_TEAMS_SHARE(float, b15, shared->f32, 32, 8, x + y);
        const float v15 = b15;
        if (lane == 0 && team == 0) {
            arg5[i0] = v15;
        }
        W_TEAMS(float, s14, 1, shared->f32, 32, 8, x + y);
        if (team == 0) {
            W_UNROLL
            for (int turn = 0; turn < 1; turn++) {
                const int r0 = turn*32 + lane;
                if (r0 < n_r0) {
                    const float c14 = s14[turn];
                    const float v14 = c14;
                    arg4[i0*s2_i0 + r0] = v14;
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

