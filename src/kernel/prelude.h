/* The mathematics of the op table: w_exp, w_tanh, w_max and their kin, for f32 in a dialect-neutral C (float,
 * 32-bit integers, no branch, no library call but sqrt), so that a C compiler vectorises them and a renderer
 * can give them to other devices; for f64 by the C library; for integers with wrapping and no trap.
 * Bounds in ULP: docs and tests/unit/test_cpu_math.c. Coefficients were fitted for these intervals by the
 * exchange algorithm of Remez (relative error, 40 digits) and rounded to f32.
 * Sources: Cody and Waite, "Software Manual for the Elementary Functions" (1980), for argument reduction;
 * Muller, "Elementary Functions", 3rd ed. (2016), chapters 3, 4 and 11; Dekker (1971) for split products;
 * Payne and Hanek (1983) for huge angles.
 * Must not know: ops, tiles. Compile with -ffp-contract=off, without -ffast-math. */
#ifndef WEFT_KERNEL_PRELUDE_H
#define WEFT_KERNEL_PRELUDE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define W_FN static inline __attribute__((always_inline, unused))

/* ---- bits and choices ---- */

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

W_FN float w_sel_f32(int c, float x, float y) { return c ? x : y; }
W_FN double w_sel_f64(int c, double x, double y) { return c ? x : y; }
W_FN int32_t w_sel_i32(int c, int32_t x, int32_t y) { return c ? x : y; }
W_FN int64_t w_sel_i64(int c, int64_t x, int64_t y) { return c ? x : y; }

/* One rounding where the instruction set has it, two where not. */
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

W_FN float w_abs_f32(float a) { return w_float(w_bits(a) & 0x7fffffff); }
W_FN double w_abs_f64(double a) { return fabs(a); }
W_FN int32_t w_abs_i32(int32_t a) { return a < 0 ? (int32_t)(0u - (uint32_t)a) : a; }
W_FN int64_t w_abs_i64(int64_t a) { return a < 0 ? (int64_t)(UINT64_C(0) - (uint64_t)a) : a; }

/* |x| with the sign of s. */
W_FN float w_signed_f32(float x, float s) {
    return w_float((w_bits(x) & 0x7fffffff) | (w_bits(s) & (int32_t)0x80000000));
}

W_FN int w_isnan_f32(float a) { return a != a; }
W_FN int w_isnan_f64(double a) { return a != a; }
W_FN int w_isinf_f32(float a) { return w_abs_f32(a) == HUGE_VALF; }
W_FN int w_isinf_f64(double a) { return fabs(a) == HUGE_VAL; }

/* NaN wins. The first choice is one machine instruction, which yields b where either is NaN. */
W_FN float w_max_f32(float a, float b) {
    float m = a > b ? a : b;
    return a != a ? a : m;
}
W_FN float w_min_f32(float a, float b) {
    float m = a < b ? a : b;
    return a != a ? a : m;
}
W_FN double w_max_f64(double a, double b) {
    double m = a > b ? a : b;
    return a != a ? a : m;
}
W_FN double w_min_f64(double a, double b) {
    double m = a < b ? a : b;
    return a != a ? a : m;
}
W_FN int32_t w_max_i32(int32_t a, int32_t b) { return a > b ? a : b; }
W_FN int32_t w_min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
W_FN int64_t w_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
W_FN int64_t w_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

W_FN float w_sign_f32(float a) { return a > 0 ? 1.0f : (a < 0 ? -1.0f : a); }
W_FN double w_sign_f64(double a) { return a > 0 ? 1.0 : (a < 0 ? -1.0 : a); }
W_FN int32_t w_sign_i32(int32_t a) { return (a > 0) - (a < 0); }
W_FN int64_t w_sign_i64(int64_t a) { return (a > 0) - (a < 0); }

/* ---- rounding: adding 2^23 rounds to a whole number, half to even ---- */

