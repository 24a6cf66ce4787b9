/* Inside the CPU device: how a kernel or a heavy operation becomes work that threads share. Read next: run.c.
 */
#ifndef WEFT_DEVICE_CPU_CPU_H
#define WEFT_DEVICE_CPU_CPU_H

#include "device/device.h"

/* Work cut into tasks. Their number and borders depend on shapes and dtypes alone, never on the number of
 * threads, wherever bits depend on them. Each task writes its own part of the results. */
typedef struct weft_cpu_work {
    int64_t tasks;
    size_t scratch_bytes; /* private memory a thread needs, 64-byte aligned, contents undefined */
    double cost_ns;       /* estimate for one thread: decides how many threads a program gets */
    /* Runs tasks begin..end-1. args[i] is the address of operand i. A bad value goes to *fault. */
    void (*run)(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                weft_fault *fault);
    void (*free)(weft_context *ctx, void *plan);
    void *plan;
} weft_cpu_work;

/* Instruction sets, the best that the machine has under the cap of WEFT_CPU_ISA (baseline, avx2, avx512). */
typedef enum weft_cpu_isa { WEFT_ISA_BASELINE, WEFT_ISA_AVX2, WEFT_ISA_AVX512 } weft_cpu_isa;
weft_cpu_isa weft__cpu_isa(void);
const char *weft__cpu_isa_name(weft_cpu_isa isa);
/* Whether WEFT_CPU_ISA, if it is set, names one. */
bool weft__cpu_isa_known(void);

/* kernel_plan.c: a fused kernel as a list of tile primitives. */
weft_status weft__cpu_kernel_prepare(weft_context *ctx, const weft_kernel *kernel, const weft_operand *places,
                                     weft_cpu_work *work);
/* heavy.c: matmul, scatter-add, attention, update. `threads` may decide a cut that changes no bit. */
bool weft__cpu_heavy_takes(const weft_heavy *heavy);
weft_status weft__cpu_heavy_prepare(weft_context *ctx, const weft_heavy *heavy, int threads,
                                    weft_cpu_work *work);
/* matmul_library.c: which library serves matmul, such as "oneDNN 2.6.3 (avx512_core)" or "own kernels
 * (avx2)". */
const char *weft__cpu_matmul_description(void);

/* Records a fault unless one is there; of several the first recorded stays. */
void weft__cpu_fault(weft_fault *fault, weft_fault_kind kind, const char *path, int64_t value, int64_t bound,
                     int64_t element);

#endif
