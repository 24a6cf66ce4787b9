/*
kernel map_add (rows 16, 8)
  arg0 f32 in 128
  arg1 f32 in 128
  arg2 f32 out 128
  v0 f32 = load arg0[i0 + i1*16]
  v1 f32 = load arg1[i0*8 + i1]
  v2 f32 = add v0, v1
  store arg2[i0*8 + i1] = v2
*/
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read> buffer1: array<u32>;
@group(0) @binding(2) var<storage, read_write> buffer2: array<u32>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 19>;
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
    let s1_i1: i32 = i32(w_words[18].z);
    let s0_i0: i32 = i32(w_words[18].w);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let rest: i32 = unit;
            let i1: i32 = rest;
            let i0: i32 = 0 + lane;
            if (i0 < n_i0) {
                let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 + i1 * s1_i1)]);
                let v1: f32 = bitcast<f32>(buffer1[arg1 + (i0 * s0_i0 + i1)]);
                let v2: f32 = v0 + v1;
                buffer2[arg2 + (i0 * s0_i0 + i1)] = bitcast<u32>(v2);
            }
        }
    }
}

