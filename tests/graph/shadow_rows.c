/* Numbers of the shadow interpreter: every row of the op table by its definition, with the error that a
 * device may make. The bounds are those of the tolerance classes B (correctly rounded), C (own polynomials)
 * and D (sums). Read next: shadow.c. */
#include <math.h>
#include "graph/shadow_inside.h"

/* Half the distance from 1 to its neighbour. For f64 this includes the rounding of the shadow itself. */
static double unit_of(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F16: return 0x1p-11;
    case WEFT_BF16: return 0x1p-8;
    case WEFT_F32: return 0x1p-24;
    default: return 0x1p-50;
    }
}

static double smallest(weft_dtype dtype) {
    return dtype == WEFT_F16    ? 0x1p-24
           : dtype == WEFT_BF16 ? 0x1p-133
           : dtype == WEFT_F32  ? 0x1p-149
                                : 0x1p-1070;
}

static double largest(weft_dtype dtype) {
    return dtype == WEFT_F16 ? 65504.0 : dtype == WEFT_F64 ? 1e300 : 3e38;
}

static bool representable(weft_dtype dtype, double v) {
    if (dtype == WEFT_F64) return true;
    if ((double)(float)v != v) return false;
    if (dtype == WEFT_F16) return (double)weft_f16_to_f32(weft_f32_to_f16((float)v)) == v;
    return dtype == WEFT_F32 || (double)weft_bf16_to_f32(weft_f32_to_bf16((float)v)) == v;
}

/* Returns f with an error bound, the sum of the propagated error e and the error of the operation: `ulps` in
 * f32 or f64, then one rounding to dtype. exact: the operation is correctly rounded and its operands are
 * exact. */
static number rounded(weft_dtype dtype, double f, double e, double ulps, bool exact) {
    number r = {f, 0, 0};
    if (!isfinite(f) || !isfinite(e) || fabs(f) + e > largest(dtype)) {
        r.e = (double)INFINITY;
        return r;
    }
    if (exact && representable(dtype, f)) return r;
    double compute = dtype == WEFT_F64 ? unit_of(WEFT_F64) : unit_of(WEFT_F32);
    r.e =
        e + 2.0 * ulps * compute * fabs(f) + unit_of(dtype) * (fabs(f) + e) + (1.0 + ulps) * smallest(dtype);
    return r;
}

int64_t shadow_wrap(weft_dtype dtype, int64_t v) {
    switch (dtype) {
    case WEFT_I8: return (int8_t)v;
    case WEFT_I16: return (int16_t)v;
    case WEFT_I32: return (int32_t)v;
    case WEFT_U8: return (uint8_t)v;
    case WEFT_U16: return (uint16_t)v;
    case WEFT_U32: return (uint32_t)v;
    case WEFT_BOOL: return v != 0;
    default: return v;
    }
}

/* ---- floats, one operand ---- */

static double sigmoid(double x) { return x >= 0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x)); }
static double cubic(double x) { return sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x); }

static double function(int op, double x) {
    switch (op) {
    case WEFT_OP_NEG: return -x;
    case WEFT_OP_EXP: return exp(x);
    case WEFT_OP_EXP2: return exp2(x);
    case WEFT_OP_LOG: return log(x);
    case WEFT_OP_LOG2: return log2(x);
    case WEFT_OP_LOG1P: return log1p(x);
    case WEFT_OP_EXPM1: return expm1(x);
    case WEFT_OP_SIN: return sin(x);
    case WEFT_OP_COS: return cos(x);
    case WEFT_OP_TANH: return tanh(x);
    case WEFT_OP_ERF: return erf(x);
    case WEFT_OP_SQRT: return sqrt(x);
    case WEFT_OP_RSQRT: return 1.0 / sqrt(x);
    case WEFT_OP_RECIP: return 1.0 / x;
    case WEFT_OP_ABS: return fabs(x);
    case WEFT_OP_SIGN: return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    case WEFT_OP_FLOOR: return floor(x);
    case WEFT_OP_CEIL: return ceil(x);
    case WEFT_OP_ROUND: return nearbyint(x);
    case WEFT_OP_TRUNC: return trunc(x);
    case WEFT_OP_RELU: return x > 0 ? x : x != x ? x : 0.0;
    case WEFT_OP_SIGMOID: return sigmoid(x);
    case WEFT_OP_GELU: return x * 0.5 * erfc(-x * sqrt(0.5));
    case WEFT_OP_GELU_SLOPE: return 0.5 * erfc(-x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2 * acos(-1));
    case WEFT_OP_GELU_TANH: return x * sigmoid(2 * cubic(x));
    case WEFT_OP_GELU_TANH_SLOPE: {
        double turn = sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * x * x);
        return sigmoid(2 * cubic(x)) + x * 2 * turn * sigmoid(2 * cubic(x)) * sigmoid(-2 * cubic(x));
    }
    default: return NAN;
    }
}