W_FN float w_round_f32(float a) {
    float m = w_abs_f32(a), t = (m + 0x1p23f) - 0x1p23f;
    return m < 0x1p23f ? w_signed_f32(t, a) : a;
}
W_FN float w_floor_f32(float a) {
    float t = w_round_f32(a);
    return w_abs_f32(a) < 0x1p23f ? w_signed_f32(t - (t > a ? 1.0f : 0.0f), a) : a;
}
W_FN float w_ceil_f32(float a) {
    float t = w_round_f32(a);
    return w_abs_f32(a) < 0x1p23f ? w_signed_f32(t + (t < a ? 1.0f : 0.0f), a) : a;
}
W_FN float w_trunc_f32(float a) {
    float m = w_abs_f32(a), t = w_round_f32(m);
    return m < 0x1p23f ? w_signed_f32(t - (t > m ? 1.0f : 0.0f), a) : a;
}
W_FN double w_round_f64(double a) { return nearbyint(a); }
W_FN double w_floor_f64(double a) { return floor(a); }
W_FN double w_ceil_f64(double a) { return ceil(a); }
W_FN double w_trunc_f64(double a) { return trunc(a); }

/* ---- roots and quotients ---- */

W_FN float w_sqrt_f32(float a) { return __builtin_sqrtf(a); }
W_FN double w_sqrt_f64(double a) { return __builtin_sqrt(a); }
W_FN float w_rsqrt_f32(float a) { return 1.0f / __builtin_sqrtf(a); }
W_FN double w_rsqrt_f64(double a) { return 1.0 / __builtin_sqrt(a); }
W_FN float w_recip_f32(float a) { return 1.0f / a; }
W_FN double w_recip_f64(double a) { return 1.0 / a; }

/* ---- exponentials: x = n ln 2 + r, |r| <= ln 2 / 2 (Cody and Waite) ---- */

#define W_ROUND_MAGIC 0x1.8p23f
#define W_LOG2E       0x1.715476p+0f
#define W_LN2_HI      0x1.62ep-1f /* 13 bits: times a whole number below 2^11 it is exact */
#define W_LN2_LO      0x1.0bfbe8p-15f
/* (exp(r) - 1 - r) / r^2, the highest power first. */
#define W_EXP_TERMS                                                                                          \
    { 0x1.6a1a70p-10f, 0x1.123fc6p-7f, 0x1.555916p-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f }

/* y 2^n for -300 < n < 254, in two steps so that results reach the subnormals and infinity. */
W_FN float w_scale_f32(float y, int32_t n) {
    int32_t both = n + 254, half = both >> 1, rest = both - half; /* exponents, with their bias */
    return y * w_float((int32_t)((uint32_t)half << 23)) * w_float((int32_t)((uint32_t)rest << 23));
}

/* exp(x) = y 2^n, 0.7 < y < 1.5; n are the low bits of *z. */
W_FN float w_exp_core(float x, int32_t *z_bits) {
    float z = w_fma_f32(x, W_LOG2E, W_ROUND_MAGIC), n = z - W_ROUND_MAGIC;
    float r = w_fma_f32(n, -W_LN2_LO, w_fma_f32(n, -W_LN2_HI, x));
    const float c[] = W_EXP_TERMS;
    float p = w_fma_f32(c[0], r, c[1]);
    p = w_fma_f32(p, r, c[2]);
    p = w_fma_f32(p, r, c[3]);
    p = w_fma_f32(p, r, c[4]);
    *z_bits = w_bits(z);
    return 1.0f + w_fma_f32(r * r, p, r);
}

/* |x| is cut, not x from both sides: compilers make more of two choices in a row. */
W_FN float w_exp_f32(float x) {
    float m = w_abs_f32(x);
    int32_t z;
    float y = w_exp_core(w_signed_f32(m > 105.0f ? 105.0f : m, x), &z);
    return w_scale_f32(y, (int32_t)((uint32_t)z - (uint32_t)w_bits(W_ROUND_MAGIC)));
}

/* The same for -87 <= x <= 88, where no result leaves the normal numbers: n is added to the exponent. */
W_FN float w_exp_normal(float x) {
    int32_t z;
    float y = w_exp_core(x, &z);
    return w_float((int32_t)((uint32_t)w_bits(y) + ((uint32_t)z << 23)));
}

