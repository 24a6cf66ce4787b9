/* The functions of f32 in the op table, in a subset that C, OpenCL C and CUDA C++ share. They use 32-bit
 * numbers, no branches, and no library calls except square root and remainder. So compilers can vectorise
 * them.
 *
 * The file before this one, prelude.h on processors and device/gpu/prelude/lanes.cl in kernel sources,
 * defines:
 *
 * - W_F32, W_I32, W_U32: float, int and unsigned int
 * - W_FN: stands before a function
 * - W_MASK(c), w_bool(c): a comparison as all ones or 0, and as 1 or 0
 * - w_bits(x), w_float(i), w_uns(i), w_sig(u): bits as another type
 * - w_to_f32(i), w_to_i32(x): conversions
 * - w_root(x), w_remainder(x, y), w_fma_f32(a, b, c)
 * - w_exact(x): x. Compilers must not simplify an expression that contains it, such as (x + 1) - 1, by rules
 * for real numbers. Only compilers of shaders would.
 *
 * tests/unit/device/cpu/test_cpu_math.c holds the bounds in ULP. Coefficients were fitted for the intervals
 * given here by the exchange algorithm of Remez (relative error, 40 digits) and rounded to f32.
 *
 * Sources: Cody and Waite, "Software Manual for the Elementary Functions" (1980), for argument reduction;
 * Muller, "Elementary Functions", 3rd ed. (2016), chapters 3, 4 and 11; Dekker (1971) for split products.
 *
 * There is no include guard, since only prelude.h includes it. */

#define W_SIGN (-0x7fffffff - 1)

W_FN W_F32 w_abs_f32(W_F32 a) { return w_float(w_bits(a) & 0x7fffffff); }
/* |x| with the sign of s. */
W_FN W_F32 w_signed_f32(W_F32 x, W_F32 s) { return w_float((w_bits(x) & 0x7fffffff) | (w_bits(s) & W_SIGN)); }
W_FN W_I32 w_isnan_f32(W_F32 a) { return w_bool(a != a); }
W_FN W_I32 w_isinf_f32(W_F32 a) { return w_bool(w_abs_f32(a) == HUGE_VALF); }
/* NaN wins. The first choice is one machine instruction, which gives b if either is NaN. W_NAN_MAX and
 * W_NAN_MIN, if they are defined, are single instructions in which NaN wins. */
#ifdef W_NAN_MAX
W_FN W_F32 w_max_f32(W_F32 a, W_F32 b) { return W_NAN_MAX(a, b); }
W_FN W_F32 w_min_f32(W_F32 a, W_F32 b) { return W_NAN_MIN(a, b); }
#else
W_FN W_F32 w_max_f32(W_F32 a, W_F32 b) {
    W_F32 m = a > b ? a : b;
    return a != a ? a : m;
}
W_FN W_F32 w_min_f32(W_F32 a, W_F32 b) {
    W_F32 m = a < b ? a : b;
    return a != a ? a : m;
}
#endif
/* Returns x, limited to -most..most. NaN stays NaN. Where two choices in a row are slow, |x| is limited. */
W_FN W_F32 w_limit_f32(W_F32 x, float most) {
#ifdef W_NAN_MAX
    return W_NAN_MIN(W_NAN_MAX(x, -most), most);
#else
    W_F32 m = w_abs_f32(x);
    return w_signed_f32(m > most ? most : m, x);
#endif
}
W_FN W_F32 w_sign_f32(W_F32 a) { return a > 0 ? 1.0f : (a < 0 ? -1.0f : a); }

/* ---- rounding: adding 2^23 rounds to a whole number, half to even ---- */

