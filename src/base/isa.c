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

/* The environment is read at each call, so that a test may change it between two contexts. Calls are rare. An
 * unknown name sets no limit. */
weft_cpu_isa weft__cpu_isa(void) {
    weft_cpu_isa best = best_isa();
    const char *cap = getenv("WEFT_CPU_ISA");
    for (int i = 0; cap && i < (int)best; i++)
        if (strcmp(cap, isa_names[i]) == 0) return (weft_cpu_isa)i;
    return best;
}

bool weft__cpu_isa_known(void) {
    const char *cap = getenv("WEFT_CPU_ISA");
    for (size_t i = 0; cap && i < sizeof isa_names / sizeof *isa_names; i++)
        if (strcmp(cap, isa_names[i]) == 0) return true;
    return !cap || !cap[0];
}