/* 2^(n + r) for whole n and |r| <= 1/2. */
W_FN float w_exp2_core(float r, int32_t n) {
    float p = 0x1.41f77cp-13f;
    p = w_fma_f32(p, r, 0x1.5f46dep-10f);
    p = w_fma_f32(p, r, 0x1.3b2d66p-7f);
    p = w_fma_f32(p, r, 0x1.c6aed8p-5f);
    p = w_fma_f32(p, r, 0x1.ebfbdcp-3f);
    p = w_fma_f32(p, r, 0x1.62e430p-1f);
    return w_scale_f32(w_fma_f32(p, r, 1.0f), n);
}

W_FN float w_exp2_f32(float x) {
    float t = x > 129.0f ? 129.0f : x;
    t = t < -151.0f ? -151.0f : t;
    float z = t + W_ROUND_MAGIC, n = z - W_ROUND_MAGIC;
    return w_exp2_core(t - n, (int32_t)((uint32_t)w_bits(z) - (uint32_t)w_bits(W_ROUND_MAGIC)));
}

/* exp(x) - 1 for -20 <= x <= 89: 2 (s e + (s - 1/2)) with s = 2^(n-1) and e = exp(r) - 1. */
W_FN float w_expm1_core(float x) {
    float z = x * W_LOG2E + W_ROUND_MAGIC, n = z - W_ROUND_MAGIC;
    float r = w_fma_f32(n, -W_LN2_LO, w_fma_f32(n, -W_LN2_HI, x));
    float p = 0x1.a1a902p-13f;
    p = w_fma_f32(p, r, 0x1.6d7b3ap-10f);
    p = w_fma_f32(p, r, 0x1.11108ap-7f);
    p = w_fma_f32(p, r, 0x1.5554a8p-5f);
    p = w_fma_f32(p, r, 0x1.555556p-3f);
    p = w_fma_f32(p, r, 0.5f);
    float e = w_fma_f32(r * r, p, r);
    uint32_t whole = (uint32_t)w_bits(z) - (uint32_t)w_bits(W_ROUND_MAGIC);
    float s = w_float((int32_t)((whole + 126u) << 23));
    float y = 2.0f * w_fma_f32(s, e, s - 0.5f);
    return w_abs_f32(x) < 0x1p-25f ? x : y; /* keeps subnormals and -0 */
}

W_FN float w_expm1_f32(float x) {
    float t = x > 89.0f ? 89.0f : x;
    return w_expm1_core(t < -20.0f ? -20.0f : t);
}

/* (exp(2x) - 1) / (exp(2x) + 1); 1 to the last bit beyond 10. */
W_FN float w_tanh_f32(float x) {
    float m = w_abs_f32(x), t = m > 10.0f ? 10.0f : m;
    float e = w_expm1_core(t + t);
    return w_signed_f32(e / (e + 2.0f), x);
}

/* exp(-|x|) never overflows. */
W_FN float w_sigmoid_f32(float x) {
    float e = w_exp_f32(-w_abs_f32(x));
    return (x >= 0 ? 1.0f : e) / (1.0f + e);
}

W_FN double w_exp_f64(double x) { return exp(x); }
W_FN double w_exp2_f64(double x) { return exp2(x); }
W_FN double w_expm1_f64(double x) { return expm1(x); }
W_FN double w_tanh_f64(double x) { return tanh(x); }
W_FN double w_sigmoid_f64(double x) {
    double e = exp(-fabs(x));
    return (x >= 0 ? 1.0 : e) / (1.0 + e);
}

/* ---- logarithms: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ---- */

#define W_SQRT_HALF 0x3f3504f3 /* bits of sqrt(1/2) */

/* log(1 + f) - f = -f^2/2 + f^3 P(f). */
W_FN float w_log_tail(float f) {
    float p = 0x1.145da6p-4f, q = f * f;
    p = w_fma_f32(p, f, -0x1.de60a2p-4f);
    p = w_fma_f32(p, f, 0x1.e700c8p-4f);
    p = w_fma_f32(p, f, -0x1.fc1dccp-4f);
    p = w_fma_f32(p, f, 0x1.233634p-3f);
    p = w_fma_f32(p, f, -0x1.555c5cp-3f);
    p = w_fma_f32(p, f, 0x1.99a4c2p-3f);
    p = w_fma_f32(p, f, -0x1.000006p-2f);
    p = w_fma_f32(p, f, 0x1.555548p-2f);
    return w_fma_f32(q, -0.5f, q * f * p);
}

