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
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read> buffer1: array<u32>;
@group(0) @binding(2) var<storage, read_write> buffer2: array<u32>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 19>;
fn w_get_f32(p: i32, i: i32) -> f32 {
    return bitcast<f32>(buffer0[p + i]);
}
fn w_get_f32_2(p: i32, i: i32) -> f32 {
    return bitcast<f32>(buffer1[p + i]);
}
fn w_put_f32(p: i32, i: i32, v: f32) {
    buffer2[p + i] = bitcast<u32>(v);
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
    let arg2_ = i32(w_words[1].z >> 2u);
    let arg0: i32 = arg0_ + i32(w_words[16].x);
    let arg1: i32 = arg1_ + i32(w_words[16].z);
    let arg2: i32 = arg2_ + i32(w_words[17].x);
    let per: i32 = i32(w_words[17].z);
    let units: i32 = i32(w_words[17].w);
    let tile_size: i32 = i32(w_words[18].x);
    let n_i0: i32 = i32(w_words[18].y);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let first_lane: i32 = unit * tile_size;
            let i0_0: i32 = first_lane + lane * 2;
            if (i0_0 < n_i0) {
                var span0: array<f32, 2>;
                {
                    var i_: i32 = 0;
                    for (; i_ < 2; i_ = i_ + 1) {
                        span0[i_] = w_get_f32(arg0 + i0_0, i_);
                    }
                }
                var span1: array<f32, 2>;
                {
                    var i_: i32 = 0;
                    for (; i_ < 2; i_ = i_ + 1) {
                        span1[i_] = w_get_f32_2(arg1 + i0_0, i_);
                    }
                }
                var span3: array<f32, 2>;
                {
                    let i0: i32 = i0_0 + 0;
                    let v0: f32 = span0[0];
                    let v1: f32 = span1[0];
                    let v2: f32 = v0 + v1;
                    span3[0] = v2;
                }
                {
                    let i0: i32 = i0_0 + 1;
                    let v0: f32 = span0[1];
                    let v1: f32 = span1[1];
                    let v2: f32 = v0 + v1;
                    span3[1] = v2;
                }
                {
                    var i_: i32 = 0;
                    for (; i_ < 2; i_ = i_ + 1) {
                        w_put_f32(arg2 + i0_0, i_, span3[i_]);
                    }
                }
            }
        }
    }
}

