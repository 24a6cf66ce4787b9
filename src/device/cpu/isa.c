/* The tables of kernels and the types of the instruction set that the CPU device uses.
 * Must not know: kernels. Read next: base/isa.c, tile/tiles.h. */
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/packed.h"
#include "device/cpu/tile/tiles.h"

const weft_tiles *weft__tiles(void) {
#if defined(__x86_64__)
    switch (weft__cpu_isa()) {
    case WEFT_ISA_AVX512: return &weft__tiles_avx512;
    case WEFT_ISA_AVX2: return &weft__tiles_avx2;
    case WEFT_ISA_BASELINE: break;
    }
#endif
    return &weft__tiles_baseline;
}

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

const weft_gemm_own *weft__gemm_own(void) {
#if defined(__x86_64__)
    if (weft__cpu_isa() == WEFT_ISA_AVX512) return &weft__gemm_own_avx512;
    if (weft__cpu_isa() == WEFT_ISA_AVX2) return &weft__gemm_own_avx2;
#endif
    return &weft__gemm_own_baseline;
}

const weft_packed_own *weft__packed_own(void) {
#if defined(__x86_64__)
    if (weft__cpu_isa() == WEFT_ISA_AVX512)
        return __builtin_cpu_supports("avx512vnni") ? &weft__packed_own_vnni : &weft__packed_own_avx512;
    if (weft__cpu_isa() == WEFT_ISA_AVX2) return &weft__packed_own_avx2;
#endif
    return &weft__packed_own_baseline;
}
