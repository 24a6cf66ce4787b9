/* What is not there yet; the file goes with the last of it. */
#include "device/gpu/heavy.h"

bool weft__gpu_attention_takes(const weft_target *target, const weft_heavy_attention *attention) {
    (void)target, (void)attention;
    return false;
}

weft_status weft__gpu_attention(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    (void)heavy, (void)sink;
    return weft__fail(launches->ctx, WEFT_ERR_UNSUPPORTED, "gpu: attention has no template yet");
}
