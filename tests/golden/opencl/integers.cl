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
W_ONCE void map_mul_shr_add_mod_group(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_shr_add_mod) of, const int group) {
    const W_GLOBAL int *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL int *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const int16 v0 = w_load_i32(arg0 + (i0), 0, m);
            const int16 v2 = as_int16(as_uint16(v0) * as_uint16((int16)(3)));
            const int16 v3 = w_shr_i32(v2, v0);
            const int16 v5 = as_int16(as_uint16(v0) + as_uint16((int16)(5)));
            if (w_any(w_bool(v5 == 0) & w_live(m))) {
                const int bad = w_first(w_bool(v5 == 0) & w_live(m));
                w_fault(faults, of.command, W_FAULT_DIVIDE, 0, 0, -1);
            }
            const int16 v6 = w_mod_i32(v3, v5);
            w_store_i32(arg1 + (i0), 0, m, v6);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_shr_add_mod(
    const W_GLOBAL int *arg0_,
    W_GLOBAL int *arg1_,
    W_GLOBAL w_faults *faults,
    const W_NUMBERS(map_mul_shr_add_mod) of) {
    map_mul_shr_add_mod_group(arg0_, arg1_, faults, of, w_group(0));
}

