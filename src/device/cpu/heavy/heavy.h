/* The heavy operations of the CPU device. For each row of heavy/heavy.def there are two functions: whether
 * the device takes the operation, and how it becomes work. `path` is the layer, for faults. `threads` may
 * choose a partition only if that changes no bit.
 * Must not know: graphs. Read next: heavy.c. */
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
