/* Chooses the instruction set of this processor: the best one of the machine, up to WEFT_CPU_ISA. Must not
 * know: what is computed with it. Read next: device/cpu/isa.c. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"

static const char *const isa_names[] = {"baseline", "avx2", "avx512"};

const char *weft__cpu_isa_name(weft_cpu_isa isa) { return isa_names[isa]; }

#if defined(__x86_64__)
static weft_cpu_isa best_isa(void) {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? WEFT_ISA_AVX512 : avx2 ? WEFT_ISA_AVX2 : WEFT_ISA_BASELINE;
}
#else
static weft_cpu_isa best_isa(void) { return WEFT_ISA_BASELINE; }
#endif

/* With -DWEFT_NATIVE=ON the build has one instruction set. */
#if defined(WEFT_ISA_ONLY)
#define ISA_PASTE_(a, b) a##b
#define ISA_PASTE(a, b)  ISA_PASTE_(a, b)
enum { ISA_baseline, ISA_avx2, ISA_avx512 };
enum { ISA_LEAST = ISA_PASTE(ISA_, WEFT_ISA_ONLY), ISA_MOST = ISA_LEAST };
#else
enum { ISA_LEAST = WEFT_ISA_BASELINE, ISA_MOST = WEFT_ISA_AVX512 };
#endif

const char *weft__cpu_isa_lacks(void) { return (int)best_isa() < ISA_LEAST ? isa_names[ISA_LEAST] : NULL; }

/* The environment is read at each call, so that a test may change it between two contexts. Calls are rare. An
 * unknown name, or one that was not built, sets no limit. */
weft_cpu_isa weft__cpu_isa(void) {
    const weft_cpu_isa machine = best_isa(),
                       best = (int)machine < ISA_MOST ? machine : (weft_cpu_isa)ISA_MOST;
    const char *cap = getenv("WEFT_CPU_ISA");
    for (int i = ISA_LEAST; cap && i < (int)best; i++)
        if (strcmp(cap, isa_names[i]) == 0) return (weft_cpu_isa)i;
    return best;
}

bool weft__cpu_isa_known(void) {
    const char *cap = getenv("WEFT_CPU_ISA");
    for (size_t i = ISA_LEAST; cap && i < sizeof isa_names / sizeof *isa_names; i++)
        if (strcmp(cap, isa_names[i]) == 0) return true;
    return !cap || !cap[0];
}