static double ulps_of(int op) {
    switch (op) {
    case WEFT_OP_EXP:
    case WEFT_OP_EXP2:
    case WEFT_OP_LOG:
    case WEFT_OP_LOG2:
    case WEFT_OP_SIN:
    case WEFT_OP_COS: return 4.0;
    case WEFT_OP_LOG1P:
    case WEFT_OP_EXPM1:
    case WEFT_OP_TANH: return 6.0;
    case WEFT_OP_ERF:
    case WEFT_OP_GELU:
    case WEFT_OP_GELU_SLOPE:
    case WEFT_OP_GELU_TANH:
    case WEFT_OP_GELU_TANH_SLOPE: return 8.0;
    case WEFT_OP_SIGMOID: return 5.0;
    case WEFT_OP_RSQRT: return 3.0;
    default: return 0.5;
    }
}

static bool steps(int op) {
    return op == WEFT_OP_SIGN || op == WEFT_OP_FLOOR || op == WEFT_OP_CEIL || op == WEFT_OP_ROUND ||
           op == WEFT_OP_TRUNC;
}

static bool is_gelu(int op) {
    return op == WEFT_OP_GELU || op == WEFT_OP_GELU_SLOPE || op == WEFT_OP_GELU_TANH ||
           op == WEFT_OP_GELU_TANH_SLOPE;
}

static number unary(int op, weft_dtype dtype, number a) {
    if (op == WEFT_OP_ISNAN || op == WEFT_OP_ISINF)
        return (number){0, a.e, op == WEFT_OP_ISNAN ? isnan(a.f) : isinf(a.f)};
    double y = function(op, a.f), e;
    bool exact = a.e == 0 && ulps_of(op) == 0.5;
    if (op == WEFT_OP_SIN || op == WEFT_OP_COS) {
        e = a.e;
    } else if (is_gelu(op)) { /* slope at most 1.13, accurate to 4 u |x| */
        e = 1.13 * a.e + 4 * fmin(unit_of(dtype), unit_of(WEFT_F32)) * fabs(a.f);
    } else { /* monotone between the ends; otherwise the error covers both */
        double below = function(op, a.f - a.e), above = function(op, a.f + a.e);
        e = fmax(fabs(y - below), fabs(y - above));
        if (op == WEFT_OP_ABS) e = a.e;
        if (op == WEFT_OP_RECIP && fabs(a.f) <= a.e) e = (double)INFINITY;
        if (steps(op) && (e != 0 || (op == WEFT_OP_SIGN && a.e > 0 && fabs(a.f) <= a.e)))
            e = (double)INFINITY;
        if (isnan(e)) e = (double)INFINITY;
    }
    if (steps(op) && e == 0) exact = true;
    if (op == WEFT_OP_NEG || op == WEFT_OP_ABS || op == WEFT_OP_RELU) return (number){y, e, 0};
    return rounded(dtype, y, e, ulps_of(op), exact);
}

/* ---- floats, two operands ---- */

