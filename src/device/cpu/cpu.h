/* The inside of the CPU device: how a kernel or a heavy operation becomes work that threads share.
 * Must not know: graphs. Read next: run.c. */
#ifndef WEFT_DEVICE_CPU_CPU_H
#define WEFT_DEVICE_CPU_CPU_H

#include "device/device.h"

/* Work that is divided into tasks. Each task writes its own part of the results. If the partition can change
 * bits, shapes and dtypes alone decide the number of tasks and their borders. The number of threads never
 * does. */
typedef struct weft_cpu_work {
    int64_t tasks;
    size_t scratch_bytes; /* private memory that each thread needs, 64-byte aligned, contents undefined */
    double cost_ns;       /* estimated time on one thread; it decides how many threads a program gets */
    /* Runs tasks begin..end-1. args[i] is the address of operand i. A bad value is recorded in *fault. */
    void (*run)(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                weft_fault *fault);
    void (*free)(weft_context *ctx, void *plan);
    void *plan;
} weft_cpu_work;

/* Instruction sets. weft__cpu_isa returns the best one of the machine, up to the limit in WEFT_CPU_ISA
 * (baseline, avx2, avx512). */
typedef enum weft_cpu_isa { WEFT_ISA_BASELINE, WEFT_ISA_AVX2, WEFT_ISA_AVX512 } weft_cpu_isa;
weft_cpu_isa weft__cpu_isa(void);
const char *weft__cpu_isa_name(weft_cpu_isa isa);
/* Returns the instruction set that the build needs and the machine lacks, or NULL: -DWEFT_NATIVE=ON. */
const char *weft__cpu_isa_lacks(void);
/* Returns true if WEFT_CPU_ISA is unset or names an instruction set. */
bool weft__cpu_isa_known(void);

/* tile/kernel_plan.c: turns a fused kernel into a list of tile primitives. */
weft_status weft__cpu_kernel_prepare(weft_context *ctx, const weft_kernel *kernel, const weft_operand *places,
                                     weft_cpu_work *work);
/* heavy/heavy.c: the heavy operations. `threads` may affect a partition only if the partition changes no
 * bit. */
bool weft__cpu_heavy_takes(const weft_heavy *heavy);
weft_status weft__cpu_heavy_prepare(weft_context *ctx, const weft_heavy *heavy, int threads,
                                    weft_cpu_work *work);
/* heavy/exchange.c: a command that waits for the end of an exchange. */
weft_status weft__cpu_wait_prepare(weft_context *ctx, const weft_heavy_exchange *exchange,
                                   weft_cpu_work *work);
/* gemm/matmul_library.c: returns which library computes matmuls, such as "oneDNN 2.6.3 (avx512_core)" or "own
 * kernels (avx2)". */
const char *weft__cpu_matmul_description(void);

/* Records a fault, unless one is already recorded. */
void weft__cpu_fault(weft_fault *fault, weft_fault_kind kind, const char *path, int64_t value, int64_t bound,
                     int64_t element);

#endif
