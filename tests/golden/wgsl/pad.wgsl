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
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read_write> buffer1: array<u32>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 20>;
fn w_sel_i32(c: i32, x: i32, y: i32) -> i32 {
    return select(y, x, c != 0);
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
    let n_i1: i32 = i32(w_words[17].w);
    let lo1_i0: i32 = i32(w_words[18].x);
    let hi1_i1: i32 = i32(w_words[18].y);
    let s1_i0: i32 = i32(w_words[18].z);
    let o1: i32 = i32(w_words[18].w);
    let c2: i32 = i32(w_words[19].x);
    let s0_i0: i32 = i32(w_words[19].y);
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
                let v0: i32 = i32(i0 >= lo1_i0 && i1 < hi1_i1);
                var w_t1: i32;
                if (i0 >= lo1_i0 && i1 < hi1_i1) {
                    w_t1 = i32(buffer0[arg0 + (i0 * s1_i0 + i1 + o1)]);
                } else {
                    w_t1 = 0;
                }
                let v1: i32 = w_t1;
                let v3: i32 = w_sel_i32(v0, v1, c2);
                buffer1[arg1 + (i0 * s0_i0 + i1)] = u32(v3);
            }
        }
    }
}

