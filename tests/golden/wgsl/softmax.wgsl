/*
kernel row_max_eq_where_sub_exp (rows 8; reduce 16)
  arg0 f32 in 128
  arg1 f32 out 128
  v0 f32 = load arg0[i0*16 + r0]
  v1 f32 row = reduce max v0
  v2 f32 row = const -inf
  v3 bool row = eq v1, v2
  v4 f32 row = const 0
  v5 f32 row = where v3, v4, v1
  v6 f32 = sub v0, v5
  v7 f32 = exp v6
  v8 f32 row = reduce sum v7
  v9 bool row = eq v8, v4
  v10 f32 row = const 1
  v11 f32 row = where v9, v10, v8
  v12 f32 row = recip v11
  v13 f32 = mul v7, v12
  store arg1[i0*16 + r0] = v13
*/
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read_write> buffer1: array<u32>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 19>;
fn wf_is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn w_max_f32(a: f32, b: f32) -> f32 {
    let m: f32 = select(b, a, a > b);
    return select(m, a, wf_is_nan(a));
}
fn w_bool(c: i32) -> i32 {
    return c & 1;
}
fn w_sel_f32(c: i32, x: f32, y: f32) -> f32 {
    return select(y, x, c != 0);
}
fn w_bits(x: f32) -> i32 {
    return bitcast<i32>(x);
}
fn w_float(i: i32) -> f32 {
    return bitcast<f32>(i);
}
fn w_abs_f32(a: f32) -> f32 {
    return w_float(w_bits(a) & 2147483647);
}
fn w_signed_f32(x: f32, s: f32) -> f32 {
    return w_float((w_bits(x) & 2147483647) | (w_bits(s) & i32(-2147483648)));
}
fn w_limit_f32(x: f32, most: f32) -> f32 {
    let m: f32 = w_abs_f32(x);
    return w_signed_f32(select(m, most, m > most), x);
}
fn w_fma_f32(a: f32, b: f32, c: f32) -> f32 {
    return a * b + c;
}
fn w_exp_core(x: f32, z_bits_of: ptr<function, i32>) -> f32 {
    let z: f32 = bitcast<f32>(bitcast<u32>(w_fma_f32(x, 0x1.715476p+0f, 0x1.8p+23f)) | w_words[0].w);
    let n: f32 = z - 0x1.8p+23f;
    let r: f32 = w_fma_f32(n, -0x1.0bfbe8p-15f, w_fma_f32(n, -0x1.62ep-1f, x));
    var c = array<f32, 5>(0x1.6a1a7p-10f, 0x1.123fc6p-7f, 0x1.555916p-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f);
    var p: f32 = w_fma_f32(c[0], r, c[1]);
    p = w_fma_f32(p, r, c[2]);
    p = w_fma_f32(p, r, c[3]);
    p = w_fma_f32(p, r, c[4]);
    (*z_bits_of) = w_bits(z);
    return 1.0f + w_fma_f32(r * r, p, r);
}
fn w_bits_u32(i: i32) -> u32 {
    return u32(i);
}
fn w_bits_i32(u: u32) -> i32 {
    return i32(u);
}
fn w_scale_f32(y: f32, n: i32) -> f32 {
    let both: i32 = n + 254;
    let first: i32 = both >> 1u;
    let rest: i32 = both - first;
    return y * w_float(w_bits_i32(w_bits_u32(first) << 23u)) * w_float(w_bits_i32(w_bits_u32(rest) << 23u));
}
fn w_scale_bits(y: f32, z: i32) -> f32 {
    return w_scale_f32(y, w_bits_i32(w_bits_u32(z) - w_bits_u32(w_bits(0x1.8p+23f))));
}
fn w_exp_f32(x: f32) -> f32 {
    var z: i32;
    let y: f32 = w_exp_core(w_limit_f32(x, 105.0f), &z);
    return w_scale_bits(y, z);
}
fn w_recip_f32(a: f32) -> f32 {
    return 1.0f / a;
}
@compute @workgroup_size(64, 1, 1)
fn main(@builtin(workgroup_id) w_id: vec3<u32>, @builtin(num_workgroups) w_all: vec3<u32>,
        @builtin(local_invocation_id) w_local: vec3<u32>) {
    let w_number = w_id.x + w_all.x * (w_id.y + w_all.y * w_id.z);
    let w_wide = w_words[0].x;
    let w_high = w_words[0].y;
    if (w_number >= w_wide * w_high * w_words[0].z) {
        return;
    }
    let w_group = vec3<i32>(vec3<u32>(w_number % w_wide, w_number / w_wide % w_high,
                                     w_number / (w_wide * w_high)));
    let w_item = vec3<i32>(w_local);
    let arg0_ = i32(w_words[1].x >> 2u);
    let arg1_ = i32(w_words[1].y >> 2u);
    let arg0: i32 = arg0_ + i32(w_words[16].x);
    let arg1: i32 = arg1_ + i32(w_words[16].z);
    let per: i32 = i32(w_words[17].x);
    let units: i32 = i32(w_words[17].y);
    let tile_size: i32 = i32(w_words[17].z);
    let n_i0: i32 = i32(w_words[17].w);
    let n_r0: i32 = i32(w_words[18].x);
    let s0_i0: i32 = i32(w_words[18].y);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let first_lane: i32 = unit * tile_size;
            let i0: i32 = first_lane + lane;
            if (i0 < n_i0) {
                var t1: f32 = bitcast<f32>(0xff800000u | w_words[0].w);
                {
                    var r0: i32 = 0;
                    for (; r0 < n_r0; r0 = r0 + 1) {
                        let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + r0)]);
                        t1 = w_max_f32(t1, v0);
                    }
                }
                let v1: f32 = t1;
                let v3: i32 = w_bool(i32(bitcast<u32>(v1) == 0xff800000u));
                let v5: f32 = w_sel_f32(v3, 0.0f, v1);
                var t8: f32 = 0.0f;
                {
                    var tile: i32 = 0;
                    for (; tile < n_r0; tile = tile + 32) {
                        var p8: f32 = 0.0f;
                        let end: i32 = min(tile + 32, n_r0);
                        {
                            var r0: i32 = tile;
                            for (; r0 < end; r0 = r0 + 1) {
                                let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + r0)]);
                                let v6: f32 = v0 - v5;
                                let v7: f32 = w_exp_f32(v6);
                                p8 = p8 + v7;
                            }
                        }
                        t8 = t8 + p8;
                    }
                }
                let v8: f32 = t8;
                let v9: i32 = w_bool(i32((bitcast<u32>(v8) & 0x7fffffffu) == 0u));
                let v11: f32 = w_sel_f32(v9, 1.0f, v8);
                let v12: f32 = w_recip_f32(v11);
                {
                    var r0: i32 = 0;
                    for (; r0 < n_r0; r0 = r0 + 1) {
                        let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + r0)]);
                        let v6: f32 = v0 - v5;
                        let v7: f32 = w_exp_f32(v6);
                        let v13: f32 = v7 * v12;
                        buffer1[arg1 + (i0 * s0_i0 + r0)] = bitcast<u32>(v13);
                    }
                }
            }
        }
    }
}

