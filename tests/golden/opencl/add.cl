/*
kernel map_add (rows 128)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 128
  v0 f32 = load arg0[i0]
  v1 f32 = load arg1[i0]
  v2 f32 = add v0, v1
  store arg2[i0] = v2
*/
W_NUMBERS(map_add) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i0;
};
W_KERNEL W_ITEMS(64, 1, 1) void map_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    W_GLOBAL float *arg2_,
    const W_NUMBERS(map_add) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*2;
        if (i0_0 < n_i0) {
            float span0[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (i0_0), span0);
            float span1[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg1 + (i0_0), span1);
            float span3[2];
            W_UNROLL
            for (int e = 0; e < 2; e++) {
                const int i0 = i0_0 + e;
                const float v0 = span0[e];
                const float v1 = span1[e];
                const float v2 = v0 + v1;
                span3[e] = v2;
            }
            W_WRITE_ALIGNED(f32, float, ulong, 2, arg2 + (i0_0), span3);
        }
    }
}

