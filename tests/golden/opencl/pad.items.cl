/*
kernel map_where (rows 9, 18)
  arg0 f32 in 128
  arg1 f32 out 162
  v0 bool = mask 1 <= i0, i1 < 16
  v1 f32 = load arg0[i0*16 + i1 - 16] if 1 <= i0, i1 < 16
  v2 f32 = const 7
  v3 f32 = where v0, v1, v2
  store arg1[i0*18 + i1] = v3
*/
W_KERNEL W_ITEMS(64, 1, 1) void map_where(
    const W_GLOBAL int *arg0_, long arg0_at,
    W_GLOBAL int *arg1_, long arg1_at,
    int per, int units, int strip_size, int strips, int n_i0, int n_i1, int lo1_i0, int hi1_i1,
    int s1_i0, int o1, int c2, int s0_i0) {
    const W_GLOBAL int *arg0 = arg0_ + arg0_at;
    W_GLOBAL int *arg1 = arg1_ + arg1_at;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = rest % strips * strip_size;
        rest /= strips;
        const int i0 = rest % n_i0;
        rest /= n_i0;
        const int i1 = first_lane + lane;
        if (i1 < n_i1) {
            const int v0 = i0 >= lo1_i0 && i1 < hi1_i1;
            const int v1 = i0 >= lo1_i0 && i1 < hi1_i1 ? arg0[i0*s1_i0 + i1 + o1] : 0;
            const int v3 = w_sel_i32(v0, v1, c2);
            arg1[i0*s0_i0 + i1] = v3;
        }
    }
}