/* The values at 0, below 0, infinity and NaN. */
W_FN float w_log_special(float x, float y) {
    y = x <= 0x1.fffffep127f ? y : x;
    y = x < 0 ? NAN : y;
    return x == 0 ? -HUGE_VALF : y;
}

W_FN float w_log_f32(float x) {
    int small = x < 0x1p-126f;
    float s = small ? x * 0x1p23f : x;
    int32_t i = (int32_t)((uint32_t)w_bits(s) - W_SQRT_HALF);
    float k = (float)((i >> 23) - (small ? 23 : 0)), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    float y = f + w_fma_f32(k, W_LN2_LO, w_log_tail(f));
    return w_log_special(x, w_fma_f32(k, W_LN2_HI, y));
}

W_FN float w_log2_f32(float x) {
    int small = x < 0x1p-126f;
    float s = small ? x * 0x1p23f : x;
    int32_t i = (int32_t)((uint32_t)w_bits(s) - W_SQRT_HALF);
    float k = (float)((i >> 23) - (small ? 23 : 0)), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    return w_log_special(x, w_fma_f32(f + w_log_tail(f), W_LOG2E, k));
}

/* u = 1 + x rounded; the rounding error c comes back as c / u (Muller, section 11). */
W_FN float w_log1p_f32(float x) {
    float u = 1.0f + x, c = x - (u - 1.0f);
    int32_t i = (int32_t)((uint32_t)w_bits(u) - W_SQRT_HALF);
    float k = (float)(i >> 23), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    float y = f + (c / u + w_fma_f32(k, W_LN2_LO, w_log_tail(f)));
    y = w_fma_f32(k, W_LN2_HI, y);
    y = x <= 0x1.fffffep127f ? y : x;
    y = x < -1.0f ? NAN : y;
    y = x == -1.0f ? -HUGE_VALF : y;
    return x == 0 ? x : y;
}

W_FN double w_log_f64(double x) { return log(x); }
W_FN double w_log2_f64(double x) { return log2(x); }
W_FN double w_log1p_f64(double x) { return log1p(x); }

/* ---- error function: x P(x^2) up to 1, then 1 - exp(Q(|x|)) with Q near log(erfc) ---- */

W_FN float w_erf_f32(float x) {
    float m = w_abs_f32(x), z = x * x;
    float p = 0x1.496a28p-14f;
    p = w_fma_f32(p, z, -0x1.a3f6fap-11f);
    p = w_fma_f32(p, z, 0x1.5405b0p-8f);
    p = w_fma_f32(p, z, -0x1.b7f90cp-6f);
    p = w_fma_f32(p, z, 0x1.ce2cf8p-4f);
    p = w_fma_f32(p, z, -0x1.81273ep-2f);
    p = w_fma_f32(p, z, 0x1.20dd74p+0f);
    float t = m > 4.0f ? 4.0f : m;
    float q = 0x1.8bfc7ep-13f;
    q = w_fma_f32(q, t, -0x1.8599bep-9f);
    q = w_fma_f32(q, t, 0x1.677868p-6f);
    q = w_fma_f32(q, t, -0x1.a73a5ap-4f);
    q = w_fma_f32(q, t, -0x1.4698a4p-1f);
    q = w_fma_f32(q, t, -0x1.20938ap+0f);
    q = w_fma_f32(q, t, -0x1.3b0f44p-12f);
    float far = 1.0f - w_exp_f32(q);
    return w_signed_f32(m < 1.0f ? m * p : far, x);
}
W_FN double w_erf_f64(double x) { return erf(x); }

/* ---- GELU: x Phi(x) and its derivative Phi(x) + x phi(x); Phi(-m) = exp(-m^2 / 2) P(m) for m >= 0 ---- */

#define W_SQRT_HALF_F64   0.70710678118654752440
#define W_PHI_0           0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define W_TWICE_SQRT_2_PI 1.59576912160573071176
#define W_GELU_CUBE       0.044715

