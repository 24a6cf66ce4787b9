/* Heavy operations of the CPU device: which it takes, and each as work cut into tasks. Read next: matmul.c,
 * attention.c, conv.c, recurrent.c, scatter.c, update.c. */
#include "device/cpu/gemm/gemm.h"

const weft_gemm_own *weft__gemm_own(void) {
#if defined(__x86_64__)
    if (weft__cpu_isa() == WEFT_ISA_AVX512) return &weft__gemm_own_avx512;
    if (weft__cpu_isa() == WEFT_ISA_AVX2) return &weft__gemm_own_avx2;
#endif
    return &weft__gemm_own_baseline;
}

bool weft__cpu_heavy_takes(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return weft__cpu_matmul_takes(&heavy->as.matmul);
    case WEFT_HEAVY_ATTENTION: return weft_dtype_is_float((weft_dtype)heavy->as.attention.dtype);
    case WEFT_HEAVY_SCATTER: return weft__cpu_scatter_takes(&heavy->as.scatter);
    case WEFT_HEAVY_UPDATE: return weft_dtype_size((weft_dtype)heavy->as.update.dtype) > 0;
    case WEFT_HEAVY_CONV: return weft_dtype_is_float((weft_dtype)heavy->as.conv.dtype);
    case WEFT_HEAVY_RECURRENT: return weft__cpu_recurrent_takes(&heavy->as.recurrent);
    case WEFT_HEAVY_SCAN:
    case WEFT_HEAVY_ORDER: return true;
    case WEFT_HEAVY_SOURCE: return false;
    }
    return false;
}

weft_status weft__cpu_heavy_prepare(weft_context *ctx, const weft_heavy *heavy, int threads,
                                    weft_cpu_work *work) {
    *work = (weft_cpu_work){0};
    if (!weft__cpu_heavy_takes(heavy))
        return weft__fail(ctx, WEFT_ERR_INTERNAL, "cpu: a heavy operation that the device does not take: %s",
                          heavy->path ? heavy->path : "");
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return weft__cpu_matmul_prepare(ctx, &heavy->as.matmul, threads, work);
    case WEFT_HEAVY_ATTENTION:
        return weft__cpu_attention_prepare(ctx, &heavy->as.attention, heavy->path, work);
    case WEFT_HEAVY_SCATTER: return weft__cpu_scatter_prepare(ctx, &heavy->as.scatter, heavy->path, work);
    case WEFT_HEAVY_UPDATE: return weft__cpu_update_prepare(ctx, &heavy->as.update, heavy->path, work);
    case WEFT_HEAVY_CONV: return weft__cpu_conv_prepare(ctx, &heavy->as.conv, threads, work);
    case WEFT_HEAVY_RECURRENT: return weft__cpu_recurrent_prepare(ctx, &heavy->as.recurrent, threads, work);
    case WEFT_HEAVY_SCAN: return weft__cpu_scan_prepare(ctx, &heavy->as.scan, work);
    case WEFT_HEAVY_ORDER: return weft__cpu_order_prepare(ctx, &heavy->as.order, work);
    case WEFT_HEAVY_SOURCE: break;
    }
    return WEFT_ERR_INTERNAL;
}