W_FN W_F32 w_round_f32(W_F32 a) {
    W_F32 m = w_abs_f32(a), t = w_exact(m + 0x1p23f) - 0x1p23f;
    return m < 0x1p23f ? w_signed_f32(t, a) : a;
}
W_FN W_F32 w_floor_f32(W_F32 a) {
    W_F32 t = w_round_f32(a);
    return w_abs_f32(a) < 0x1p23f ? w_signed_f32(t - (t > a ? 1.0f : 0.0f), a) : a;
}
W_FN W_F32 w_ceil_f32(W_F32 a) {
    W_F32 t = w_round_f32(a);
    return w_abs_f32(a) < 0x1p23f ? w_signed_f32(t + (t < a ? 1.0f : 0.0f), a) : a;
}
W_FN W_F32 w_trunc_f32(W_F32 a) {
    W_F32 m = w_abs_f32(a), t = w_round_f32(m);
    return m < 0x1p23f ? w_signed_f32(t - (t > m ? 1.0f : 0.0f), a) : a;
}

/* ---- roots and quotients ---- */

W_FN W_F32 w_sqrt_f32(W_F32 a) { return w_root(a); }
W_FN W_F32 w_rsqrt_f32(W_F32 a) { return 1.0f / w_root(a); }
W_FN W_F32 w_recip_f32(W_F32 a) { return 1.0f / a; }
/* The same for 1 <= a < 2^126: without cases for subnormal numbers, and within 1 ULP. */
#ifdef W_RECIP_NEAR
W_FN W_F32 w_recip_normal(W_F32 a) { return W_RECIP_NEAR(a); }
#define W_OVER(a, b) ((a)*w_recip_normal(b))
#else
W_FN W_F32 w_recip_normal(W_F32 a) { return 1.0f / a; }
#define W_OVER(a, b) ((a) / (b))
#endif

/* ---- exponentials: x = n ln 2 + r, |r| <= ln 2 / 2 (Cody and Waite) ---- */

#define W_ROUND_MAGIC 0x1.8p23f
#define W_LOG2E       0x1.715476p+0f
#define W_LN2_HI      0x1.62ep-1f /* 13 bits: times a whole number below 2^11 it is exact */
#define W_LN2_LO      0x1.0bfbe8p-15f
/* (exp(r) - 1 - r) / r^2, the highest power first. */
#define W_EXP_TERMS                                                                                          \
    { 0x1.6a1a70p-10f, 0x1.123fc6p-7f, 0x1.555916p-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f }

/* Returns y 2^n for -300 < n < 254, in two steps, so that results can be subnormal or infinite. */
W_FN W_F32 w_scale_f32(W_F32 y, W_I32 n) {
    W_I32 both = n + 254, first = both >> 1, rest = both - first; /* exponents, with their bias */
    return y * w_float(w_sig(w_uns(first) << 23)) * w_float(w_sig(w_uns(rest) << 23));
}
/* The same for an n that is in the low bits of z. Wherever its other bits are shifted out, this takes one
 * instruction less. */
W_FN W_F32 w_scale_bits(W_F32 y, W_I32 z) {
#ifdef W_NAN_MAX
    W_I32 half = z >> 1;
    return y * w_float((half << 23) + 0x3f800000) * w_float(((z - half) << 23) + 0x3f800000);
#else
    return w_scale_f32(y, w_sig(w_uns(z) - w_uns(w_bits(W_ROUND_MAGIC))));
#endif
}
#ifdef W_EXP2_NEAR
/* exp(x) = 2^t (1 + l ln 2), where t + l is x log2 e, and t is rounded. W_EXP2_NEAR is the device's own 2^t,
 * within 2 ULP. This takes half of the instructions of the polynomial. */
