/* Chooses the parts of the prelude that stand before a kernel source.
 * Must not know: what kernels compute. Read next: kernel_source.h. */
#include "device/gpu/backend/kernel_source.h"
#include "device/gpu/gpu.h"

int weft__gpu_prelude_parts(weft_dialect dialect, unsigned prelude,
                            const char *parts[WEFT_GPU_PRELUDE_MOST]) {
    int n = 0;
    parts[n++] = dialect == WEFT_DIALECT_CUDA   ? weft__source_prelude_cuda
                 : dialect == WEFT_DIALECT_WGSL ? weft__source_prelude_wgsl
                                                : weft__source_prelude_opencl;
    if (dialect == WEFT_DIALECT_CUDA) {
        parts[n++] = weft__source_prelude_nvidia;
        parts[n++] = weft__source_prelude_amd;
    }
    parts[n++] = weft__source_prelude_common;
    parts[n++] = weft__source_prelude_kernels;
    if (prelude & WEFT_PRELUDE_TENSOR) parts[n++] = weft__source_prelude_tensor;
    if (prelude & WEFT_PRELUDE_MATRIX) parts[n++] = weft__source_prelude_matrix;
    if (!(prelude & WEFT_PRELUDE_LANES)) return n;
    parts[n++] = weft__source_prelude_lanes;
    parts[n++] = weft__source_prelude_access;
    parts[n++] = weft__source_prelude_half;
    parts[n++] = weft__source_prelude_int;
    parts[n++] = weft__source_prelude_integers;
    if (prelude & WEFT_PRELUDE_F32) {
        parts[n++] = weft__source_prelude_f32;
        parts[n++] = weft__source_prelude_angle;
    }
    if (prelude & WEFT_PRELUDE_F64) {
        parts[n++] = weft__source_prelude_access_f64;
        parts[n++] = weft__source_prelude_f64;
    }
    if (prelude & WEFT_PRELUDE_RANDOM) parts[n++] = weft__source_prelude_random;
    return n;
}
