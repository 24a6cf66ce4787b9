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
W_ONCE void row_sum_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            float16 t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float16 p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float16 v0 = w_load_step_f32(arg0 + (i0*s0_i0 + r0), s0_i0, 0, m);
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float16 v1 = t1;
            w_store_f32(arg1 + (i0), 0, m, v1);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    row_sum_group(arg0_, arg1_, of, w_group(0));
}

/*
kernel row_sum (rows 3, 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 24
  v0 f32 = load arg0[i1*16 + r0]
  v1 f32 row = reduce sum v0
  store arg1[i0*8 + i1] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s1_i1, s0_i0;
};
W_ONCE void row_sum_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s1_i1 = of.s1_i1, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i1 = rest;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            float t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i1*s1_i1 + r0];
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float v1 = t1;
            w_store_step_f32(arg1 + (i0*s0_i0 + i1), s0_i0, 0, m, (float16)(v1));
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    row_sum_group(arg0_, arg1_, of, w_group(0));
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
W_ONCE void copy_group(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(copy) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i1);
        for (int i1 = first_lane; i1 < end_lane; i1 += 16) {
            const int m = end_lane - i1;
            const int v0 = arg0[i0];
            w_store_i32(arg1 + (i0*s0_i0 + i1), 0, m, (int16)(v0));
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void copy(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    const W_NUMBERS(copy) of) {
    copy_group(arg0_, arg1_, of, w_group(0));
}