#define W_LOG2E_LO 0x1.4ae0cp-26f
#define W_LN2      0x1.62e43p-1f
/* Returns t, and the factor of 2^t. */
W_FN W_F32 w_exp_parts(W_F32 x, W_F32 *factor) {
    W_F32 t = x * W_LOG2E;
    *factor = w_fma_f32(w_fma_f32(x, W_LOG2E_LO, w_fma_f32(x, W_LOG2E, -t)), W_LN2, 1.0f);
    return t;
}
W_FN W_F32 w_exp_f32(W_F32 x) {
    W_F32 factor, t = w_exp_parts(w_limit_f32(x, 105.0f), &factor);
    return W_EXP2_NEAR(t) * factor;
}
/* The same for -87 <= x <= 88. Results are normal numbers. */
W_FN W_F32 w_exp_normal(W_F32 x) {
    W_F32 factor, t = w_exp_parts(x, &factor);
    return W_EXP2_NORMAL(t) * factor;
}
#else
/* Returns y with exp(x) = y 2^n, 0.7 < y < 1.5. n is in the low bits of *z_bits. */
W_FN W_F32 w_exp_core(W_F32 x, W_I32 *z_bits) {
    W_F32 z = w_exact(w_fma_f32(x, W_LOG2E, W_ROUND_MAGIC)), n = z - W_ROUND_MAGIC;
    W_F32 r = w_fma_f32(n, -W_LN2_LO, w_fma_f32(n, -W_LN2_HI, x));
    const float c[] = W_EXP_TERMS;
    W_F32 p = w_fma_f32(c[0], r, c[1]);
    p = w_fma_f32(p, r, c[2]);
    p = w_fma_f32(p, r, c[3]);
    p = w_fma_f32(p, r, c[4]);
    *z_bits = w_bits(z);
    return 1.0f + w_fma_f32(r * r, p, r);
}
W_FN W_F32 w_exp_f32(W_F32 x) {
    W_I32 z;
    W_F32 y = w_exp_core(w_limit_f32(x, 105.0f), &z);
    return w_scale_bits(y, z);
}
/* The same for -87 <= x <= 88. Results are normal numbers, so n is added to the exponent. */
W_FN W_F32 w_exp_normal(W_F32 x) {
    W_I32 z;
    W_F32 y = w_exp_core(x, &z);
    return w_float(w_sig(w_uns(w_bits(y)) + (w_uns(z) << 23)));
}
#endif
/* exp(x) for an x that was computed from numbers of 16 bits. Their rounding errors, 2^-12 |x| or more, change
 * the result more than 1,000 times as much as the error of this function, 2^-22 + 2^-23 |x|. Where the device
 * has an exponential of its own, subnormal results are 0. */
