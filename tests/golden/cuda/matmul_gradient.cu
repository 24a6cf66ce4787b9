/*
kernel row_sum (rows 24; reduce 12)
  arg0 f32 in 288
  arg1 f32 out 24
  v0 f32 = load arg0[i0*12 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            float t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0*s0_i0 + r0];
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float v1 = t1;
            arg1[i0] = v1;
        }
    }
}

/*
kernel row_sum (rows 3, 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 24
  v0 f32 = load arg0[i1*16 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0*8 + i1] = v1
*/
W_SHARED(row_sum) {
    float f32[32];
};
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, n_i1, n_r0, s1_i1, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of W_ALSO(row_sum)) {
    W_MEMORY(row_sum)
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, n_i1 = of.n_i1, n_r0 = of.n_r0, s1_i1 = of.s1_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        int rest = unit;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        float t1 = 0.0f;
        for (int tile = 0; tile < n_r0; tile += 1024) {
            float p1 = 0.0f;
            const int end = min(tile + 1024, n_r0);
            for (int r0 = tile + lane; r0 < end; r0 += 32) {
                const float v0 = arg0[i1*s1_i1 + r0];
                p1 = p1 + v0;
            }
            t1 = t1 + p1;
        }
        W_HALVES(float, t1, shared->f32, 32, x + y);
        const float v1 = t1;
        if (lane == 0) {
            arg1[i0*s0_i0 + i1] = v1;
        }
    }
}

/*
kernel copy (rows 24, 12)
  arg0 f32 in 24
  arg1 f32 out 288
  v0 f32 = load arg0[i0]
  store arg1[i0*12 + i1] = v0
*/
W_NUMBERS(copy) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, s0_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void copy(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(copy) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*4;
        if (i1_0 < n_i1) {
            int span1[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i1 = i1_0 + e;
                const int v0 = arg0[i0];
                span1[e] = v0;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg1 + (i0*s0_i0 + i1_0), span1);
        }
    }
}

