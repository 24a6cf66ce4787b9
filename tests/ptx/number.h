/* Numbers in registers: integers by their type, floats by their bits. Read next: arithmetic.c. */
#ifndef WEFT_TESTS_PTX_NUMBER_H
#define WEFT_TESTS_PTX_NUMBER_H

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "module.h"

__extension__ typedef __int128 ptx_wide;

/* Stops the launch: the interpreter does not know the instruction in this type or form. */
void ptx_unknown(ptx_warp *w, const ptx_instruction *in);

/* ---- integers ---- */

static inline uint64_t ptx_mask(unsigned bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

/* The value of a register as this type, extended to 64 bits by its sign if the type has one. */
static inline uint64_t ptx_integer(ptx_type t, uint64_t bits) {
    switch (t) {
    case S8: return (uint64_t)(int64_t)(int8_t)bits;
    case S16: return (uint64_t)(int64_t)(int16_t)bits;
    case S32: return (uint64_t)(int64_t)(int32_t)bits;
    case U8:
    case B8: return (uint8_t)bits;
    case U16:
    case B16: return (uint16_t)bits;
    case U32:
    case B32: return (uint32_t)bits;
    case PREDICATE: return bits & 1;
    default: return bits;
    }
}

/* ---- floats ---- */

static inline float ptx_float(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}
static inline double ptx_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* "Single-precision NaN results are the canonical NaN 0x7fffffff." */
static inline uint64_t ptx_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0x7fffffff : bits;
}
static inline uint64_t ptx_double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A subnormal number becomes 0 of the same sign. */
static inline float ptx_flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* An operand and a result of type F32 of an instruction that may have .ftz and .sat. */
static inline float ptx_float_in(const ptx_instruction *in, uint64_t bits) {
    const float x = ptx_float(bits);
    return in->flags & FTZ ? ptx_flush(x) : x;
}
static inline uint64_t ptx_float_out(const ptx_instruction *in, float x) {
    if (in->flags & FTZ) x = ptx_flush(x);
    if (in->flags & SAT) x = x > 0 ? (x < 1 ? x : 1) : 0; /* NaN becomes 0 */
    return ptx_float_bits(x);
}

/* The host rounds as the instruction demands until ptx_round_end. Rounding to whole numbers (.rzi) has
 * functions of its own, which need the default. */
static inline void ptx_round_begin(const ptx_instruction *in) {
    switch (in->rounding) {
    case RZ: fesetround(FE_TOWARDZERO); break;
    case RM: fesetround(FE_DOWNWARD); break;
    case RP: fesetround(FE_UPWARD); break;
    default: break;
    }
}
static inline void ptx_round_end(const ptx_instruction *in) {
    if (in->rounding >= RZ && in->rounding <= RP) fesetround(FE_TONEAREST);
}

/* ---- convert.c: 16-bit floats ---- */

double ptx_half(uint64_t bits);
double ptx_bfloat(uint64_t bits);

#endif
