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
W_ONCE void row_sum_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(row_sum) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, s0_r0 = of.s0_r0;
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
                    const float16 v0 = w_load_f32(arg0 + (i0 + r0*s0_r0), 0, m);
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
W_ONCE void row_gather_mul_sum_mul_add_group(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(row_gather_mul_sum_mul_add) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    W_GLOBAL float *arg4 = arg4_ + of.arg4_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0, n_r0 = of.n_r0, bound1 = of.bound1, pitch1 = of.pitch1, s0_r0 = of.s0_r0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const float16 v4 = w_load_f32(arg3 + (i0), 0, m);
            float16 t3 = 0.0f;
            for (int tile = 0; tile < n_r0; tile += 32) {
                float16 p3 = 0.0f;
                const int end = min(tile + 32, n_r0);
                for (int r0 = tile; r0 < end; r0 += 1) {
                    const int v0 = arg0[r0];
                    const int in1 = v0 >= 0 && v0 < bound1;
                    if (!in1) {
                        w_fault(faults, of.command, W_FAULT_GATHER, v0, bound1, r0);
                    }
                    const float16 v1 = w_load_f32(arg1 + (i0 + convert_int(v0)*pitch1), 0, m*in1);
                    const float16 v2 = v1 * v1;
                    p3 = p3 + v2;
                    const float16 v5 = v4 * v1;
                    const float16 v6 = v5 + v5;
                    w_store_f32(arg4 + (i0 + r0*s0_r0), 0, m, v6);
                }
                t3 = t3 + p3;
            }
            const float16 v3 = t3;
            w_store_f32(arg2 + (i0), 0, m, v3);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void row_gather_mul_sum_mul_add(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_GLOBAL float *arg3_,
    W_GLOBAL float *arg4_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(row_gather_mul_sum_mul_add) of) {
    row_gather_mul_sum_mul_add_group(arg0_, arg1_, arg2_, arg3_, arg4_, faults, of, w_group(0));
}