/* P(m), to a few units of the last place of Phi, up to 6; beyond, where Phi is below 2^-29, P(6). */
W_FN float w_normal_tail(float m) {
    float t = m > 6.0f ? 6.0f : m;
    float p = -0x1.93ab0cp-23f;
    p = w_fma_f32(p, t, 0x1.5e7066p-18f);
    p = w_fma_f32(p, t, -0x1.0dc48ep-14f);
    p = w_fma_f32(p, t, 0x1.eda4c4p-12f);
    p = w_fma_f32(p, t, -0x1.31f49cp-9f);
    p = w_fma_f32(p, t, 0x1.188c40p-7f);
    p = w_fma_f32(p, t, -0x1.997966p-6f);
    p = w_fma_f32(p, t, 0x1.f8afc6p-5f);
    p = w_fma_f32(p, t, -0x1.0fbdf4p-3f);
    p = w_fma_f32(p, t, 0x1.ffe5ccp-3f);
    p = w_fma_f32(p, t, -0x1.988376p-2f);
    return w_fma_f32(p, t, 0x1.fffffep-2f);
}

/* max(x, 0) - |x| Phi(-|x|). */
W_FN float w_gelu_f32(float x) {
    float m = w_abs_f32(x), t = m > 13.0f ? 13.0f : m;
    float e = w_exp_normal(t * t * -0.5f);
    return w_fma_f32(-t, e * w_normal_tail(t), w_max_f32(x, 0.0f));
}
W_FN float w_gelu_slope_f32(float x) {
    float m = w_abs_f32(x), t = m > 13.0f ? 13.0f : m;
    float e = w_exp_normal(t * t * -0.5f);
    float y = e * w_fma_f32(-(float)W_PHI_0, t, w_normal_tail(t));
    return x > 0 ? 1.0f - y : y;
}
W_FN double w_gelu_f64(double x) { return x * (0.5 * erfc(-x * W_SQRT_HALF_F64)); }
W_FN double w_gelu_slope_f64(double x) {
    return 0.5 * erfc(-x * W_SQRT_HALF_F64) + x * (exp(-0.5 * x * x) * W_PHI_0);
}

/* By tanh: 0.5 (1 + tanh(z / 2)) is the sigmoid of z. The derivative is constant where |x| is large. */
W_FN float w_gelu_tanh_f32(float x) {
    float t = x < -10.0f ? -10.0f : x; /* from there on -1e-37 */
    float z = t * w_fma_f32(t * t, (float)(-W_TWICE_SQRT_2_PI * W_GELU_CUBE), (float)-W_TWICE_SQRT_2_PI);
    return t / (1.0f + w_exp_normal(z < -87.0f ? -87.0f : z));
}
W_FN float w_gelu_tanh_slope_f32(float x) {
    float m = w_abs_f32(x), t = w_signed_f32(m > 10.0f ? 10.0f : m, x), q = t * t;
    float z = t * w_fma_f32(q, (float)(-W_TWICE_SQRT_2_PI * W_GELU_CUBE), (float)-W_TWICE_SQRT_2_PI);
    float step = t * w_fma_f32(q, (float)(3 * W_TWICE_SQRT_2_PI * W_GELU_CUBE), (float)W_TWICE_SQRT_2_PI);
    float e = w_exp_normal(z), s = 1.0f / (1.0f + e);
    return w_fma_f32(step * (e * s), s, s);
}
W_FN double w_gelu_tanh_f64(double x) {
    return 0.5 * x * (1.0 + tanh(0.5 * W_TWICE_SQRT_2_PI * (x + W_GELU_CUBE * x * x * x)));
}
W_FN double w_gelu_tanh_slope_f64(double x) {
    double t = x > 20 ? 20 : x < -20 ? -20 : x;
    double e = exp(-W_TWICE_SQRT_2_PI * (t + W_GELU_CUBE * t * t * t)), s = 1.0 / (1.0 + e);
    return s + s * (e * s) * t * (W_TWICE_SQRT_2_PI * (1.0 + 3 * W_GELU_CUBE * t * t));
}

/* ---- sine and cosine: x = n pi/2 + r, pi/2 in parts of 11 bits, so that n times a part is exact ---- */