static number divide(weft_dtype dtype, number a, number b) {
    double room = fabs(b.f) - b.e;
    if (!(room > 0)) return (number){a.f / b.f, (double)INFINITY, 0};
    double e = (a.e + fabs(a.f / b.f) * b.e) / room;
    return rounded(dtype, a.f / b.f, e, 0.5,
                   a.e == 0 && b.e == 0 && dtype != WEFT_F64 && a.f / b.f * b.f == a.f);
}

static number power(weft_dtype dtype, number a, number b) {
    double y = pow(a.f, b.f), e = 0;
    for (int k = 0; k < 4; k++)
        e = fmax(e, fabs(pow(a.f + (k & 1 ? a.e : -a.e), b.f + (k & 2 ? b.e : -b.e)) - y));
    return rounded(dtype, y, isnan(e) ? (double)INFINITY : e, 16.0, false);
}

static number compare(int op, double a, double b, double e) {
    bool known = e == 0 || fabs(a - b) > e;
    number r = {0, known ? 0 : (double)INFINITY, 0};
    r.i = op == WEFT_OP_EQ   ? a == b
          : op == WEFT_OP_NE ? a != b
          : op == WEFT_OP_LT ? a < b
          : op == WEFT_OP_LE ? a <= b
          : op == WEFT_OP_GT ? a > b
                             : a >= b;
    return r;
}

static bool compares(int op) { return op >= WEFT_OP_EQ && op <= WEFT_OP_GE; }

static number binary(int op, weft_dtype dtype, number a, number b) {
    bool exact = a.e == 0 && b.e == 0;
    if (compares(op)) return compare(op, a.f, b.f, a.e + b.e);
    switch (op) {
    case WEFT_OP_ADD: return rounded(dtype, a.f + b.f, a.e + b.e, 0.5, exact);
    case WEFT_OP_SUB: return rounded(dtype, a.f - b.f, a.e + b.e, 0.5, exact);
    case WEFT_OP_MUL:
        return rounded(dtype, a.f * b.f, fabs(a.f) * b.e + fabs(b.f) * a.e + a.e * b.e, 0.5, exact);
    case WEFT_OP_DIV: return divide(dtype, a, b);
    case WEFT_OP_POW: return power(dtype, a, b);
    case WEFT_OP_MAXIMUM: return (number){fmax(a.f, b.f), fmax(a.e, b.e), 0};
    case WEFT_OP_MINIMUM: return (number){fmin(a.f, b.f), fmax(a.e, b.e), 0};
    default: { /* MOD */
        double r = fmod(a.f, b.f);
        if (r != 0 && (r < 0) != (b.f < 0)) r += b.f;
        return rounded(dtype, r, exact ? 0 : (double)INFINITY, 1.0, exact);
    }
    }
}

static number choose(weft_dtype dtype, number condition, number a, number b) {
    number r = condition.i ? a : b;
    if (condition.e == 0) return r;
    if (weft_dtype_is_float(dtype))
        r.e = fabs(a.f - b.f) + fmax(a.e, b.e);
    else
        r.e = a.i == b.i ? fmax(a.e, b.e) : (double)INFINITY;
    return r;
}

/* ---- integers ---- */

static int64_t whole(int op, weft_dtype dtype, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    unsigned shift = (unsigned)(y % (8 * weft_dtype_size(dtype)));
    int64_t r;
    switch (op) {
    case WEFT_OP_NEG: return (int64_t)(0 - x);
    case WEFT_OP_ABS: return a < 0 ? (int64_t)(0 - x) : a;
    case WEFT_OP_SIGN: return (a > 0) - (a < 0);
    case WEFT_OP_RELU: return a > 0 ? a : 0;
    case WEFT_OP_NOT: return dtype == WEFT_BOOL ? !a : ~a;
    case WEFT_OP_ADD: return (int64_t)(x + y);
    case WEFT_OP_SUB: return (int64_t)(x - y);
    case WEFT_OP_MUL: return (int64_t)(x * y);
    case WEFT_OP_DIV: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - x) : a / b;
    case WEFT_OP_MOD: r = b == 0 || b == -1 ? 0 : a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    case WEFT_OP_MAXIMUM: return a > b ? a : b;
    case WEFT_OP_MINIMUM: return a < b ? a : b;
    case WEFT_OP_AND: return a & b;
    case WEFT_OP_OR: return a | b;
    case WEFT_OP_XOR: return a ^ b;
    case WEFT_OP_SHL: return (int64_t)(x << shift);
    case WEFT_OP_SHR: return a >> shift; /* unsigned dtypes are held as positive numbers */
    case WEFT_OP_EQ: return a == b;
    case WEFT_OP_NE: return a != b;
    case WEFT_OP_LT: return a < b;
    case WEFT_OP_LE: return a <= b;
    case WEFT_OP_GT: return a > b;
    default: return a >= b;
    }
}

