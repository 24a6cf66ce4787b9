/*
kernel map_neg_where (rows 128)
  arg0 bool in 128
  arg1 f32 in 128
  arg2 f32 in 128
  arg3 f32 out 128
  v0 bool = load arg0[i0]
  v1 f32 = load arg1[i0]
  v2 f32 = load arg2[i0]
  v3 f32 = neg v2
  v4 f32 = where v0, v1, v3
  store arg3[i0] = v4
*/
W_NUMBERS(map_neg_where) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i0;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_neg_where(
    const W_GLOBAL uchar *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_neg_where) of) {
    const W_GLOBAL uchar *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            int span0[4];
            W_READ_ALIGNED(bool, uchar, uint, 4, arg0 + (i0_0), span0);
            float span1[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg1 + (i0_0), span1);
            float span2[4];
            W_READ_ALIGNED(f32, float, uint4, 4, arg2 + (i0_0), span2);
            float span5[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const int v0 = span0[e];
                const float v1 = span1[e];
                const float v2 = span2[e];
                const float v3 = -v2;
                const float v4 = w_sel_f32(v0, v1, v3);
                span5[e] = v4;
            }
            W_WRITE_ALIGNED(f32, float, uint4, 4, arg3 + (i0_0), span5);
        }
    }
}