#define W_ANGLE_MAX 8192.0f /* beyond, w_angle_huge */

/* sin(r + n pi/2), |r| <= pi/4. */
W_FN float w_sin_core(float r, int32_t n) {
    float z = r * r;
    float s = w_fma_f32(w_fma_f32(-0x1.992c06p-13f, z, 0x1.1106fcp-7f), z, -0x1.555544p-3f);
    s = w_fma_f32(r * z, s, r);
    float c = w_fma_f32(w_fma_f32(0x1.99cb82p-16f, z, -0x1.6c0bc4p-10f), z, 0x1.55554ap-5f);
    c = w_fma_f32(z * z, c, w_fma_f32(z, -0.5f, 1.0f));
    float y = n & 1 ? c : s;
    return w_float(w_bits(y) ^ (int32_t)((uint32_t)(n & 2) << 30));
}

W_FN float w_angle(float x, int32_t *n) {
    float z = x * 0x1.45f306p-1f + W_ROUND_MAGIC, k = z - W_ROUND_MAGIC, r = x;
    r = w_fma_f32(k, -0x1.92p+0f, r);
    r = w_fma_f32(k, -0x1.fb4p-12f, r);
    r = w_fma_f32(k, -0x1.444p-24f, r);
    r = w_fma_f32(k, -0x1.68cp-39f, r);
    r = w_fma_f32(k, -0x1.1a6264p-54f, r);
    *n = (int32_t)((uint32_t)w_bits(z) - (uint32_t)w_bits(W_ROUND_MAGIC));
    return r;
}

W_FN float w_sin_f32(float x) {
    int32_t n;
    float r = w_angle(w_abs_f32(x), &n), y = w_sin_core(r, n);
    return w_float(w_bits(y) ^ (w_bits(x) & (int32_t)0x80000000));
}
W_FN float w_cos_f32(float x) {
    int32_t n;
    float r = w_angle(w_abs_f32(x), &n);
    return w_sin_core(r, n + 1);
}
W_FN double w_sin_f64(double x) { return sin(x); }
W_FN double w_cos_f64(double x) { return cos(x); }

/* Any |x| below 2^128, for the few lanes beyond W_ANGLE_MAX: the bits of 2/pi that matter times the 24 bits
 * of x, modulo 4 (Payne and Hanek). Returns r in [-pi/4, pi/4] and n mod 4. */
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

/* ---- powers: 2^(y log2 x), the logarithm as a sum of two floats (Dekker's products) ---- */

W_FN float w_cut(float x) { return w_float(w_bits(x) & (int32_t)0xfffff000); } /* 12 bits: products exact */

/* log2 of a positive number: the result plus *low, to about 2^-30 relative. */
W_FN float w_log2_pair(float x, float *low) {
    int small = x < 0x1p-126f;
    float v = small ? x * 0x1p23f : x;
    int32_t i = (int32_t)((uint32_t)w_bits(v) - W_SQRT_HALF);
    float k = (float)((i >> 23) - (small ? 23 : 0)), m = w_float((i & 0x7fffff) + W_SQRT_HALF), f = m - 1.0f;
    float d = m + 1.0f, s = f / d;
    float sh = w_cut(s), dh = w_cut(d), dl = m - (dh - 1.0f);
    float sl = ((f - sh * dh) - sh * dl) / d; /* s = sh + sl */
    float z = s * s;
    float p = w_fma_f32(w_fma_f32(0x1.322b06p-2f, z, 0x1.995c3ep-2f), z, 0x1.55557cp-1f);
    float lh = 2.0f * sh, ll = w_fma_f32(s * z, p, 2.0f * sl); /* log m = lh + ll */
    float hi = lh * 0x1.714p+0f, lo = w_fma_f32(lh, 0x1.47652cp-12f, ll * W_LOG2E);
    float sum = k + hi;
    *low = lo + (hi - (sum - k));
    return sum;
}

/* x where the bits of mask are ones, else y: a choice that compilers do not turn into a branch, which would
 * keep a long function from being vectorised. */
