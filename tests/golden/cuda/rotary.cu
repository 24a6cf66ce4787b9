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
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_exp(
    W_GLOBAL float *arg0_,
    const W_NUMBERS(map_mul_exp) of) {
    W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i0 = of.n_i0;
    const float c2 = of.c2;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        const int first_lane = unit * tile_size;
        const int i0_0 = first_lane + lane*2;
        if (i0_0 < n_i0) {
            float span5[2];
            W_UNROLL
            for (int e = 0; e < 2; e++) {
                const int i0 = i0_0 + e;
                const int v0 = convert_int((int)(i0));
                const float v1 = convert_float(v0);
                const float v3 = v1 * c2;
                const float v4 = w_exp_f32(v3);
                span5[e] = v4;
            }
            W_WRITE_ALIGNED(f32, float, ulong, 2, arg0 + (i0_0), span5);
        }
    }
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
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_cos(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_cos) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, s0_i0 = of.s0_i0;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i0 = rest;
        const int i1_0 = first_lane + lane*2;
        if (i1_0 < n_i1) {
            float span2[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (i1_0), span2);
            float span5[2];
            W_UNROLL
            for (int e = 0; e < 2; e++) {
                const int i1 = i1_0 + e;
                const int v0 = convert_int((int)(i0));
                const float v1 = convert_float(v0);
                const float v2 = span2[e];
                const float v3 = v1 * v2;
                const float v4 = w_cos_f32(v3);
                span5[e] = v4;
            }
            W_WRITE_ALIGNED(f32, float, ulong, 2, arg1 + (i0*s0_i0 + i1_0), span5);
        }
    }
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
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_add_mul_sin_mul(
    const W_GLOBAL float *arg0_,
    W_GLOBAL float *arg1_,
    const W_NUMBERS(map_mul_add_mul_sin_mul) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i1 = of.n_i1, n_i2 = of.n_i2, s0_i0 = of.s0_i0, s0_i1 = of.s0_i1;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const int i2_0 = first_lane + lane*2;
        if (i2_0 < n_i2) {
            float span8[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (i2_0), span8);
            float span12[2];
            W_UNROLL
            for (int e = 0; e < 2; e++) {
                const int i2 = i2_0 + e;
                const long v0 = convert_long((int)(i1));
                const float v1 = convert_float(v0);
                const float v3 = v1 * 2.0f;
                const float v5 = v3 + -1.0f;
                const int v6 = convert_int((int)(i0));
                const float v7 = convert_float(v6);
                const float v8 = span8[e];
                const float v9 = v7 * v8;
                const float v10 = w_sin_f32(v9);
                const float v11 = v5 * v10;
                span12[e] = v11;
            }
            W_WRITE_ALIGNED(f32, float, ulong, 2, arg1 + (i0*s0_i0 + i1*s0_i1 + i2_0), span12);
        }
    }
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
W_KERNEL W_ITEMS(256, 1, 1) void map_mul_add(
    const W_GLOBAL float *arg0_,
    const W_GLOBAL float *arg1_,
    const W_GLOBAL float *arg2_,
    W_GLOBAL float *arg3_,
    const W_NUMBERS(map_mul_add) of) {
    const W_GLOBAL float *arg0 = arg0_ + of.arg0_at;
    const W_GLOBAL float *arg1 = arg1_ + of.arg1_at;
    const W_GLOBAL float *arg2 = arg2_ + of.arg2_at;
    W_GLOBAL float *arg3 = arg3_ + of.arg3_at;
    const int per = of.per, units = of.units, tile_size = of.tile_size, n_i2 = of.n_i2, n_i1 = of.n_i1, n_i3 = of.n_i3, s0_i0 = of.s0_i0, s0_i1 = of.s0_i1, s0_i2 = of.s0_i2, s1_i1 = of.s1_i1, s2_i0 = of.s2_i0, s2_i1 = of.s2_i1, s2_i2 = of.s2_i2, o2 = of.o2, s3_i1 = of.s3_i1, s3_i2 = of.s3_i2;
    const int lane = w_item(0) % 4, team = w_item(0) / 4;
    const int first = w_group(0)*per;
    const int last = min(first + per, units);
    for (int unit = first + team; unit < last; unit += 64) {
        int rest = unit;
        const int first_lane = 0;
        const int i2 = rest % n_i2;
        rest /= n_i2;
        const int i1 = rest % n_i1;
        rest /= n_i1;
        const int i0 = rest;
        const int i3_0 = first_lane + lane*2;
        if (i3_0 < n_i3) {
            float span0[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (i0*s0_i0 + i1*s0_i1 + i2*s0_i2 + i3_0), span0);
            float span1[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg1 + (i1*s1_i1 + i3_0), span1);
            float span3[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg0 + (i0*s2_i0 + i1*s2_i1 + i2*s2_i2 + i3_0 + o2), span3);
            float span4[2];
            W_READ_ALIGNED(f32, float, ulong, 2, arg2 + (i1*s3_i1 + i2*s3_i2 + i3_0), span4);
            float span7[2];
            W_UNROLL
            for (int e = 0; e < 2; e++) {
                const int i3 = i3_0 + e;
                const float v0 = span0[e];
                const float v1 = span1[e];
                const float v2 = v0 * v1;
                const float v3 = span3[e];
                const float v4 = span4[e];
                const float v5 = v3 * v4;
                const float v6 = v2 + v5;
                span7[e] = v6;
            }
            W_WRITE_ALIGNED(f32, float, ulong, 2, arg3 + (i0*s0_i0 + i1*s0_i1 + i2*s0_i2 + i3_0), span7);
        }
    }
}

