/* The mathematics of the op table in C: w_exp, w_tanh, w_max and so on.
 *
 * - f32: prelude_f32.h, which GPUs use, too. Angles beyond W_ANGLE_MAX: Payne and Hanek (1983).
 * - f64: the C library.
 * - integers: prelude_int.h; they wrap and never trap.
 *
 * Must not know: ops, tiles. Compile with -ffp-contract=off, without -ffast-math. */
#ifndef WEFT_KERNEL_PRELUDE_H
#define WEFT_KERNEL_PRELUDE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define W_FN static inline __attribute__((always_inline, unused))

/* ---- what prelude_f32.h, prelude_f64.h and prelude_int.h need ---- */

#define W_F32             float
#define W_F64             double
#define W_I32             int32_t
#define W_U32             uint32_t
#define W_MASK(c)         (-(c))
#define w_bool(c)         (c)
#define w_uns(i)          ((uint32_t)(i))
#define w_sig(u)          ((int32_t)(u))
#define w_to_f32(i)       ((float)(i))
#define w_to_i32(x)       ((int32_t)(x))
#define w_exact(x)        (x)
#define w_root(x)         __builtin_sqrtf(x)
#define w_remainder(x, y) fmodf(x, y)
#define fmod_f64(x, y)    fmod(x, y)
#define pow_f64(x, y)     pow(x, y)
#define hypot_f64(x, y)   hypot(x, y)
#define atan2_f64(y, x)   atan2(y, x)

W_FN int32_t w_bits(float x) {
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}

W_FN float w_float(int32_t i) {
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}

/* One rounding if the instruction set has an instruction for it, else two. */
W_FN float w_fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}
W_FN double w_fma_f64(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

W_FN float w_sel_f32(int c, float x, float y) { return c ? x : y; }
W_FN double w_sel_f64(int c, double x, double y) { return c ? x : y; }
W_FN int32_t w_sel_i32(int c, int32_t x, int32_t y) { return c ? x : y; }
W_FN int64_t w_sel_i64(int c, int64_t x, int64_t y) { return c ? x : y; }
W_FN uint64_t w_sel_u64(int c, uint64_t x, uint64_t y) { return c ? x : y; }

#include "kernel/prelude_f32.h"
#include "kernel/prelude_f64.h"

/* For angles beyond W_ANGLE_MAX and below 2^128: multiplies the bits of 2/pi that matter by the 24 bits of x,
 * modulo 4 (Payne and Hanek). Returns r in [-pi/4, pi/4] and n mod 4. */
static inline __attribute__((unused)) float w_angle_huge(float x, int32_t *n) {
    static const uint32_t two_over_pi[9] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                            0xdb629599u, 0x3c439041u, 0xfe5163abu, 0u}; /* 32 zeros before */
    int32_t bits = w_bits(x), place = (bits >> 23) - 150 + 31 - 1; /* first bit of the window */
    uint64_t mantissa = (uint64_t)((bits & 0x7fffff) | 0x800000), word[4];
    for (int i = 0; i < 4; i++) word[i] = two_over_pi[place / 32 + i];
    int shift = place % 32; /* window of 96 bits, in units of 4 / 2^96 */
    uint64_t high = (word[0] << 32 | word[1]) << shift | (shift ? word[2] >> (32 - shift) : 0);
    uint64_t low = (word[2] << 32 | word[3]) << shift >> 32;
    uint64_t carry = mantissa * (low & 0xffffffffu) >> 32;
    uint64_t product = mantissa * high + carry; /* modulo 2^64: whole quarters in the two top bits */
    int64_t fraction = (int64_t)(product << 2); /* units of pi/2 / 2^64, as signed */
    *n = (int32_t)((product >> 62) + (fraction < 0)) & 3;
    return (float)((double)fraction * (0x1p-64 * 1.57079632679489661923));
}

/* ---- integers ---- */

#include "kernel/prelude_int.h"
W_SIGNED(int32_t, uint32_t, i32, (uint32_t), (int32_t), 31)
W_SIGNED(int64_t, uint64_t, i64, (uint64_t), (int64_t), 63)
W_UNSIGNED(uint64_t, u64, (uint64_t), 63)

/* ---- conversions: float to integer saturates, NaN becomes 0 ---- */

W_FN int32_t w_f32_to_i32(float x) {
    float t = x < -0x1p31f ? -0x1p31f : x;
    int32_t i = (int32_t)(t < 0x1p31f ? t : 0.0f);
    return x >= 0x1p31f ? INT32_MAX : i;
}
W_FN int32_t w_f64_to_i32(double x) {
    double t = x < -0x1p31 ? -0x1p31 : x;
    t = t > 2147483647.0 ? 2147483647.0 : t;
    return (int32_t)(t == t ? t : 0.0);
}
W_FN int64_t w_f64_to_i64(double x) {
    double t = x < -0x1p63 ? -0x1p63 : x;
    int64_t i = (int64_t)(t < 0x1p63 ? t : 0.0);
    return x >= 0x1p63 ? INT64_MAX : i;
}
W_FN int64_t w_f32_to_i64(float x) { return w_f64_to_i64((double)x); }
W_FN uint64_t w_f64_to_u64(double x) {
    uint64_t i = (uint64_t)(x > 0 && x < 0x1p64 ? x : 0.0);
    return x >= 0x1p64 ? UINT64_MAX : i;
}
W_FN uint64_t w_f32_to_u64(float x) { return w_f64_to_u64((double)x); }