number shadow_row(int op, weft_dtype dtype, number a, number b, number c) {
    if (op == WEFT_OP_WHERE) return choose(dtype, a, b, c);
    bool one = op <= WEFT_OP_NOT;
    if (weft_dtype_is_float(dtype)) return one ? unary(op, dtype, a) : binary(op, dtype, a, b);
    int64_t v = whole(op, dtype, a.i, one ? 0 : b.i);
    return (number){0, one ? a.e : fmax(a.e, b.e), compares(op) ? v : shadow_wrap(dtype, v)};
}

static int64_t saturated(weft_dtype dtype, double v) {
    double t = trunc(v);
    int bits = (int)(8 * weft_dtype_size(dtype));
    bool is_signed = dtype == WEFT_I8 || dtype == WEFT_I16 || dtype == WEFT_I32 || dtype == WEFT_I64;
    double top = ldexp(1.0, is_signed ? bits - 1 : bits), bottom = is_signed ? -top : 0.0;
    if (t != t) return 0;
    if (t < bottom) t = bottom;
    if (t >= top) return dtype == WEFT_I64 ? INT64_MAX : (int64_t)(top - 1.0);
    return (int64_t)t;
}

number shadow_cast(weft_dtype from, weft_dtype to, number a) {
    bool to_float = weft_dtype_is_float(to);
    if (!weft_dtype_is_float(from)) {
        if (to_float) return rounded(to, (double)a.i, a.e, 0.5, a.e == 0);
        return (number){0, a.e, shadow_wrap(to, a.i)};
    }
    if (to_float) return rounded(to, a.f, a.e, 0.5, a.e == 0);
    if (to == WEFT_BOOL) return (number){0, a.e > 0 && fabs(a.f) <= a.e ? (double)INFINITY : 0, a.f != 0};
    bool sure = saturated(to, a.f - a.e) == saturated(to, a.f + a.e);
    return (number){0, sure ? 0 : (double)INFINITY, saturated(to, a.f)};
}

/* ---- sums ---- */

/* Exponent of the lowest set bit of v. */
static int lowest_bit(double v) {
    int exponent;
    double mantissa = frexp(v, &exponent);
    int64_t bits = (int64_t)ldexp(fabs(mantissa), 53);
    int zeros = 0;
    while (bits && !(bits & 1)) {
        bits >>= 1;
        zeros++;
    }
    return exponent - 53 + zeros;
}

/* A sum of terms whose magnitudes add up to `total`, all of them multiples of 2^low. The sum is exact in any
 * order if `total` fits into the significand. */
static number finish_sum(weft_dtype dtype, double sum, double total, double e, int64_t n, double depth,
                         int low, bool exact) {
    double bits = dtype == WEFT_F64 ? 50.0 : 24.0;
    if (exact && (total == 0 || log2(total) - low < bits)) return rounded(dtype, sum, 0, 0.5, true);
    double unit = dtype == WEFT_F64 ? unit_of(WEFT_F64) : unit_of(WEFT_F32);
    (void)n;
    return rounded(dtype, sum, e + (depth + 4.0) * unit * (total + e), 0.5, false);
}

