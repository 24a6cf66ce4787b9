/*
kernel map_gather (rows 5, 16)
  arg0 i32 in 5
  arg1 f32 in 128
  arg2 f32 out 80
  v0 i32 = load arg0[i0]
  v1 f32 = gather arg1[i1 + v0*16] bound v0 < 8
  store arg2[i0*16 + i1] = v1
*/
W_NUMBERS(map_gather) {
    long arg0_at, arg1_at, arg2_at;
    int per, units, tile_size, n_i1, bound1, pitch1, s0_i0;
    int command;
};
W_KERNEL W_ITEMS(64, 1, 1) void map_gather(
    const W_GLOBAL int *arg0_,
    const W_GLOBAL int *arg1_,
    W_GLOBAL int *arg2_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_gather) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    W_GLOBAL int *arg2 = arg2_ + of.arg2_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, bound1 = of.bound1, pitch1 = of.pitch1, s0_i0 = of.s0_i0;
    const int lane = w_item(0);
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1 = first_lane + lane;
        if (i1 < n_i1) {
            const int v0 = arg0[i0];
            const int in1 = v0 >= 0 && v0 < bound1;
            if (!in1) {
                w_fault(faults, of.command, W_FAULT_GATHER, v0, bound1, i0);
            }
            const int v1 = in1 ? arg1[i1 + convert_int(v0)*pitch1] : 0;
            arg2[i0*s0_i0 + i1] = v1;
        }
    }
}

