/* The heavy operations of the CPU device. For each there are two functions: whether the device takes the
 * operation, and how it becomes work. `path` is the layer, for faults. `threads` may
 * choose a partition only if that changes no bit.
 * Must not know: graphs. Read next: heavy.c. */
#ifndef WEFT_DEVICE_CPU_HEAVY_HEAVY_H
#define WEFT_DEVICE_CPU_HEAVY_HEAVY_H

#include "device/cpu/gemm/gemm.h"

/* The operations that the device runs. It declines the others of heavy.def: the source of a program's own
 * kernel is OpenCL C or CUDA C++. */
#define WEFT_CPU_HEAVY(ROW)                                                                                  \
    ROW(MATMUL, matmul)                                                                                      \
    ROW(SCATTER, scatter)                                                                                    \
    ROW(ATTENTION, attention)                                                                                \
    ROW(UPDATE, update)                                                                                      \
    ROW(CONV, conv)                                                                                          \
    ROW(RECURRENT, recurrent)                                                                                \
    ROW(SCAN, scan)                                                                                          \
    ROW(ARGSORT, argsort)                                                                                    \
    ROW(PACKED, packed)                                                                                      \
    ROW(EXCHANGE, exchange)

#define CPU_DECLARED(KIND, member)                                                                           \
    bool weft__cpu_##member##_takes(const weft_heavy_##member *heavy);                                       \
    weft_status weft__cpu_##member##_prepare(weft_context *ctx, const weft_heavy_##member *heavy,            \
                                             const char *path, int threads, weft_cpu_work *work);
WEFT_CPU_HEAVY(CPU_DECLARED)
#undef CPU_DECLARED

#endif