W_FN W_F32 w_exp_near_f32(W_F32 x) {
#ifdef W_EXP2_NORMAL
    return W_EXP2_NORMAL(x * W_LOG2E);
#else
    return w_exp_f32(x);
#endif
}
/* 2^(n + r) for whole n and |r| <= 1/2. */
W_FN W_F32 w_exp2_core(W_F32 r, W_I32 n) {
    W_F32 p = 0x1.41f77cp-13f;
    p = w_fma_f32(p, r, 0x1.5f46dep-10f);
    p = w_fma_f32(p, r, 0x1.3b2d66p-7f);
    p = w_fma_f32(p, r, 0x1.c6aed8p-5f);
    p = w_fma_f32(p, r, 0x1.ebfbdcp-3f);
    p = w_fma_f32(p, r, 0x1.62e430p-1f);
    return w_scale_f32(w_fma_f32(p, r, 1.0f), n);
}
W_FN W_F32 w_exp2_f32(W_F32 x) {
    W_F32 t = x > 129.0f ? 129.0f : x;
    t = t < -151.0f ? -151.0f : t;
    W_F32 z = w_exact(t + W_ROUND_MAGIC), n = z - W_ROUND_MAGIC;
    return w_exp2_core(t - n, w_sig(w_uns(w_bits(z)) - w_uns(w_bits(W_ROUND_MAGIC))));
}
/* exp(x) - 1 for -20 <= x <= 89: 2 (s e + (s - 1/2)) with s = 2^(n-1) and e = exp(r) - 1. */
W_FN W_F32 w_expm1_core(W_F32 x) {
    W_F32 z = w_exact(x * W_LOG2E + W_ROUND_MAGIC), n = z - W_ROUND_MAGIC;
    W_F32 r = w_fma_f32(n, -W_LN2_LO, w_fma_f32(n, -W_LN2_HI, x));
    W_F32 p = 0x1.a1a902p-13f;
    p = w_fma_f32(p, r, 0x1.6d7b3ap-10f);
    p = w_fma_f32(p, r, 0x1.11108ap-7f);
    p = w_fma_f32(p, r, 0x1.5554a8p-5f);
    p = w_fma_f32(p, r, 0x1.555556p-3f);
    p = w_fma_f32(p, r, 0.5f);
    W_F32 e = w_fma_f32(r * r, p, r);
    W_U32 whole = w_uns(w_bits(z)) - w_uns(w_bits(W_ROUND_MAGIC));
    W_F32 s = w_float(w_sig((whole + 126u) << 23));
    W_F32 y = 2.0f * w_fma_f32(s, e, s - 0.5f);
    return w_abs_f32(x) < 0x1p-25f ? x : y; /* keeps subnormals and -0 */
}
W_FN W_F32 w_expm1_f32(W_F32 x) {
    W_F32 t = x > 89.0f ? 89.0f : x;
    return w_expm1_core(t < -20.0f ? -20.0f : t);
}
/* (exp(2x) - 1) / (exp(2x) + 1). Beyond 10 the result is 1. */
W_FN W_F32 w_tanh_f32(W_F32 x) {
    W_F32 m = w_abs_f32(x), t = m > 10.0f ? 10.0f : m;
    W_F32 e = w_expm1_core(t + t);
    return w_signed_f32(e / (e + 2.0f), x);
}
/* Returns the sigmoid of x. e = exp(-|x|) never overflows. */
W_FN W_F32 w_sigmoid_of(W_F32 x, W_F32 e) { return W_OVER(x >= 0 ? 1.0f : e, 1.0f + e); }
W_FN W_F32 w_sigmoid_f32(W_F32 x) { return w_sigmoid_of(x, w_exp_f32(-w_abs_f32(x))); }
W_FN W_F32 w_sigmoid_near_f32(W_F32 x) { return w_sigmoid_of(x, w_exp_near_f32(-w_abs_f32(x))); }

/* ---- logarithms: x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) ---- */

#define W_SQRT_HALF 0x3f3504f3 /* bits of sqrt(1/2) */

