/*
kernel map_mul_exp (rows 8)
  arg0 f32 out 8
  v0 i32 = index i0
  v1 f32 = cast v0
  v2 f32 = const -1.151292546497023
  v3 f32 = mul v1, v2
  v4 f32 = exp v3
  store arg0[i0] = v4
*/
W_NUMBERS(map_mul_exp) {
    long arg0_at;
    int per, units, tile_size, n_i0;
    float c2;
};
W_ONCE void map_mul_exp_group(
    W_GLOBAL float *arg0_,
    const W_NUMBERS(map_mul_exp) of, const int group) {
    W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const float c2 = of.c2;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        const int first_lane = unit * tile_size;
        const int end_lane = min(first_lane + tile_size, n_i0);
        for (int i0 = first_lane; i0 < end_lane; i0 += 16) {
            const int m = end_lane - i0;
            const int16 v0 = convert_int16((int16)((i0 + W_LANES)));
            const float16 v1 = convert_float16(v0);
            const float16 v3 = v1 * (float16)(c2);
            const float16 v4 = w_exp_f32(v3);
            w_store_f32(arg0 + (i0), 0, m, v4);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_exp(
    W_GLOBAL float *arg0_,
    const W_NUMBERS(map_mul_exp) of) {
    map_mul_exp_group(arg0_, of, w_group(0));
}

/*
kernel map_mul_cos (rows 8, 8)
  arg0 f32 in 8
  arg1 f32 out 64
  v0 i32 = index i0
  v1 f32 = cast v0
  v2 f32 = load arg0[i1]
  v3 f32 = mul v1, v2
  v4 f32 = cos v3
  store arg1[i0*8 + i1] = v4
*/
W_NUMBERS(map_mul_cos) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, s0_i0;
};
W_ONCE void map_mul_cos_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_cos) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
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
            const int v0 = convert_int((int)(i0));
            const float v1 = convert_float(v0);
            const float16 v2 = w_load_f32(arg0 + (i1), 0, m);
            const float16 v3 = (float16)(v1) * v2;
            const float16 v4 = w_cos_f32(v3);
            w_store_f32(arg1 + (i0*s0_i0 + i1), 0, m, v4);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_cos(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_cos) of) {
    map_mul_cos_group(arg0_, arg1_, of, w_group(0));
}

/*
kernel map_mul_add_mul_sin_mul (rows 8, 2, 8)
  arg0 f32 in 8
  arg1 f32 out 128
  v0 i64 = index i1
  v1 f32 = cast v0
  v2 f32 = const 2
  v3 f32 = mul v1, v2
  v4 f32 = const -1
  v5 f32 = add v3, v4
  v6 i32 = index i0
  v7 f32 = cast v6
  v8 f32 = load arg0[i2]
  v9 f32 = mul v7, v8
  v10 f32 = sin v9
  v11 f32 = mul v5, v10
  store arg1[i0*16 + i1*8 + i2] = v11
*/
W_NUMBERS(map_mul_add_mul_sin_mul) {
    long arg0_at, arg1_at;
    int per, units, tile_size, n_i1, n_i2, s0_i0, s0_i1;
};
W_ONCE void map_mul_add_mul_sin_mul_group(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_add_mul_sin_mul) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, n_i2 = of.n_i2, s0_i0 = of.s0_i0, s0_i1 = of.s0_i1;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i2);
        for (int i2 = first_lane; i2 < end_lane; i2 += 16) {
            const int m = end_lane - i2;
            const long v0 = convert_long((int)(i1));
            const float v1 = convert_float(v0);
            const float v3 = v1 * 2.0f;
            const float v5 = v3 + -1.0f;
            const int v6 = convert_int((int)(i0));
            const float v7 = convert_float(v6);
            const float16 v8 = w_load_f32(arg0 + (i2), 0, m);
            const float16 v9 = (float16)(v7) * v8;
            const float16 v10 = w_sin_f32(v9);
            const float16 v11 = (float16)(v5) * v10;
            w_store_f32(arg1 + (i0*s0_i0 + i1*s0_i1 + i2), 0, m, v11);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_add_mul_sin_mul(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_add_mul_sin_mul) of) {
    map_mul_add_mul_sin_mul_group(arg0_, arg1_, of, w_group(0));
}

/*
kernel map_mul_add (rows 3, 8, 2, 8)
  arg0 f32 in 384
  arg1 f32 in 64
  arg2 f32 in 128
  arg3 f32 out 384
  v0 f32 = load arg0[i0*128 + i1*16 + i2*8 + i3]
  v1 f32 = load arg1[i1*8 + i3]
  v2 f32 = mul v0, v1
  v3 f32 = load arg0[i0*128 + i1*16 - i2*8 + i3 + 8]
  v4 f32 = load arg2[i1*16 + i2*8 + i3]
  v5 f32 = mul v3, v4
  v6 f32 = add v2, v5
  store arg3[i0*128 + i1*16 + i2*8 + i3] = v6
*/
W_NUMBERS(map_mul_add) {
    long arg0_at, arg1_at, arg2_at, arg3_at;
    int per, units, tile_size, n_i2, n_i1, n_i3, s0_i0, s0_i1, s0_i2, s1_i1, s2_i0, s2_i1, s2_i2, o2, s3_i1, s3_i2;
};
W_ONCE void map_mul_add_group(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_mul_add) of, const int group) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i2 = of.n_i2, n_i1 = of.n_i1, n_i3 = of.n_i3, s0_i0 = of.s0_i0, s0_i1 = of.s0_i1, s0_i2 = of.s0_i2, s1_i1 = of.s1_i1, s2_i0 = of.s2_i0, s2_i1 = of.s2_i1, s2_i2 = of.s2_i2, o2 = of.o2, s3_i1 = of.s3_i1, s3_i2 = of.s3_i2;
    const int first = group*per;
    const int last = min(first + per, units);
    for (int unit = first; unit < last; unit++) {
        int rest = unit;
        const int first_lane = 0;
        const int i2 = rest % n_i2;
        rest /= n_i2;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const int end_lane = min(first_lane + tile_size, n_i3);
        for (int i3 = first_lane; i3 < end_lane; i3 += 16) {
            const int m = end_lane - i3;
            const float16 v0 = w_load_f32(arg0 + (i0*s0_i0 + i1*s0_i1 + i2*s0_i2 + i3), 0, m);
            const float16 v1 = w_load_f32(arg1 + (i1*s1_i1 + i3), 0, m);
            const float16 v2 = v0 * v1;
            const float16 v3 = w_load_f32(arg0 + (i0*s2_i0 + i1*s2_i1 + i2*s2_i2 + i3 + o2), 0, m);
            const float16 v4 = w_load_f32(arg2 + (i1*s3_i1 + i2*s3_i2 + i3), 0, m);
            const float16 v5 = v3 * v4;
            const float16 v6 = v2 + v5;
            w_store_f32(arg3 + (i0*s0_i0 + i1*s0_i1 + i2*s0_i2 + i3), 0, m, v6);
        }
    }
}
W_KERNEL W_ITEMS(1, 1, 1) void map_mul_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_mul_add) of) {
    map_mul_add_group(arg0_, arg1_, arg2_, arg3_, of, w_group(0));
}

