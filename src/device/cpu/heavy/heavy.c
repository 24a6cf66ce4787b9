/* The table of the CPU device's heavy operations.
 * Must not know: what an operation computes. Read next: ../gemm/matmul.c, attention.c, conv.c. */
#include "device/cpu/heavy/heavy.h"

#define FUNCTIONS(KIND, member)                                                                              \
    static bool takes_##member(const weft_heavy *heavy) {                                                    \
        return weft__cpu_##member##_takes(&heavy->as.member);                                                \
    }                                                                                                        \
    static weft_status prepare_##member(weft_context *ctx, const weft_heavy *heavy, int threads,             \
                                        weft_cpu_work *work) {                                               \
        return weft__cpu_##member##_prepare(ctx, &heavy->as.member, heavy->path, threads, work);             \
    }
WEFT_CPU_HEAVY(FUNCTIONS)

static const struct {
    bool (*takes)(const weft_heavy *heavy);
    weft_status (*prepare)(weft_context *ctx, const weft_heavy *heavy, int threads, weft_cpu_work *work);
} table[WEFT_HEAVY_KINDS] = {
#define ROW(KIND, member) [WEFT_HEAVY_##KIND] = {takes_##member, prepare_##member},
    WEFT_CPU_HEAVY(ROW)};

bool weft__cpu_heavy_takes(const weft_heavy *heavy) {
    return table[heavy->kind].takes && table[heavy->kind].takes(heavy);
}

weft_status weft__cpu_heavy_prepare(weft_context *ctx, const weft_heavy *heavy, int threads,
                                    weft_cpu_work *work) {
    *work = (weft_cpu_work){0};
    if (!weft__cpu_heavy_takes(heavy))
        return weft__fail(ctx, WEFT_ERR_INTERNAL, "cpu: the device does not support this heavy operation: %s",
                          heavy->path ? heavy->path : "");
    return table[heavy->kind].prepare(ctx, heavy, threads, work);
}
