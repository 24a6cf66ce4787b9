/*
kernel fold_sum_mul_sub_mul_sum (blocks 16; rows 32; reduce 16)
  arg0 f32 in 8192
  arg1 f32 in 16
  arg2 f32 out 8192
  arg3 f32 in 8192
  arg4 f32 out 8192
  arg5 f32 out 256
  arg6 f32 out 256
  v0 f32 = load arg0[i0*512 + f0*16 + r0]
  v1 f32 row = reduce sum v0
  v2 f32 row = const 0.0625
  v3 f32 row = mul v1, v2
  v4 f32 = sub v0, v3
  v5 f32 = mul v4, v4
  v6 f32 row = reduce sum v5
  v7 f32 row = mul v6, v2
  v8 f32 row = const 1e-05
  v9 f32 row = add v7, v8
  v10 f32 row = rsqrt v9
  v11 f32 = mul v4, v10
  v12 f32 = load arg1[r0]
  v13 f32 = mul v11, v12
  v14 f32 = neg v12
  v15 f32 = add v13, v14
  v16 f32 = load arg3[i0*512 + f0*16 + r0]
  v17 f32 = mul v16, v12
  v18 f32 = mul v17, v10
  v19 f32 = mul v17, v4
  v20 f32 row = reduce sum v19
  v21 f32 row = const -0.5
  v22 f32 row = mul v20, v21
  v23 f32 row = mul v10, v10
  v24 f32 row = mul v10, v23
  v25 f32 row = mul v22, v24
  v26 f32 row = mul v25, v2
  v27 f32 = mul v26, v4
  v28 f32 = add v18, v27
  v29 f32 = add v28, v27
  v30 f32 = neg v29
  v31 f32 row = reduce sum v30
  v32 f32 row = mul v31, v2
  v33 f32 = add v29, v32
  v34 f32 column = fold sum v16
  v35 f32 = mul v16, v11
  v36 f32 column = fold sum v35
  store arg2[i0*512 + f0*16 + r0] = v15
  store arg4[i0*512 + f0*16 + r0] = v33
  store arg5[i0*16 + r0] = v34
  store arg6[i0*16 + r0] = v36
*/
@group(0) @binding(0) var<storage, read> buffer0: array<u32>;
@group(0) @binding(1) var<storage, read> buffer1: array<u32>;
@group(0) @binding(2) var<storage, read_write> buffer2: array<u32>;
@group(0) @binding(3) var<storage, read> buffer3: array<u32>;
@group(0) @binding(4) var<storage, read_write> buffer4: array<u32>;
@group(0) @binding(5) var<storage, read_write> buffer5: array<u32>;
@group(0) @binding(6) var<storage, read_write> buffer6: array<u32>;
@group(0) @binding(7) var<storage, read_write> buffer7: array<u32>;
@group(0) @binding(8) var<storage, read_write> buffer8: array<u32>;
@group(1) @binding(0) var<uniform> w_words: array<vec4<u32>, 23>;
var<workgroup> w_local_shared__f320: array<f32, 64>;
fn w_rsqrt_f32(a: f32) -> f32 {
    return 1.0f / sqrt(a);
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
    let arg3_ = i32(w_words[1].w >> 2u);
    let arg4_ = i32(w_words[2].x >> 2u);
    let arg5_ = i32(w_words[2].y >> 2u);
    let arg6_ = i32(w_words[2].z >> 2u);
    let fold34_ = i32(w_words[2].w >> 2u);
    let fold36_ = i32(w_words[3].x >> 2u);
    let arg0: i32 = arg0_ + i32(w_words[16].x);
    let arg1: i32 = arg1_ + i32(w_words[16].z);
    let arg2: i32 = arg2_ + i32(w_words[17].x);
    let arg3: i32 = arg3_ + i32(w_words[17].z);
    let arg4: i32 = arg4_ + i32(w_words[18].x);
    let arg5: i32 = arg5_ + i32(w_words[18].z);
    let arg6: i32 = arg6_ + i32(w_words[19].x);
    let fold34: i32 = fold34_ + i32(w_words[19].z);
    let fold36: i32 = fold36_ + i32(w_words[20].x);
    let per: i32 = i32(w_words[20].z);
    let units: i32 = i32(w_words[20].w);
    let n_f0: i32 = i32(w_words[21].x);
    let n_r0: i32 = i32(w_words[21].y);
    let s0_i0: i32 = i32(w_words[21].z);
    let s0_f0: i32 = i32(w_words[21].w);
    let s1_i0: i32 = i32(w_words[22].x);
    let c2: f32 = bitcast<f32>(w_words[22].y);
    let c8: f32 = bitcast<f32>(w_words[22].z);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let i0: i32 = unit;
            {
                var f0: i32 = 0;
                for (; f0 < n_f0; f0 = f0 + 1) {
                    let fresh: i32 = i32(f0 == 0);
                    var t1: f32 = 0.0f;
                    {
                        var tile: i32 = 0;
                        for (; tile < n_r0; tile = tile + 2048) {
                            var p1: f32 = 0.0f;
                            let end: i32 = min(tile + 2048, n_r0);
                            {
                                var r0: i32 = tile + lane;
                                for (; r0 < end; r0 = r0 + 64) {
                                    let column: i32 = i0 * n_r0 + r0;
                                    let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    p1 = p1 + v0;
                                    let v16: f32 = bitcast<f32>(buffer3[arg3 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    var s34: f32 = v16;
                                    if (!(fresh != 0)) {
                                        s34 = s34 + bitcast<f32>(buffer7[fold34 + column]);
                                    }
                                    buffer7[fold34 + column] = bitcast<u32>(s34);
                                }
                            }
                            t1 = t1 + p1;
                        }
                    }
                    {
                        w_local_shared__f320[lane] = t1;
                        workgroupBarrier();
                        {
                            var half_: i32 = 32;
                            for (; half_ > 0; half_ = half_ / 2) {
                                if (lane < half_) {
                                    let x: f32 = w_local_shared__f320[lane];
                                    let y: f32 = w_local_shared__f320[lane + half_];
                                    w_local_shared__f320[lane] = x + y;
                                }
                                workgroupBarrier();
                            }
                        }
                        t1 = w_local_shared__f320[0];
                        workgroupBarrier();
                    }
                    let v1: f32 = t1;
                    let v3: f32 = v1 * c2;
                    var t6: f32 = 0.0f;
                    var t20: f32 = 0.0f;
                    {
                        var tile: i32 = 0;
                        for (; tile < n_r0; tile = tile + 2048) {
                            var p6: f32 = 0.0f;
                            var p20: f32 = 0.0f;
                            let end: i32 = min(tile + 2048, n_r0);
                            {
                                var r0: i32 = tile + lane;
                                for (; r0 < end; r0 = r0 + 64) {
                                    let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    let v4: f32 = v0 - v3;
                                    let v5: f32 = v4 * v4;
                                    p6 = p6 + v5;
                                    let v12: f32 = bitcast<f32>(buffer1[arg1 + r0]);
                                    let v16: f32 = bitcast<f32>(buffer3[arg3 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    let v17: f32 = v16 * v12;
                                    let v19: f32 = v17 * v4;
                                    p20 = p20 + v19;
                                }
                            }
                            t6 = t6 + p6;
                            t20 = t20 + p20;
                        }
                    }
                    {
                        w_local_shared__f320[lane] = t6;
                        workgroupBarrier();
                        {
                            var half_: i32 = 32;
                            for (; half_ > 0; half_ = half_ / 2) {
                                if (lane < half_) {
                                    let x: f32 = w_local_shared__f320[lane];
                                    let y: f32 = w_local_shared__f320[lane + half_];
                                    w_local_shared__f320[lane] = x + y;
                                }
                                workgroupBarrier();
                            }
                        }
                        t6 = w_local_shared__f320[0];
                        workgroupBarrier();
                    }
                    let v6: f32 = t6;
                    {
                        w_local_shared__f320[lane] = t20;
                        workgroupBarrier();
                        {
                            var half_: i32 = 32;
                            for (; half_ > 0; half_ = half_ / 2) {
                                if (lane < half_) {
                                    let x: f32 = w_local_shared__f320[lane];
                                    let y: f32 = w_local_shared__f320[lane + half_];
                                    w_local_shared__f320[lane] = x + y;
                                }
                                workgroupBarrier();
                            }
                        }
                        t20 = w_local_shared__f320[0];
                        workgroupBarrier();
                    }
                    let v20: f32 = t20;
                    let v7: f32 = v6 * c2;
                    let v9: f32 = v7 + c8;
                    let v10: f32 = w_rsqrt_f32(v9);
                    let v22: f32 = v20 * -0x1p-1f;
                    let v23: f32 = v10 * v10;
                    let v24: f32 = v10 * v23;
                    let v25: f32 = v22 * v24;
                    let v26: f32 = v25 * c2;
                    var t31: f32 = 0.0f;
                    {
                        var tile: i32 = 0;
                        for (; tile < n_r0; tile = tile + 2048) {
                            var p31: f32 = 0.0f;
                            let end: i32 = min(tile + 2048, n_r0);
                            {
                                var r0: i32 = tile + lane;
                                for (; r0 < end; r0 = r0 + 64) {
                                    let column: i32 = i0 * n_r0 + r0;
                                    let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    let v4: f32 = v0 - v3;
                                    let v11: f32 = v4 * v10;
                                    let v12: f32 = bitcast<f32>(buffer1[arg1 + r0]);
                                    let v16: f32 = bitcast<f32>(buffer3[arg3 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                                    let v17: f32 = v16 * v12;
                                    let v18: f32 = v17 * v10;
                                    let v27: f32 = v26 * v4;
                                    let v28: f32 = v18 + v27;
                                    let v29: f32 = v28 + v27;
                                    let v30: f32 = -v29;
                                    p31 = p31 + v30;
                                    let v35: f32 = v16 * v11;
                                    var s36: f32 = v35;
                                    if (!(fresh != 0)) {
                                        s36 = s36 + bitcast<f32>(buffer8[fold36 + column]);
                                    }
                                    buffer8[fold36 + column] = bitcast<u32>(s36);
                                }
                            }
                            t31 = t31 + p31;
                        }
                    }
                    {
                        w_local_shared__f320[lane] = t31;
                        workgroupBarrier();
                        {
                            var half_: i32 = 32;
                            for (; half_ > 0; half_ = half_ / 2) {
                                if (lane < half_) {
                                    let x: f32 = w_local_shared__f320[lane];
                                    let y: f32 = w_local_shared__f320[lane + half_];
                                    w_local_shared__f320[lane] = x + y;
                                }
                                workgroupBarrier();
                            }
                        }
                        t31 = w_local_shared__f320[0];
                        workgroupBarrier();
                    }
                    let v31: f32 = t31;
                    let v32: f32 = v31 * c2;
                    {
                        var r0: i32 = lane;
                        for (; r0 < n_r0; r0 = r0 + 64) {
                            let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                            let v4: f32 = v0 - v3;
                            let v11: f32 = v4 * v10;
                            let v12: f32 = bitcast<f32>(buffer1[arg1 + r0]);
                            let v13: f32 = v11 * v12;
                            let v14: f32 = -v12;
                            let v15: f32 = v13 + v14;
                            let v16: f32 = bitcast<f32>(buffer3[arg3 + (i0 * s0_i0 + f0 * s0_f0 + r0)]);
                            let v17: f32 = v16 * v12;
                            let v18: f32 = v17 * v10;
                            let v27: f32 = v26 * v4;
                            let v28: f32 = v18 + v27;
                            let v29: f32 = v28 + v27;
                            let v33: f32 = v29 + v32;
                            buffer2[arg2 + (i0 * s0_i0 + f0 * s0_f0 + r0)] = bitcast<u32>(v15);
                            buffer4[arg4 + (i0 * s0_i0 + f0 * s0_f0 + r0)] = bitcast<u32>(v33);
                        }
                    }
                }
            }
            {
                var r0: i32 = lane;
                for (; r0 < n_r0; r0 = r0 + 64) {
                    let column: i32 = i0 * n_r0 + r0;
                    let s34: f32 = bitcast<f32>(buffer7[fold34 + column]);
                    let v34: f32 = s34;
                    buffer5[arg5 + (i0 * s1_i0 + r0)] = bitcast<u32>(v34);
                    let s36: f32 = bitcast<f32>(buffer8[fold36 + column]);
                    let v36: f32 = s36;
                    buffer6[arg6 + (i0 * s1_i0 + r0)] = bitcast<u32>(v36);
                }
            }
        }
    }
}

/*
kernel row_sum_neg_sum_add (rows 16; reduce 16)
  arg0 f32 in 256
  arg1 f32 in 256
  arg2 f32 out 16
  v0 f32 = load arg0[i0 + r0*16]
  v1 f32 row = reduce sum v0
  v2 f32 row = neg v1
  v3 f32 = load arg1[i0 + r0*16]
  v4 f32 row = reduce sum v3
  v5 f32 row = add v2, v4
  store arg2[i0] = v5
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
    let n_r0: i32 = i32(w_words[18].z);
    let s0_r0: i32 = i32(w_words[18].w);
    let lane: i32 = w_item.x;
    let first: i32 = w_group.x * per;
    let last: i32 = min(first + per, units);
    {
        var unit: i32 = first;
        for (; unit < last; unit = unit + 1) {
            let first_lane: i32 = unit * tile_size;
            let i0: i32 = first_lane + lane;
            if (i0 < n_i0) {
                var t1: f32 = 0.0f;
                var t4: f32 = 0.0f;
                {
                    var tile: i32 = 0;
                    for (; tile < n_r0; tile = tile + 32) {
                        var p1: f32 = 0.0f;
                        var p4: f32 = 0.0f;
                        let end: i32 = min(tile + 32, n_r0);
                        {
                            var r0: i32 = tile;
                            for (; r0 < end; r0 = r0 + 1) {
                                let v0: f32 = bitcast<f32>(buffer0[arg0 + (i0 + r0 * s0_r0)]);
                                p1 = p1 + v0;
                                let v3: f32 = bitcast<f32>(buffer1[arg1 + (i0 + r0 * s0_r0)]);
                                p4 = p4 + v3;
                            }
                        }
                        t1 = t1 + p1;
                        t4 = t4 + p4;
                    }
                }
                let v1: f32 = t1;
                let v4: f32 = t4;
                let v2: f32 = -v1;
                let v5: f32 = v2 + v4;
                buffer2[arg2 + i0] = bitcast<u32>(v5);
            }
        }
    }
}

