/* The heavy operations of the CPU device: for each row of heavy.def, whether the device takes it, and the
 * work that it becomes. `path` is its layer, for faults. `threads` may choose a partition that changes no
 * bit. Read next: heavy.c. */
#ifndef WEFT_DEVICE_CPU_HEAVY_HEAVY_H
#define WEFT_DEVICE_CPU_HEAVY_HEAVY_H

#include "device/cpu/gemm/gemm.h"

#define W_HEAVY(KIND, member, OP)                                                                            \
    bool weft__cpu_##member##_takes(const weft_heavy_##member *heavy);                                       \
    weft_status weft__cpu_##member##_prepare(weft_context *ctx, const weft_heavy_##member *heavy,            \
                                             const char *path, int threads, weft_cpu_work *work);
#include "heavy/heavy.def"
#undef W_HEAVY

#endif
