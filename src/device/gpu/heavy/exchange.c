/* Exchanges with other processes are declined: gradients are then exchanged after the program, through the
 * memory of the host. Must not know: OpenCL, CUDA. Read next: heavy/exchange.h. */
#include "device/gpu/heavy/heavy.h"

bool weft__gpu_exchange_takes(const weft_target *target, const weft_heavy_exchange *exchange) {
    (void)target, (void)exchange;
    return false;
}

weft_status weft__gpu_exchange(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    (void)sink;
    return weft__fail(launches->ctx, WEFT_ERR_UNSUPPORTED, "gpu: %s is not supported",
                      weft__heavy_class(heavy)->name);
}
