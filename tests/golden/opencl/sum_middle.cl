/*
kernel row_sum (rows 3, 16; reduce 8)
  arg0 f32 in 384
  arg1 f32 out 48
  v0 f32 = load arg0[i0*128 + i1 + r0*16]
  v1 f32 row = reduce sum v0
  store arg1[i0*16 + i1] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, n_r0, s0_i0, s0_r0, s1_i0;
};
W_KERNEL W_ITEMS(64, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, n_r0 = of.n_r0, s0_i0 = of.s0_i0, s0_r0 = of.s0_r0, s1_i0 = of.s1_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1 = first_lane + lane;
        if (i1 < n_i1) {
            float t1 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p1 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const float v0 = arg0[i0*s0_i0 + i1 + r0*s0_r0];
                    p1 = p1 + v0;
                }
                t1 = t1 + p1;
            }
            const float v1 = t1;
            arg1[i0*s1_i0 + i1] = v1;
        }
    }
}

