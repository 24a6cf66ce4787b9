/*
kernel row_sum (rows 3, 16; reduce 8)
  arg0 f32 in 384
  arg1 f32 out 48
  v0 f32 = load arg0[i0*128 + i1 + r0*16]
  v1 f32 row = reduce sum v0
  store arg1[i0*16 + i1] = v1
*/
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read_write> buffer1: array<u32>;
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
    let arg0: i32 = arg0_ + i32(w_words[16].x);
    let arg1: i32 = arg1_ + i32(w_words[16].z);
    let per: i32 = i32(w_words[17].x);
    let units: i32 = i32(w_words[17].y);
    let tile_size: i32 = i32(w_words[17].z);
    let n_i1: i32 = i32(w_words[17].w);
    let n_r0: i32 = i32(w_words[18].x);
    let s0_i0: i32 = i32(w_words[18].y);
    let s0_r0: i32 = i32(w_words[18].z);
    let s1_i0: i32 = i32(w_words[18].w);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let rest: i32 = unit;
            let i0: i32 = rest;
            let i1: i32 = 0 + lane;
            if (i1 < n_i1) {
                var t1: f32 = 0.0f;
                {
                    var tile: i32 = 0;
                    for (; tile < n_r0; tile = tile + 32) {
                        var p1: f32 = 0.0f;
                        let end: i32 = min(tile + 32, n_r0);
                        {
                            var r0: i32 = tile;
                            for (; r0 < end; r0 = r0 + 1) {
                                let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + i1 + r0 * s0_r0)]);
                                p1 = p1 + v0;
                            }
                        }
                        t1 = t1 + p1;
                    }
                }
                let v1: f32 = t1;
                buffer1[arg1 + (i0 * s1_i0 + i1)] = bitcast<u32>(v1);
            }
        }
    }
}

