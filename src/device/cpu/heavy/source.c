/* A program's own kernel source is OpenCL C or CUDA C++, so the CPU device declines it.
 * Must not know: what the source computes. Read next: heavy.c. */
#include "device/cpu/heavy/heavy.h"

bool weft__cpu_source_takes(const weft_heavy_source *source) {
    (void)source;
    return false;
}

weft_status weft__cpu_source_prepare(weft_context *ctx, const weft_heavy_source *source, const char *path,
                                     int threads, weft_cpu_work *work) {
    (void)path, (void)threads, (void)work;
    return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "cpu: the source of %s is for GPUs: use another device",
                      source->name);
}
