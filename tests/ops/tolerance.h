/* How far a result may differ from the reference: one table for every op, dtype and device. The reference is
 * computed in long double. So it is exact for f32, f16 and bf16, and has 11 extra bits for f64. A commit that
 * widens a bound must say why, and on which device.
 *
 * ulp(r) = 2^(clamp(floor(log2 |r|), emin, emax) - (digits - 1)). This is Muller's unit in the last place,
 * extended to subnormals. A correctly rounded result is off by at most half an ulp. 16-bit floats are
 * computed in f32 and rounded once. */
#ifndef WEFT_TESTS_OPS_TOLERANCE_H
#define WEFT_TESTS_OPS_TOLERANCE_H

#include <math.h>
#include <weft/dtype.h>

/* X(NAME, ulps in f32 on CPU, CUDA and interp; on OpenCL and WebGPU; in f64; in f16 and bf16; where it is
 * used)
 *   0       bit-equal
 *   CHOICE  bit-equal, except for the sign of a zero
 *   GIVEN   the test case gives a bound for each element, by one of the functions below */
#define TOLERANCE_LIST(X)                                                                                    \
    X(COPY, 0, 0, 0, 0,                                                                                      \
      "copies, views, comparisons, integers, rounding to whole numbers, exact casts: class A")               \
    X(CHOICE, 0, 0, 0, 0, "max, min, relu, clamp: class A, IEEE leaves the sign of 0 open")                  \
    X(BASIC, 0.5, 0.5, 0.5, 0.5, "+ - * and casts that round: class B")                                      \
    X(DIVIDE, 0.5, 2.5, 0.5, 0.5, "division and 1/x: class B")                                               \
    X(ROOT, 0.5, 5, 0.5, 0.5, "square root: class B")                                                        \
    X(RSQRT, 3, 3, 3, 1, "1/sqrt(x): class B")                                                               \
    X(TWO_STEPS, 1, 1, 1, 1, "two operations of class B, each rounded")                                      \
    X(EXP, 4, 4, 4, 1, "exp, log and their kin: class C")                                                    \
    X(TRIG, 4, 4, 4, 1, "sin and cos: class C")                                                              \
    X(SIGMOID, 5, 5, 5, 1, "class C")                                                                        \
    X(TANH, 6, 6, 6, 1, "class C")                                                                           \
    X(ERF, 8, 8, 8, 1, "class C")                                                                            \
    X(POW, 16, 16, 16, 1, "class C")                                                                         \
    X(SOFTPLUS, 8, 8, 8, 1, "softplus, silu, elu: class C")                                                  \
    X(GIVEN, 0, 0, 0, 0, "sums, products of matrices, softmax, norms, losses: classes D and E, by element")

typedef enum tolerance {
#define TOLERANCE_ENUM_(name, f32, gpu, f64, half, what) TOLERANCE_##name,
    TOLERANCE_LIST(TOLERANCE_ENUM_)
#undef TOLERANCE_ENUM_
} tolerance;

/* The floating-point formats: digits of the significand, the leading one included, and exponents of normal
 * numbers. */
typedef struct float_format {
    int digits, emin, emax;
} float_format;

static inline float_format format_of(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F64: return (float_format){53, -1022, 1023};
    case WEFT_F16: return (float_format){11, -14, 15};
    case WEFT_BF16: return (float_format){8, -126, 127};
    default: return (float_format){24, -126, 127};
    }
}

static inline long double ulp_of(weft_dtype dtype, long double r) {
    float_format f = format_of(dtype);
    int e = r != 0 && isfinite(r) ? ilogbl(r) : f.emin;
    if (isinf(r)) e = f.emax;
    e = e < f.emin ? f.emin : e > f.emax ? f.emax : e;
    return ldexpl(1, e - (f.digits - 1));
}

/* Unit roundoff of the dtype, and of the dtype in which its sums are accumulated. */
static inline long double roundoff(weft_dtype dtype) { return ldexpl(1, -format_of(dtype).digits); }
static inline long double roundoff_sum(weft_dtype dtype) { return ldexpl(1, dtype == WEFT_F64 ? -53 : -24); }

/* Error of rounding r once to the dtype when it is stored, subnormals included. */
static inline long double bound_store(weft_dtype dtype, long double r) {
    return roundoff(dtype) * fabsl(r) + 0.5L * ulp_of(dtype, 0);
}

/* Class D: a contraction of length k, such as sum, mean or matmul. magnitude is the sum of |a_i b_i|. */
static inline long double bound_sum(weft_dtype dtype, int64_t k, long double magnitude, long double r) {
    long double steps = 2 * log2l((long double)(k > 1 ? k : 1)) + 4;
    return steps * roundoff_sum(dtype) * magnitude + bound_store(dtype, r);
}

/* A product of k factors. Each step rounds once, in any order. */
static inline long double bound_product(weft_dtype dtype, int64_t k, long double r) {
    return (long double)k *
               (roundoff_sum(dtype) * fabsl(r) + ulp_of(dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, 0)) +
           bound_store(dtype, r);
}

/* Class E: softmax and ops built on it, relative. distance is |x_i - max x|, n is the length of the row. */
static inline long double bound_softmax(weft_dtype dtype, long double distance, int64_t n, long double r) {
    long double steps = distance + 2 * log2l((long double)(n > 1 ? n : 1)) + 8;
    return steps * (roundoff_sum(dtype) * fabsl(r) + ulp_of(dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, 0)) +
           bound_store(dtype, r);
}

/* Class E: norms and variance. rms and sigma are those of the row. The bound is relative to `scale`, the
 * largest |x-hat| of the row. */
static inline long double bound_norm(weft_dtype dtype, int64_t n, long double rms, long double sigma,
                                     long double scale, long double r) {
    long double steps = 2 * log2l((long double)(n > 1 ? n : 1)) + 12, ratio = sigma > 0 ? rms / sigma : 0;
    return steps * roundoff_sum(dtype) * (1 + ratio) * scale + bound_store(dtype, r);
}

/* Class H: gradients in f32, f16 and bf16 compared with gradients in f64. The formula has about ten
 * roundings, its largest value is `scale`, and it is summed over k terms. In 16 bits, products are stored
 * before they are summed. */
static inline long double bound_gradient(weft_dtype dtype, int64_t k, long double scale, long double r) {
    long double steps = 2 * log2l((long double)(k > 1 ? k : 1)) + 32;
    bool half = dtype == WEFT_F16 || dtype == WEFT_BF16;
    return (half ? 8 * roundoff(dtype) : steps * roundoff_sum(dtype)) * (scale + fabsl(r)) +
           bound_store(dtype, r);
}

#endif