/* f16 and bf16 as bits, rounding to nearest even. Scaling by 2^112 shifts an exponent of 5 bits into one of
 * 8, subnormals included; adding 2^-1 (magic) rounds what will be subnormal. */
W_FN float w_from_f16(uint16_t h) {
    uint32_t m = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    float scaled = w_float((int32_t)(m << 13)) * 0x1p112f;
    uint32_t bits = (uint32_t)w_bits(scaled) | (m >= 0x7c00u ? 0x7f800000u : 0u);
    return w_float((int32_t)(bits | sign));
}
W_FN uint16_t w_to_f16(float x) {
    uint32_t bits = (uint32_t)w_bits(x), m = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t normal = (m + 0xfffu + (m >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t tiny = (uint32_t)w_bits(w_float((int32_t)m) + 0.5f) - 0x3f000000u;
    uint32_t h = m < 0x38800000u ? tiny : normal;
    h = m >= 0x477ff000u ? 0x7c00u : h;
    h = m > 0x7f800000u ? (0x7e00u | (m >> 13 & 0x3ffu)) : h;
    return (uint16_t)(h | sign);
}
W_FN float w_from_bf16(uint16_t h) { return w_float((int32_t)((uint32_t)h << 16)); }
W_FN uint16_t w_to_bf16(float x) {
    uint32_t bits = (uint32_t)w_bits(x);
    uint32_t round = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : round);
}

/* ---- one name for all types, as the rows of ops.def write it ---- */

#define W_FLOATS_(f, a) _Generic((a), float : f##_f32, double : f##_f64)
#define W_INTS_(f, a)   _Generic((a), int32_t : f##_i32, int64_t : f##_i64, uint64_t : f##_u64)
#define W_NUMBERS_(f, a)                                                                                     \
    _Generic((a), float : f##_f32, double : f##_f64, int32_t : f##_i32, int64_t : f##_i64, uint64_t : f##_u64)
#define w_exp(a)             W_FLOATS_(w_exp, a)(a)
#define w_exp2(a)            W_FLOATS_(w_exp2, a)(a)
#define w_log(a)             W_FLOATS_(w_log, a)(a)
#define w_log2(a)            W_FLOATS_(w_log2, a)(a)
#define w_log1p(a)           W_FLOATS_(w_log1p, a)(a)
#define w_expm1(a)           W_FLOATS_(w_expm1, a)(a)
#define w_sin(a)             W_FLOATS_(w_sin, a)(a)
#define w_cos(a)             W_FLOATS_(w_cos, a)(a)
#define w_tanh(a)            W_FLOATS_(w_tanh, a)(a)
#define w_erf(a)             W_FLOATS_(w_erf, a)(a)
#define w_sqrt(a)            W_FLOATS_(w_sqrt, a)(a)
#define w_rsqrt(a)           W_FLOATS_(w_rsqrt, a)(a)
#define w_recip(a)           W_FLOATS_(w_recip, a)(a)
#define w_floor(a)           W_FLOATS_(w_floor, a)(a)
#define w_ceil(a)            W_FLOATS_(w_ceil, a)(a)
#define w_round(a)           W_FLOATS_(w_round, a)(a)
#define w_trunc(a)           W_FLOATS_(w_trunc, a)(a)
#define w_isnan(a)           W_FLOATS_(w_isnan, a)(a)
#define w_isinf(a)           W_FLOATS_(w_isinf, a)(a)
#define w_sigmoid(a)         W_FLOATS_(w_sigmoid, a)(a)
#define w_gelu(a)            W_FLOATS_(w_gelu, a)(a)
#define w_gelu_slope(a)      W_FLOATS_(w_gelu_slope, a)(a)
#define w_gelu_tanh(a)       W_FLOATS_(w_gelu_tanh, a)(a)
#define w_gelu_tanh_slope(a) W_FLOATS_(w_gelu_tanh_slope, a)(a)
#define w_pow(a, b)          W_FLOATS_(w_pow, a)(a, b)
#define w_atan2(a, b)        W_FLOATS_(w_atan2, a)(a, b)
#define w_hypot(a, b)        W_FLOATS_(w_hypot, a)(a, b)
#define w_fma(a, b, c)       W_FLOATS_(w_fma, a)(a, b, c)
#define w_abs(a)             W_NUMBERS_(w_abs, a)(a)
#define w_sign(a)            W_NUMBERS_(w_sign, a)(a)
#define w_max(a, b)          W_NUMBERS_(w_max, a)(a, b)
#define w_min(a, b)          W_NUMBERS_(w_min, a)(a, b)
#define w_div(a, b)          W_NUMBERS_(w_div, a)(a, b)
#define w_mod(a, b)          W_NUMBERS_(w_mod, a)(a, b)
#define w_sel(c, x, y)       W_NUMBERS_(w_sel, x)((int)(c), x, y)
#define w_not(a)             W_INTS_(w_not, a)(a)
#define w_shl(a, b)          W_INTS_(w_shl, a)(a, b)
#define w_shr(a, b)          W_INTS_(w_shr, a)(a, b)

#endif
