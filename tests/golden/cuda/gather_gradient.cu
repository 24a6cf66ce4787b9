/*
kernel row_sum (rows 16; reduce 8)
  arg0 f32 in 128
  arg1 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  store arg1[i0] = v1
*/
W_NUMBERS(row_sum) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0, n_r0, s0_r0;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_sum(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
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
                    const float v0 = arg0[i0 + r0*s0_r0];
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
kernel row_gather_mul_sum_mul_add (rows 16; reduce 5)
  arg0 i32 in 5
  arg1 f32 in 128
  arg2 f32 out 16
  arg3 f32 in 16
  arg4 f32 out 80
  v0 i32 = load arg0[r0]
  v1 f32 = gather arg1[i0 + v0*16] bound v0 < 8
  v2 f32 = mul v1, v1
  v3 f32 row = reduce sum v2
  v4 f32 row = load arg3[i0]
  v5 f32 = mul v4, v1
  v6 f32 = add v5, v5
  store arg2[i0] = v3
  store arg4[i0 + r0*16] = v6
*/
W_NUMBERS(row_gather_mul_sum_mul_add) {
    long arg0_at, arg1_at, arg2_at, arg3_at, arg4_at;
    int per, units, tile_size, n_i0, n_r0, bound1, pitch1, s0_r0;
    int command;
};
W_KERNEL W_ITEMS(256, 1, 1) void row_gather_mul_sum_mul_add(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(row_gather_mul_sum_mul_add) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, bound1 = of.bound1, pitch1 = of.pitch1, s0_r0 = of.s0_r0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0 = first_lane + lane;
        if (i0 < n_i0) {
            const float v4 = arg3[i0];
            float t3 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float p3 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const int v0 = arg0[r0];
                    const int in1 = v0 >= 0 && v0 < bound1;
                    if (!in1) {
                        w_fault(faults, of.command, W_FAULT_GATHER, v0, bound1, r0);
                    }
                    const float v1 = in1 ? arg1[i0 + convert_int(v0)*pitch1] : 0;
                    const float v2 = v1 * v1;
                    p3 = p3 + v2;
                    const float v5 = v4 * v1;
                    const float v6 = v5 + v5;
                    arg4[i0 + r0*s0_r0] = v6;
                }
                t3 = t3 + p3;
            }
            const float v3 = t3;
            arg2[i0] = v3;
        }
    }
}

