/*
kernel row_sum (rows 16; reduce 5000)
  arg0 f32 in 80000
  arg1 f32 out 16
  v0 f32 = load arg0[i0*5000 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_SHARED(row_sum) {
    float f32[256];
};
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of W_ALSO(row_sum)) {
    W_MEMORY(row_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int i0 = unit;
        float t1 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 8192) {
            float p1 = 0.0f;
            const int end = min(tile + 8192, n_r0);
            for (int r0_0 = tile + lane*4; r0_0 < end; r0_0 += 1024) {
                float span0[4];
                W_READ_ALIGNED(f32, float, uint4, 4, arg0 + (i0*s0_i0 + r0_0), span0);
                W_UNROLL
                for (int e = 0; e < 4; e++) {
                    const int r0 = r0_0 + e;
                    const float v0 = span0[e];
                    p1 = p1 + v0;
                }
            }
            t1 = t1 + p1;
        }
        W_HALVES(float, t1, shared->f32, 256, x + y);
        const float v1 = t1;
        if (lane == 0) {
            arg1[i0] = v1;
        }
    }
}

/*
kernel row_sum (rows 4; reduce 4)
  arg0 f32 in 16
  arg1 f32 out 4
  v0 f32 = load arg0[i0*4 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_SHARED(row_sum) {
    float f32[32];
};
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, n_r0, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of W_ALSO(row_sum)) {
    W_MEMORY(row_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int i0 = unit;
        float t1 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p1 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0 = tile + lane; r0 < end; r0 += 32) {
                const float v0 = arg0[i0*s0_i0 + r0];
                p1 = p1 + v0;
            }
            t1 = t1 + p1;
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        if (lane == 0) {
            arg1[i0] = v1;
        }
    }
}