static number sum_of(weft_dtype dtype, const number *x, int64_t n, double depth) {
    double sum = 0, total = 0, e = 0;
    int low = 2000;
    for (int64_t k = 0; k < n; k++) {
        sum += x[k].f;
        total += fabs(x[k].f);
        e += x[k].e;
        if (x[k].f != 0 && isfinite(x[k].f) && lowest_bit(x[k].f) < low) low = lowest_bit(x[k].f);
    }
    return finish_sum(dtype, sum, total, e, n, depth, low, e == 0);
}

static double depth_of(int64_t n) { return 2.0 * log2((double)(n > 1 ? n : 1)); }

static number chain_int(weft_dtype dtype, int op, const number *x, int64_t n) {
    number r = {0, 0, 0};
    uint64_t sum = op == WEFT_OP_PROD ? 1 : 0;
    for (int64_t k = 0; k < n; k++) {
        sum = op == WEFT_OP_PROD ? sum * (uint64_t)x[k].i : sum + (uint64_t)x[k].i;
        r.e = fmax(r.e, x[k].e);
    }
    r.i = shadow_wrap(dtype, (int64_t)sum);
    return r;
}

number shadow_chain(weft_dtype dtype, const number *x, int64_t n) {
    if (!weft_dtype_is_float(dtype)) return chain_int(dtype, WEFT_OP_SUM, x, n);
    return sum_of(dtype, x, n, (double)n);
}

static number extreme(int op, bool is_float, const number *x, int64_t n) {
    number r = x[0];
    double e = 0;
    for (int64_t k = 0; k < n; k++) {
        bool better = is_float ? (op == WEFT_OP_MAX ? x[k].f > r.f : x[k].f < r.f)
                               : (op == WEFT_OP_MAX ? x[k].i > r.i : x[k].i < r.i);
        if (better) r = x[k];
        e = fmax(e, x[k].e);
    }
    r.e = e;
    return r;
}

number shadow_reduce(int op, weft_dtype dtype, const number *x, int64_t n) {
    bool is_float = weft_dtype_is_float(dtype);
    if (op == WEFT_OP_MAX || op == WEFT_OP_MIN) return extreme(op, is_float, x, n);
    if (!is_float) return chain_int(dtype, op, x, n);
    if (op == WEFT_OP_SUM) return sum_of(dtype, x, n, depth_of(n));
    double product = 1, outer = 1, most = 1, least = 1; /* most and least bound every partial product */
    bool exact = true;
    for (int64_t k = 0; k < n; k++) {
        exact &= x[k].e == 0 && representable(WEFT_F16, product * x[k].f);
        product *= x[k].f;
        outer *= fabs(x[k].f) + x[k].e;
        most *= fmax(1, fabs(x[k].f) + x[k].e);
        if (x[k].f != 0) least *= fmin(1, fabs(x[k].f));
    }
    if (!(most < largest(dtype)) || least < 0x1p40 * smallest(dtype))
        return (number){product, (double)INFINITY, 0};
    return rounded(dtype, product, exact ? 0 : outer - fabs(product) + (double)n * 0x1p-23 * outer, 0.5,
                   exact);
}

number shadow_dot(weft_dtype dtype, const number *a, const number *b, int64_t n) {
    double sum = 0, total = 0, e = 0;
    uint64_t whole_sum = 0;
    int low = 2000;
    for (int64_t k = 0; k < n; k++) {
        double p = a[k].f * b[k].f;
        whole_sum += (uint64_t)a[k].i * (uint64_t)b[k].i;
        sum += p;
        total += fabs(p);
        e += fabs(a[k].f) * b[k].e + fabs(b[k].f) * a[k].e + a[k].e * b[k].e;
        if (p != 0 && isfinite(p) && lowest_bit(a[k].f) + lowest_bit(b[k].f) < low)
            low = lowest_bit(a[k].f) + lowest_bit(b[k].f);
        if (!isfinite(a[k].e + b[k].e)) e = (double)INFINITY;
    }
    if (!weft_dtype_is_float(dtype))
        return (number){0, e > 0 ? (double)INFINITY : 0, shadow_wrap(dtype, (int64_t)whole_sum)};
    return finish_sum(dtype, sum, total, e, n, depth_of(n), low, e == 0);
}
