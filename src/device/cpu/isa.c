/* Chooses the instruction set of the CPU device: the best one of the machine, up to WEFT_CPU_ISA. It also
 * returns the tables and types that depend on this choice.
 * Must not know: kernels. Read next: tile/tiles.h. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/packed.h"
#include "device/cpu/tile/tiles.h"

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

/* With -DWEFT_NATIVE=ON the build has the tables of one instruction set. */
#define ISA_PASTE_(a, b) a##b
#define ISA_PASTE(a, b)  ISA_PASTE_(a, b)
#if defined(WEFT_ISA_ONLY)
enum { ISA_baseline, ISA_avx2, ISA_avx512 };
enum { ISA_LEAST = ISA_PASTE(ISA_, WEFT_ISA_ONLY), ISA_MOST = ISA_LEAST };
#define TABLE(name) (&ISA_PASTE(name##_, WEFT_ISA_ONLY))
#elif defined(__x86_64__)
#define TABLE(name)                                                                                          \
    (weft__cpu_isa() == WEFT_ISA_AVX512 ? &name##_avx512                                                     \
     : weft__cpu_isa() == WEFT_ISA_AVX2 ? &name##_avx2                                                       \
                                        : &name##_baseline)
#else
#define TABLE(name) (&name##_baseline)
#endif
#if !defined(WEFT_ISA_ONLY)
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

const weft_tiles *weft__tiles(void) { return TABLE(weft__tiles); }

weft_ct weft__ct(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F32:
    case WEFT_F16:
    case WEFT_BF16: return WEFT_CT_F32;
    case WEFT_F64: return WEFT_CT_F64;
    case WEFT_I8:
    case WEFT_I16:
    case WEFT_I32:
    case WEFT_U8:
    case WEFT_U16:
    case WEFT_BOOL: return WEFT_CT_I32;
    case WEFT_U32:
    case WEFT_I64: return WEFT_CT_I64;
    case WEFT_U64: return WEFT_CT_U64;
    default: return WEFT_CT_COUNT;
    }
}

size_t weft__ct_size(weft_ct ct) { return ct == WEFT_CT_F32 || ct == WEFT_CT_I32 ? 4 : 8; }

const weft_gemm_own *weft__gemm_own(void) { return TABLE(weft__gemm_own); }

const weft_packed_own *weft__packed_own(void) {
#if defined(__x86_64__) && (!defined(WEFT_ISA_ONLY) || defined(WEFT_ISA_ONLY_avx512))
    if (weft__cpu_isa() == WEFT_ISA_AVX512 && __builtin_cpu_supports("avx512vnni"))
        return &weft__packed_own_vnni;
#endif
    return TABLE(weft__packed_own);
}