W_FN float w_mask(int32_t mask, float x, float y) {
    return w_float((w_bits(x) & mask) | (w_bits(y) & ~mask));
}

W_FN float w_pow_f32(float x, float y) {
    float ax = w_abs_f32(x), ay = w_abs_f32(y);
    float yc =
        w_mask(-(ay > 0x1p40f), w_signed_f32(0x1p40f, y), y); /* far beyond all results but that of 1 */
    float l, h = w_log2_pair(ax, &l);
    float hh = w_cut(h), hl = (h - hh) + l, yh = w_cut(yc), yl = yc - yh;
    float p = yh * hh, q = yl * hh + yc * hl, z = p + q;
    int32_t over = -(z > 129.0f), under = -(z < -151.0f);
    float zc = w_mask(under, -151.0f, w_mask(over, 129.0f, z));
    float magic = zc + W_ROUND_MAGIC, n = magic - W_ROUND_MAGIC;
    float r = w_mask(over | under, 0.0f, (p - n) + q);
    float v = w_exp2_core(r, (int32_t)((uint32_t)w_bits(magic) - (uint32_t)w_bits(W_ROUND_MAGIC)));
    int32_t zero = -(ax == 0), huge = -(ax == HUGE_VALF), negative_y = -(y < 0);
    v = w_mask(zero | huge, w_mask(zero ^ negative_y, 0.0f, HUGE_VALF), v);
    float whole = w_mask(-(ay < 0x1p24f), ay, 0.0f); /* from 2^24 on all are even */
    int32_t count = (int32_t)whole, exact = -((float)count == whole);
    v = w_float(w_bits(v) ^ (-(count & 1) & exact & w_bits(x) & (int32_t)0x80000000)); /* odd powers */
    v = w_mask(~exact & -(x < 0) & ~huge, NAN, v);
    v = w_mask(-(x != x) | -(y != y), NAN, v);
    return w_mask(-(x == 1.0f) | -(y == 0), 1.0f, v);
}
W_FN double w_pow_f64(double x, double y) { return pow(x, y); }

/* ---- division and remainder ---- */

W_FN float w_div_f32(float a, float b) { return a / b; }
W_FN double w_div_f64(double a, double b) { return a / b; }

/* The sign of the divisor, exact. */
W_FN double w_mod_f64(double a, double b) {
    double r = fmod(a, b);
    return r == 0 ? copysign(0.0, b) : ((r < 0) != (b < 0) ? r + b : r);
}
W_FN float w_mod_f32(float a, float b) {
    float r = fmodf(a, b);
    return r == 0 ? w_signed_f32(0.0f, b) : ((r < 0) != (b < 0) ? r + b : r);
}

/* x / 0 = 0 (whoever calls raises the fault), the least number / -1 wraps. */
#define W_INTEGERS(T, U, id, mask)                                                                           \
    W_FN T w_div_##id(T a, T b) {                                                                            \
        T safe = ((b == 0) | (b == -1)) ? 1 : b;                                                             \
        T q = a / safe;                                                                                      \
        return b == 0 ? 0 : (b == -1 ? (T)((U)0 - (U)a) : q);                                                \
    }                                                                                                        \
    W_FN T w_mod_##id(T a, T b) {                                                                            \
        T safe = ((b == 0) | (b == -1)) ? 1 : b;                                                             \
        T r = a % safe;                                                                                      \
        return ((r != 0) & ((r < 0) != (b < 0))) ? r + b : r;                                                \
    }                                                                                                        \
    W_FN T w_not_##id(T a) { return ~a; }                                                                    \
    W_FN T w_shl_##id(T a, T b) { return (T)((U)a << (b & mask)); }                                          \
    W_FN T w_shr_##id(T a, T b) { return a >> (b & mask); }
W_INTEGERS(int32_t, uint32_t, i32, 31)
W_INTEGERS(int64_t, uint64_t, i64, 63)
#undef W_INTEGERS

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
#define W_INTS_(f, a)   _Generic((a), int32_t : f##_i32, int64_t : f##_i64)
#define W_NUMBERS_(f, a)                                                                                     \
    _Generic((a), float : f##_f32, double : f##_f64, int32_t : f##_i32, int64_t : f##_i64)
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
