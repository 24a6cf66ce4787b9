/* Packed matrices are declined: fused kernels unpack them, and matmuls read the numbers.
 * Must not know: OpenCL, CUDA. Read next: heavy/packed.h, ops/packed.c. */
#include "device/gpu/heavy/heavy.h"

bool weft__gpu_packed_takes(const weft_target *target, const weft_heavy_packed *packed) {
    (void)target, (void)packed;
    return false;
}

weft_status weft__gpu_packed(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    (void)heavy, (void)sink;
    return weft__fail(launches->ctx, WEFT_ERR_UNSUPPORTED, "there is no kernel for packed matrices");
}
