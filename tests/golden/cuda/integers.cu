/*
kernel map_mul_shr_add_mod (rows 128)
  arg0 i32 in 128
  arg1 i32 out 128
  v0 i32 = load arg0[i0]
  v1 i32 = const 3
  v2 i32 = mul v0, v1
  v3 i32 = shr v2, v0
  v4 i32 = const 5
  v5 i32 = add v0, v4
  v6 i32 = mod v3, v5
  store arg1[i0] = v6
*/
W_NUMBERS(map_mul_shr_add_mod) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i0;
    int command;
};
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_shr_add_mod(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_shr_add_mod) of) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int lane = w_item(0) % 32, team = w_item(0) / 32;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 8) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*4;
        if (i0_0 < n_i0) {
            int span0[4];
            W_READ_ALIGNED(i32, int, uint4, 4, arg0 + (i0_0), span0);
            int span7[4];
            W_UNROLL
            for (int e = 0; e < 4; e++) {
                const int i0 = i0_0 + e;
                const int v0 = span0[e];
                const int v2 = as_int(as_uint(v0) * as_uint(3));
                const int v3 = w_shr_i32(v2, v0);
                const int v5 = as_int(as_uint(v0) + as_uint(5));
                if (v5 == 0) {
                    w_fault(faults, of.command, W_FAULT_DIVIDE, 0, 0, -1);
                }
                const int v6 = w_mod_i32(v3, v5);
                span7[e] = v6;
            }
            W_WRITE_ALIGNED(i32, int, uint4, 4, arg1 + (i0_0), span7);
        }
    }
}

