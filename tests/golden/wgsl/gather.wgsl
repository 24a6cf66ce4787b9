/*
kernel map_gather (rows 5, 16)
  arg0 i32 in 5
  arg1 f32 in 128
  arg2 f32 out 80
  v0 i32 = load arg0[i0]
  v1 f32 = gather arg1[i1 + v0*16] bound v0 < 8
  store arg2[i0*16 + i1] = v1
*/
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read> buffer1: array<u32>;
@group(0) @binding(2) var<storage, read_write> buffer2: array<u32>;
@group(0) @binding(3) var<storage, read_write> buffer3: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 20>;
fn w64_of_i32(x: i32) -> vec2<u32> {
    return vec2<u32>(u32(x), u32(x >> 31u));
}
fn get_u64_buffer3(i: i32) -> vec2<u32> {
    return vec2<u32>(atomicLoad(&buffer3[2*i]), atomicLoad(&buffer3[2*i + 1]));
}
fn w_fault(faults: i32, command: i32, what: i32, value: vec2<u32>, bound: vec2<u32>, element: vec2<u32>) {
    var w_t1: u32;
    loop {
        let w_exchange = atomicCompareExchangeWeak(&buffer3[faults], 0u, 1u);
        w_t1 = w_exchange.old_value;
        if (w_exchange.exchanged || w_t1 != 0u) {
            break;
        }
    }
    if (i32(w_t1) != 0) {
        return;
    }
    atomicStore(&buffer3[faults + 1], u32(command));
    atomicStore(&buffer3[faults + 2], u32(what));
    atomicStore(&buffer3[(faults) / 2*2 + 4], value.x);
    atomicStore(&buffer3[(faults) / 2*2 + 5], value.y);
    atomicStore(&buffer3[(faults) / 2*2 + 6], bound.x);
    atomicStore(&buffer3[(faults) / 2*2 + 7], bound.y);
    atomicStore(&buffer3[(faults) / 2*2 + 8], element.x);
    atomicStore(&buffer3[(faults) / 2*2 + 9], element.y);
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
    let faults = i32(w_words[1].w >> 2u);
    let arg0: i32 = arg0_ + i32(w_words[16].x);
    let arg1: i32 = arg1_ + i32(w_words[16].z);
    let arg2: i32 = arg2_ + i32(w_words[17].x);
    let per: i32 = i32(w_words[17].z);
    let units: i32 = i32(w_words[17].w);
    let tile_size: i32 = i32(w_words[18].x);
    let n_i1: i32 = i32(w_words[18].y);
    let bound1: i32 = i32(w_words[18].z);
    let pitch1: i32 = i32(w_words[18].w);
    let s0_i0: i32 = i32(w_words[19].x);
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
                let v0: i32 = i32(buffer0[arg0 + i0]);
                let in1: i32 = i32(v0 >= 0 && v0 < bound1);
                if (!(in1 != 0)) {
                    w_fault(faults, i32(w_words[19].y), 1, w64_of_i32(v0), w64_of_i32(bound1), w64_of_i32(i0));
                }
                var w_t2: i32;
                if (in1 != 0) {
                    w_t2 = i32(buffer1[arg1 + (i1 + v0 * pitch1)]);
                } else {
                    w_t2 = 0;
                }
                let v1: i32 = w_t2;
                buffer2[arg2 + (i0 * s0_i0 + i1)] = u32(v1);
            }
        }
    }
}

