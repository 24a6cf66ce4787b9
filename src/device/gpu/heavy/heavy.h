/* The heavy operations of the GPU backends: templates as launches (kernel/source.h), one file for each
 * operation. `takes` returns whether the template runs it; the other function is called only then. `sink`:
 * the launches do nothing after a fault is recorded.
 * Must not know: OpenCL, CUDA. Read next: gpu/gpu.h. */
#ifndef WEFT_DEVICE_GPU_HEAVY_HEAVY_H
#define WEFT_DEVICE_GPU_HEAVY_HEAVY_H

#include "device/device.h"
#include "kernel/source.h"

/* The operations that have a template. A backend declines the others of heavy.def. */
#define WEFT_GPU_HEAVY(ROW)                                                                                  \
    ROW(MATMUL, matmul)                                                                                      \
    ROW(SCATTER, scatter)                                                                                    \
    ROW(ATTENTION, attention)                                                                                \
    ROW(UPDATE, update)                                                                                      \
    ROW(CONV, conv)                                                                                          \
    ROW(RECURRENT, recurrent)                                                                                \
    ROW(SCAN, scan)                                                                                          \
    ROW(ARGSORT, argsort)                                                                                    \
    ROW(SOURCE, source)                                                                                      \
    ROW(PACKED, packed)                                                                                      \
    ROW(EXCHANGE, exchange)

#define GPU_DECLARED(KIND, member)                                                                           \
    bool weft__gpu_##member##_takes(const weft_target *target, const weft_heavy_##member *heavy);            \
    weft_status weft__gpu_##member(weft_launches *launches, const weft_heavy *heavy, bool sink);
WEFT_GPU_HEAVY(GPU_DECLARED)
#undef GPU_DECLARED

/* conv/conv_direct.c: convolutions of groups with so few channels that matmuls would be mostly empty. */
bool weft__gpu_conv_is_direct(const weft_target *target, const weft_heavy_conv *conv);
weft_status weft__gpu_conv_direct(weft_launches *launches, const weft_heavy *heavy, bool sink);

/* scatter_sort.c: scatter-adds that sort the index first. */
bool weft__gpu_scatter_is_sorted(const weft_heavy_scatter *scatter);
weft_status weft__gpu_scatter_sorted(weft_launches *launches, const weft_heavy *heavy, bool sink);

/* exchange.c: adds the launch of a sum of rows in the scratch memory, beside other launches
 * (kernel/source.h). Elements `at` to at + count - 1 of the result become the sums of their elements 0 to
 * count - 1, and those up to at + all - 1 become 0. */
typedef struct weft__added_rows {
    weft_dtype dtype; /* f32 or f64 */
    int rows;
    int64_t apart; /* elements from a row to the next one */
    int64_t at, count, all;
} weft__added_rows;
weft_status weft__gpu_add_rows(weft_launches *launches, const weft__added_rows *rows);

/* argsort.c: returns the number of work-groups for so many workers. Each worker takes further work until all
 * is done. */
int64_t weft__gpu_groups(const weft_target *target, int64_t workers);

#endif
