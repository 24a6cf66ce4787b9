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
W_SHARED(row_gt_where_sub_mul_neg) {
    float f32[32];
};
W_NUMBERS(row_gt_where_sub_mul_neg) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, n_r0;
    float c14;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_gt_where_sub_mul_neg(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(row_gt_where_sub_mul_neg) of W_ALSO(row_gt_where_sub_mul_neg)) {
    W_MEMORY(row_gt_where_sub_mul_neg)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0;
    const float c14 = of.c14;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        float t13 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p13 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0_0 = tile + lane*4; r0_0 < end; r0_0 += 128) {
                float span0[4];
                W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (r0_0), span0);
                float span5[4];
                W_READ_ALIGNED(f32, float, uint4, 4, arg1 + (r0_0), span5);
                W_UNROLL
                for (int e = 0; e < 4; e++) {
                    const int r0 = r0_0 + e;
                    const float v0 = span0[e];
                    const int v2 = w_bool(v0 > 0.0f);
                    const float v4 = w_sel_f32(v2, 1.0f, 0.0f);
                    const float v5 = span5[e];
                    const float v6 = v4 - v5;
                    const float v7 = v0 * v6;
                    const float v8 = -v0;
                    const float v9 = w_sel_f32(v2, v8, v0);
                    const float v10 = w_exp_f32(v9);
                    const float v11 = w_log1p_f32(v10);
                    const float v12 = v7 + v11;
                    p13 = p13 + v12;
                }
            }
            t13 = t13 + p13;
        }
        W_HALVES(float, t13, shared->f32, 32, x + y);
        const float v13 = t13;
        const float v15 = v13 * c14;
        if (lane == 0) {
            arg2[0] = v15;
        }
    }
}