/* log(1 + f) - f = -f^2/2 + f^3 P(f). */
W_FN W_F32 w_log_tail(W_F32 f) {
    W_F32 p = 0x1.145da6p-4f, q = f * f;
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
/* Replaces y for x = 0, x < 0, infinity and NaN. */
W_FN W_F32 w_log_special(W_F32 x, W_F32 y) {
    y = x <= 0x1.fffffep127f ? y : x;
    y = x < 0 ? NAN : y;
    return x == 0 ? -HUGE_VALF : y;
}
W_FN W_F32 w_log_f32(W_F32 x) {
    W_I32 small = x < 0x1p-126f;
    W_F32 s = small ? x * 0x1p23f : x;
    W_I32 i = w_sig(w_uns(w_bits(s)) - W_SQRT_HALF);
    W_F32 k = w_to_f32((i >> 23) - (small ? 23 : 0)), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    W_F32 y = f + w_fma_f32(k, W_LN2_LO, w_log_tail(f));
    return w_log_special(x, w_fma_f32(k, W_LN2_HI, y));
}
W_FN W_F32 w_log2_f32(W_F32 x) {
    W_I32 small = x < 0x1p-126f;
    W_F32 s = small ? x * 0x1p23f : x;
    W_I32 i = w_sig(w_uns(w_bits(s)) - W_SQRT_HALF);
    W_F32 k = w_to_f32((i >> 23) - (small ? 23 : 0)), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    return w_log_special(x, w_fma_f32(f + w_log_tail(f), W_LOG2E, k));
}
/* u = 1 + x, rounded; c / u corrects the rounding error c (Muller, section 11). */
W_FN W_F32 w_log1p_f32(W_F32 x) {
    W_F32 u = w_exact(1.0f + x), c = x - w_exact(u - 1.0f);
    W_I32 i = w_sig(w_uns(w_bits(u)) - W_SQRT_HALF);
    W_F32 k = w_to_f32(i >> 23), f = w_float((i & 0x7fffff) + W_SQRT_HALF) - 1.0f;
    W_F32 y = f + (c / u + w_fma_f32(k, W_LN2_LO, w_log_tail(f)));
    y = w_fma_f32(k, W_LN2_HI, y);
    y = x <= 0x1.fffffep127f ? y : x;
    y = x < -1.0f ? NAN : y;
    y = x == -1.0f ? -HUGE_VALF : y;
    return x == 0 ? x : y;
}

/* ---- error function: x P(x^2) up to 1, then 1 - exp(Q(|x|)) with Q near log(erfc) ---- */

W_FN W_F32 w_erf_f32(W_F32 x) {
    W_F32 m = w_abs_f32(x), z = x * x;
    W_F32 p = 0x1.496a28p-14f;
    p = w_fma_f32(p, z, -0x1.a3f6fap-11f);
    p = w_fma_f32(p, z, 0x1.5405b0p-8f);
    p = w_fma_f32(p, z, -0x1.b7f90cp-6f);
    p = w_fma_f32(p, z, 0x1.ce2cf8p-4f);
    p = w_fma_f32(p, z, -0x1.81273ep-2f);
    p = w_fma_f32(p, z, 0x1.20dd74p+0f);
    W_F32 t = m > 4.0f ? 4.0f : m;
    W_F32 q = 0x1.8bfc7ep-13f;
    q = w_fma_f32(q, t, -0x1.8599bep-9f);
    q = w_fma_f32(q, t, 0x1.677868p-6f);
    q = w_fma_f32(q, t, -0x1.a73a5ap-4f);
    q = w_fma_f32(q, t, -0x1.4698a4p-1f);
    q = w_fma_f32(q, t, -0x1.20938ap+0f);
    q = w_fma_f32(q, t, -0x1.3b0f44p-12f);
    W_F32 far = 1.0f - w_exp_f32(q);
    return w_signed_f32(m < 1.0f ? m * p : far, x);
}

/* ---- GELU: x Phi(x) and its derivative Phi(x) + x phi(x); Phi(-m) = exp(-m^2 / 2) P(m) for m >= 0 ---- */

#define W_PHI_0_F32   0x1.988454p-2f /* 1 / sqrt(2 pi) */
#define W_TANH_LINE   0x1.988454p+0f /* sqrt(8 / pi), and 0.044715 and 3 * 0.044715 times that */
#define W_TANH_CUBE   0x1.2444f2p-4f
#define W_TANH_CUBE_3 0x1.b6676cp-3f

/* P(m) within a few ULP of Phi, for m up to 6. Beyond 6, where Phi is below 2^-29, it returns P(6). */
W_FN W_F32 w_normal_tail(W_F32 m) {
    W_F32 t = m > 6.0f ? 6.0f : m;
    W_F32 p = -0x1.93ab0cp-23f;
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
/* max(x, 0) - |x| Phi(-|x|). As in the formulas, -infinity gives NaN. For the derivative both infinities do.
 */
W_FN W_F32 w_gelu_f32(W_F32 x) {
    W_F32 m = w_abs_f32(x), t = m > 13.0f ? 13.0f : m;
    W_F32 e = w_exp_normal(t * t * -0.5f);
    W_F32 y = w_fma_f32(-t, e * w_normal_tail(t), w_max_f32(x, 0.0f));
    return x < -0x1.fffffep127f ? w_exact(x) - x : y;
}
W_FN W_F32 w_gelu_slope_f32(W_F32 x) {
    W_F32 m = w_abs_f32(x), t = m > 13.0f ? 13.0f : m;
    W_F32 e = w_exp_normal(t * t * -0.5f);
    W_F32 y = e * w_fma_f32(-W_PHI_0_F32, t, w_normal_tail(t)) + (w_exact(x) - x);
    return x > 0 ? 1.0f - y : y;
}
/* By tanh: 0.5 (1 + tanh(z / 2)) is the sigmoid of z. Below, t is x within limits, and e = exp(-z(t)). */
W_FN W_F32 w_gelu_tanh_minus_z(W_F32 t) { return t * w_fma_f32(t * t, -W_TANH_CUBE, -W_TANH_LINE); }
W_FN W_F32 w_gelu_tanh_of(W_F32 x, W_F32 t, W_F32 e) {
    W_F32 y = W_OVER(t, 1.0f + e);
    return x < -0x1.fffffep127f ? w_exact(x) - x : y;
}
W_FN W_F32 w_gelu_tanh_f32(W_F32 x) {
    W_F32 t = x < -10.0f ? -10.0f : x; /* from there on -1e-37 */
    W_F32 z = w_gelu_tanh_minus_z(t);
    return w_gelu_tanh_of(x, t, w_exp_normal(z < -87.0f ? -87.0f : z));
}
W_FN W_F32 w_gelu_tanh_near_f32(W_F32 x) {
    W_F32 t = x < -10.0f ? -10.0f : x;
    return w_gelu_tanh_of(x, t, w_exp_near_f32(w_gelu_tanh_minus_z(t)));
}
/* The derivative is constant where |x| is large. */
W_FN W_F32 w_gelu_tanh_limit(W_F32 x) {
    W_F32 m = w_abs_f32(x);
    return w_signed_f32(m > 10.0f ? 10.0f : m, x);
}
W_FN W_F32 w_gelu_tanh_slope_of(W_F32 x, W_F32 t, W_F32 e) {
    W_F32 step = t * w_fma_f32(t * t, W_TANH_CUBE_3, W_TANH_LINE);
    W_F32 s = w_recip_normal(1.0f + e) + (w_exact(x) - x);
    return w_fma_f32(step * (e * s), s, s);
}
W_FN W_F32 w_gelu_tanh_slope_f32(W_F32 x) {
    W_F32 t = w_gelu_tanh_limit(x);
    return w_gelu_tanh_slope_of(x, t, w_exp_normal(w_gelu_tanh_minus_z(t)));
}
W_FN W_F32 w_gelu_tanh_slope_near_f32(W_F32 x) {
    W_F32 t = w_gelu_tanh_limit(x);
    return w_gelu_tanh_slope_of(x, t, w_exp_near_f32(w_gelu_tanh_minus_z(t)));
}

/* ---- sine and cosine: x = n pi/2 + r, pi/2 in parts of 11 bits, so that n times a part is exact ---- */

#define W_ANGLE_MAX 8192.0f /* beyond, w_angle_huge */

/* sin(r + n pi/2), |r| <= pi/4. */
W_FN W_F32 w_sin_core(W_F32 r, W_I32 n) {
    W_F32 z = r * r;
    W_F32 s = w_fma_f32(w_fma_f32(-0x1.992c06p-13f, z, 0x1.1106fcp-7f), z, -0x1.555544p-3f);
    s = w_fma_f32(r * z, s, r);
    W_F32 c = w_fma_f32(w_fma_f32(0x1.99cb82p-16f, z, -0x1.6c0bc4p-10f), z, 0x1.55554ap-5f);
    c = w_fma_f32(z * z, c, w_fma_f32(z, -0.5f, 1.0f));
    W_F32 y = (n & 1) != 0 ? c : s;
    return w_float(w_bits(y) ^ w_sig(w_uns(n & 2) << 30));
}
W_FN W_F32 w_angle(W_F32 x, W_I32 *n) {
    W_F32 z = w_exact(x * 0x1.45f306p-1f + W_ROUND_MAGIC), k = z - W_ROUND_MAGIC, r = x;
    r = w_fma_f32(k, -0x1.92p+0f, r);
    r = w_fma_f32(k, -0x1.fb4p-12f, r);
    r = w_fma_f32(k, -0x1.444p-24f, r);
    r = w_fma_f32(k, -0x1.68cp-39f, r);
    r = w_fma_f32(k, -0x1.1a6264p-54f, r);
    *n = w_sig(w_uns(w_bits(z)) - w_uns(w_bits(W_ROUND_MAGIC)));
    return r;
}
W_FN W_F32 w_sin_f32(W_F32 x) {
    W_I32 n;
    W_F32 r = w_angle(w_abs_f32(x), &n), y = w_sin_core(r, n);
    return w_float(w_bits(y) ^ (w_bits(x) & W_SIGN));
}
W_FN W_F32 w_cos_f32(W_F32 x) {
    W_I32 n;
    W_F32 r = w_angle(w_abs_f32(x), &n);
    return w_sin_core(r, n + 1);
}

/* ---- powers: 2^(y log2 x), the logarithm as a sum of two floats (Dekker's products) ---- */

#define W_HIGH_BITS (-0x1000) /* 12 of a significand: products are exact */

W_FN W_F32 w_cut(W_F32 x) { return w_float(w_bits(x) & W_HIGH_BITS); }

/* log2 of a positive number: the result plus *low, to about 2^-30 relative. */
W_FN W_F32 w_log2_pair(W_F32 x, W_F32 *low) {
    W_I32 small = x < 0x1p-126f;
    W_F32 v = small ? x * 0x1p23f : x;
    W_I32 i = w_sig(w_uns(w_bits(v)) - W_SQRT_HALF);
    W_F32 k = w_to_f32((i >> 23) - (small ? 23 : 0)), m = w_float((i & 0x7fffff) + W_SQRT_HALF), f = m - 1.0f;
    W_F32 d = m + 1.0f, s = f / d;
    W_F32 sh = w_cut(s), dh = w_cut(d), dl = m - w_exact(dh - 1.0f);
    W_F32 sl = (w_exact(f - sh * dh) - sh * dl) / d; /* s = sh + sl */
    W_F32 z = s * s;
    W_F32 p = w_fma_f32(w_fma_f32(0x1.322b06p-2f, z, 0x1.995c3ep-2f), z, 0x1.55557cp-1f);
    W_F32 lh = 2.0f * sh, ll = w_fma_f32(s * z, p, 2.0f * sl); /* log m = lh + ll */
    W_F32 hi = lh * 0x1.714p+0f, lo = w_fma_f32(lh, 0x1.47652cp-12f, ll * W_LOG2E);
    W_F32 sum = w_exact(k + hi);
    *low = lo + w_exact(hi - w_exact(sum - k));
    return sum;
}

/* x where the bits of mask are ones, else y: a choice that compilers do not turn into a branch, which would
 * keep a long function from being vectorised. */
W_FN W_F32 w_mask(W_I32 mask, W_F32 x, W_F32 y) { return w_float((w_bits(x) & mask) | (w_bits(y) & ~mask)); }
W_FN W_F32 w_pow_f32(W_F32 x, W_F32 y) {
    W_F32 ax = w_abs_f32(x), ay = w_abs_f32(y);
    W_F32 yc =
        w_mask(W_MASK(ay > 0x1p40f), w_signed_f32(0x1p40f, y), y); /* far beyond all results but that of 1 */
    W_F32 l, h = w_log2_pair(ax, &l);
    W_F32 hh = w_cut(h), hl = w_exact(h - hh) + l, yh = w_cut(yc), yl = yc - yh;
    W_F32 p = yh * hh, q = yl * hh + yc * hl, z = p + q;
    W_I32 over = W_MASK(z > 129.0f), under = W_MASK(z < -151.0f);
    W_F32 zc = w_mask(under, -151.0f, w_mask(over, 129.0f, z));
    W_F32 magic = w_exact(zc + W_ROUND_MAGIC), n = magic - W_ROUND_MAGIC;
    W_F32 r = w_mask(over | under, 0.0f, w_exact(p - n) + q);
    W_F32 v = w_exp2_core(r, w_sig(w_uns(w_bits(magic)) - w_uns(w_bits(W_ROUND_MAGIC))));
    W_I32 zero = W_MASK(ax == 0), huge = W_MASK(ax == HUGE_VALF), negative_y = W_MASK(y < 0);
    v = w_mask(zero | huge, w_mask(zero ^ negative_y, 0.0f, HUGE_VALF), v);
    W_F32 whole = w_mask(W_MASK(ay < 0x1p24f), ay, 0.0f); /* from 2^24 on all are even */
    W_I32 count = w_to_i32(whole), exact = W_MASK(w_to_f32(count) == whole);
    v = w_float(w_bits(v) ^ (-(count & 1) & exact & w_bits(x) & W_SIGN)); /* odd powers */
    v = w_mask(~exact & W_MASK(x < 0) & ~huge, NAN, v);
    v = w_mask(W_MASK(x != x) | W_MASK(y != y), NAN, v);
    return w_mask(W_MASK(x == 1.0f) | W_MASK(y == 0), 1.0f, v);
}

/* ---- the plane ---- */

/* big sqrt(1 + (small / big)^2). An infinity wins, even over NaN. */
W_FN W_F32 w_hypot_f32(W_F32 a, W_F32 b) {
    W_F32 x = w_abs_f32(a), y = w_abs_f32(b), big = x > y ? x : y, small = x > y ? y : x;
    W_F32 r = small / (big == 0 ? 1.0f : big), h = big * w_root(w_fma_f32(r, r, 1.0f));
    h = x == HUGE_VALF ? x : h;
    return y == HUGE_VALF ? y : h;
}

/* Of t = small / big: atan t, or pi/4 + atan((t - 1) / (t + 1)) above tan(pi/8), then the other octants. The
 * terms of (atan t - t) / t^3 were fitted by reweighted least squares: 0.02 ULP. */
W_FN W_F32 w_atan2_f32(W_F32 a, W_F32 b) {
    W_F32 y = w_abs_f32(a), x = w_abs_f32(b), big = y > x ? y : x, small = y > x ? x : y;
    W_F32 scale = big > 0x1p100f ? 0x1p-30f : (big < 0x1p-60f ? 0x1p60f : 1.0f);
    W_F32 endless = small == HUGE_VALF ? 1.0f : 0.0f;
    W_F32 s = big == HUGE_VALF ? endless : small * scale, l = big == HUGE_VALF ? 1.0f : big * scale;
    W_F32 turned = s > 0x1.a8279ap-2f * l ? 1.0f : 0.0f, d = l + turned * s;
    W_F32 t = (s - turned * l) / (d == 0 ? 1.0f : d), z = t * t;
    W_F32 p = -0x1.f1e3d6p-5f;
    p = w_fma_f32(p, z, 0x1.b1ea5cp-4f);
    p = w_fma_f32(p, z, -0x1.23b504p-3f);
    p = w_fma_f32(p, z, 0x1.999194p-3f);
    p = w_fma_f32(p, z, -0x1.55554ap-2f);
    W_F32 angle = turned * 0x1.921fb6p-1f + (w_fma_f32(t * z, p, t) - turned * 0x1.777a5cp-26f);
    angle = y > x ? (0x1.921fb6p+0f - angle) - 0x1.777a5cp-25f : angle;
    angle = w_mask(W_MASK(w_bits(b) < 0), (0x1.921fb6p+1f - angle) - 0x1.777a5cp-24f, angle);
    return w_mask(W_MASK(a != a) | W_MASK(b != b), NAN, w_signed_f32(angle, a));
}

/* ---- division and remainder ---- */

W_FN W_F32 w_div_f32(W_F32 a, W_F32 b) { return a / b; }
W_FN W_F32 w_mod_f32(W_F32 a, W_F32 b) {
    W_F32 r = w_remainder(a, b);
    return r == 0 ? w_signed_f32(0.0f, b) : ((r < 0) != (b < 0) ? r + b : r);
}
