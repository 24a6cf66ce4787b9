/* Numbers in the interpreter: loads, stores, casts, and every row of ops.def written a second time from its
 * definition, with libm. As a reference it must not include kernel/prelude.h or use the expressions of
 * ops.def.
 * Must not know: kernels. Read next: kernel.c, docs/design/001-f64-functions-from-libm.md. */
#include <math.h>
#include <string.h>

#include "interp/interp.h"

/* ---- dtypes ---- */

static bool is_unsigned(weft_dtype dtype) {
    return dtype == WEFT_U8 || dtype == WEFT_U16 || dtype == WEFT_U32 || dtype == WEFT_U64;
}

static weft_value interp_calc_number(double f) { return (weft_value){.f = f}; }
static weft_value integer(int64_t i) { return (weft_value){.i = i}; }

/* Returns an integer modulo 2^width, sign-extended if the dtype is signed. A bool becomes 0 or 1. */
static int64_t wrap(weft_dtype dtype, uint64_t bits) {
    switch (dtype) {
    case WEFT_BOOL: return bits != 0;
    case WEFT_I8: return (int8_t)bits;
    case WEFT_I16: return (int16_t)bits;
    case WEFT_I32: return (int32_t)bits;
    case WEFT_U8: return (uint8_t)bits;
    case WEFT_U16: return (uint16_t)bits;
    case WEFT_U32: return (uint32_t)bits;
    default: return (int64_t)bits;
    }
}

/* Rounds f64 to f32, to odd: the last bit is set if something was cut off. Rounding again, to a shorter
 * format, is then as exact as a single rounding (Boldo and Melquiond, 2008). */
static float to_odd(double v) {
    float f = (float)v;
    uint32_t bits;
    if (isnan(v) || (double)f == v) return f;
    if (fabs((double)f) > fabs(v)) f = nextafterf(f, 0.0f);
    memcpy(&bits, &f, sizeof bits);
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#define LOAD_AS(T)                                                                                           \
    {                                                                                                        \
        T v;                                                                                                 \
        memcpy(&v, at, sizeof v);                                                                            \
        return integer((int64_t)v);                                                                          \
    }

weft_value weft__interp_load(weft_dtype dtype, const void *base, int64_t element) {
    const char *at = (const char *)base + element * (int64_t)weft_dtype_size(dtype);
    float f;
    double d;
    uint16_t h;
    switch (dtype) {
    case WEFT_F32: memcpy(&f, at, sizeof f); return interp_calc_number((double)f);
    case WEFT_F64: memcpy(&d, at, sizeof d); return interp_calc_number(d);
    case WEFT_F16: memcpy(&h, at, sizeof h); return interp_calc_number((double)weft_f16_to_f32(h));
    case WEFT_BF16: memcpy(&h, at, sizeof h); return interp_calc_number((double)weft_bf16_to_f32(h));
    case WEFT_BOOL: return integer(*at != 0);
    case WEFT_I8: LOAD_AS(int8_t)
    case WEFT_I16: LOAD_AS(int16_t)
    case WEFT_I32: LOAD_AS(int32_t)
    case WEFT_U8: LOAD_AS(uint8_t)
    case WEFT_U16: LOAD_AS(uint16_t)
    case WEFT_U32: LOAD_AS(uint32_t)
    default: LOAD_AS(int64_t)
    }
}

void weft__interp_store(weft_dtype dtype, void *base, int64_t element, weft_value v) {
    char *at = (char *)base + element * (int64_t)weft_dtype_size(dtype);
    float f;
    uint16_t h;
    switch (dtype) {
    case WEFT_F32: f = (float)v.f, memcpy(at, &f, sizeof f); return;
    case WEFT_F64: memcpy(at, &v.f, sizeof v.f); return;
    case WEFT_F16: h = weft_f32_to_f16(to_odd(v.f)), memcpy(at, &h, sizeof h); return;
    case WEFT_BF16: h = weft_f32_to_bf16(to_odd(v.f)), memcpy(at, &h, sizeof h); return;
    default: break;
    }
    const uint64_t bits = (uint64_t)wrap(dtype, (uint64_t)v.i);
    for (size_t i = 0; i < weft_dtype_size(dtype); i++) { /* byte by byte, in the machine's order */
        const uint64_t one = 1;
        const bool little = *(const unsigned char *)&one == 1;
        at[little ? i : weft_dtype_size(dtype) - 1 - i] = (char)(bits >> (8 * i));
    }
}

weft_value weft__interp_rounded(weft_dtype dtype, weft_value v) {
    uint64_t room[2] = {0, 0};
    weft__interp_store(dtype, room, 0, v);
    return weft__interp_load(dtype, room, 0);
}

/* ---- casts ---- */

typedef struct limits {
    int64_t least;
    uint64_t most;
} limits;

static limits limits_of(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_BOOL: return (limits){0, 1};
    case WEFT_I8: return (limits){INT8_MIN, INT8_MAX};
    case WEFT_I16: return (limits){INT16_MIN, INT16_MAX};
    case WEFT_I32: return (limits){INT32_MIN, INT32_MAX};
    case WEFT_U8: return (limits){0, UINT8_MAX};
    case WEFT_U16: return (limits){0, UINT16_MAX};
    case WEFT_U32: return (limits){0, UINT32_MAX};
    case WEFT_U64: return (limits){0, UINT64_MAX};
    default: return (limits){INT64_MIN, INT64_MAX};
    }
}

/* Truncates and saturates. NaN gives 0. */
static int64_t saturate(weft_dtype dtype, double v) {
    const limits l = limits_of(dtype);
    const double whole = trunc(v);
    if (isnan(v)) return 0;
    if (whole <= (double)l.least) return l.least;
    /* (double)INT64_MAX is 2^63, which is still right here */
    if (whole >= (double)l.most) return (int64_t)l.most;
    return whole < 0 ? (int64_t)whole : (int64_t)(uint64_t)whole;
}

/* Converts a large integer, rounded to odd. The store rounds it to the shorter float; together this equals a
 * single rounding. */
static double integer_to_odd(bool negative, uint64_t magnitude) {
    if (magnitude >> 53 == 0) return negative ? -(double)magnitude : (double)magnitude;
    const double v = ldexp((double)((magnitude >> 11) | ((magnitude & 0x7ff) != 0)), 11);
    return negative ? -v : v;
}

static double to_double(weft_dtype from, weft_dtype to, int64_t i) {
    const bool negative = from != WEFT_U64 && i < 0;
    if (to == WEFT_F64) return from == WEFT_U64 ? (double)(uint64_t)i : (double)i;
    return integer_to_odd(negative, negative ? 0 - (uint64_t)i : (uint64_t)i);
}

weft_value weft__interp_cast(weft_dtype from, weft_dtype to, weft_value v) {
    const bool from_float = weft_dtype_is_float(from), to_float = weft_dtype_is_float(to);
    if (from_float && to_float) return v;
    if (to == WEFT_BOOL) return integer(from_float ? v.f != 0 : v.i != 0);
    if (from_float) return integer(saturate(to, v.f));
    if (to_float) return interp_calc_number(to_double(from, to, v.i));
    return integer(wrap(to, (uint64_t)v.i));
}

/* ---- rows: floats ---- */

static double larger(double a, double b) { return isnan(a) || isnan(b) ? NAN : a >= b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || isnan(b) ? NAN : a <= b ? a : b; }

/* The remainder as Python's %: fmod, plus b if their signs differ. */
static double float_mod(double a, double b) {
    const double r = fmod(a, b);
    if (r == 0) return copysign(0.0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static const double sqrt_2_pi = 0.79788456080286535588;

/* The derivative of the tanh form of GELU. It is 0 or 1 where powers of a would overflow. It is NaN at the
 * infinities, where the slope of tanh is 0 and its factor is infinite. */
static double gelu_tanh_slope(double a) {
    if (isinf(a)) return NAN;
    if (fabs(a) > 100) return a > 0;
    const double t = tanh(sqrt_2_pi * (a + 0.044715 * pow(a, 3)));
    return (1 + t) / 2 + a / 2 * (1 - t * t) * sqrt_2_pi * (1 + 3 * 0.044715 * a * a);
}

static double float_unary(int op, double a) {
    switch (op) {
    case WEFT_OP_NEG: return -a;
    case WEFT_OP_EXP: return exp(a);
    case WEFT_OP_EXP2: return exp2(a);
    case WEFT_OP_LOG: return log(a);
    case WEFT_OP_LOG2: return log2(a);
    case WEFT_OP_LOG1P: return log1p(a);
    case WEFT_OP_EXPM1: return expm1(a);
    case WEFT_OP_SIN: return sin(a);
    case WEFT_OP_COS: return cos(a);
    case WEFT_OP_TANH: return tanh(a);
    case WEFT_OP_ERF: return erf(a);
    case WEFT_OP_SQRT: return sqrt(a);
    case WEFT_OP_RSQRT: return 1 / sqrt(a);
    case WEFT_OP_RECIP: return 1 / a;
    case WEFT_OP_ABS: return fabs(a);
    case WEFT_OP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a; /* NaN and both zeros stay */
    case WEFT_OP_FLOOR: return floor(a);
    case WEFT_OP_CEIL: return ceil(a);
    case WEFT_OP_ROUND: return rint(a);
    case WEFT_OP_TRUNC: return trunc(a);
    case WEFT_OP_RELU: return larger(a, 0);
    case WEFT_OP_SIGMOID: return (a < 0 ? exp(a) : 1) / (1 + exp(-fabs(a))); /* no overflow on the way to 0 */
    case WEFT_OP_GELU: return a * (erfc(-a / sqrt(2.0)) / 2);
    case WEFT_OP_GELU_SLOPE: return erfc(-a / sqrt(2.0)) / 2 + a * exp(-a * a / 2) * sqrt_2_pi / 2;
    case WEFT_OP_GELU_TANH: return a / 2 * (1 + tanh(sqrt_2_pi * (a + 0.044715 * pow(a, 3))));
    case WEFT_OP_GELU_TANH_SLOPE: return gelu_tanh_slope(a);
    default: return NAN;
    }
}

static double float_binary(int op, double a, double b) {
    switch (op) {
    case WEFT_OP_ADD:
    case WEFT_OP_SUM: return a + b;
    case WEFT_OP_SUB: return a - b;
    case WEFT_OP_MUL:
    case WEFT_OP_PROD: return a * b;
    case WEFT_OP_DIV: return a / b;
    case WEFT_OP_MOD: return float_mod(a, b);
    case WEFT_OP_MAXIMUM:
    case WEFT_OP_MAX: return larger(a, b);
    case WEFT_OP_MINIMUM:
    case WEFT_OP_MIN: return smaller(a, b);
    case WEFT_OP_POW: return pow(a, b);
    case WEFT_OP_ATAN2: return atan2(a, b);
    case WEFT_OP_HYPOT: return hypot(a, b);
    default: return float_unary(op, a);
    }
}

/* ---- rows: integers, exact modulo 2^64, before the dtype wraps them ---- */

static int64_t int_div(bool is_u, int64_t a, int64_t b) {
    if (is_u) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t int_mod(bool is_u, int64_t a, int64_t b) {
    if (is_u) return (int64_t)((uint64_t)a % (uint64_t)b);
    if (b == -1) return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool int_less(bool is_u, int64_t a, int64_t b) { return is_u ? (uint64_t)a < (uint64_t)b : a < b; }

/* Shifts right: sign-extends a signed value, and fills an unsigned one with zeros. */
static int64_t shift_right(bool is_u, int64_t a, unsigned by) {
    if (is_u || a >= 0) return (int64_t)((uint64_t)a >> by);
    return (int64_t) ~(~(uint64_t)a >> by);
}

static int64_t int_calc(int op, weft_dtype dtype, int64_t a, int64_t b, bool *by_zero) {
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    const bool is_u = is_unsigned(dtype);
    const uint64_t width = dtype == WEFT_BOOL ? 1 : 8 * weft_dtype_size(dtype);
    switch (op) {
    case WEFT_OP_NEG: return (int64_t)(0 - ua);
    case WEFT_OP_ABS: return !is_u && a < 0 ? (int64_t)(0 - ua) : a;
    case WEFT_OP_SIGN: return a == 0 ? 0 : !is_u && a < 0 ? -1 : 1;
    case WEFT_OP_RELU: return !is_u && a < 0 ? 0 : a;
    case WEFT_OP_NOT: return dtype == WEFT_BOOL ? !a : (int64_t)~ua;
    case WEFT_OP_ADD:
    case WEFT_OP_SUM: return (int64_t)(ua + ub);
    case WEFT_OP_SUB: return (int64_t)(ua - ub);
    case WEFT_OP_MUL:
    case WEFT_OP_PROD: return (int64_t)(ua * ub);
    case WEFT_OP_DIV:
    case WEFT_OP_MOD:
        if (b == 0) {
            *by_zero = true;
            return 0;
        }
        return op == WEFT_OP_DIV ? int_div(is_u, a, b) : int_mod(is_u, a, b);
    case WEFT_OP_MAXIMUM:
    case WEFT_OP_MAX: return int_less(is_u, a, b) ? b : a;
    case WEFT_OP_MINIMUM:
    case WEFT_OP_MIN: return int_less(is_u, b, a) ? b : a;
    case WEFT_OP_AND: return (int64_t)(ua & ub);
    case WEFT_OP_OR: return (int64_t)(ua | ub);
    case WEFT_OP_XOR: return (int64_t)(ua ^ ub);
    case WEFT_OP_SHL: return (int64_t)(ua << (ub % width));
    case WEFT_OP_SHR: return shift_right(is_u, a, (unsigned)(ub % width));
    default: return 0;
    }
}

/* ---- rows ---- */

enum { COMPARED_FALSE, COMPARED_TRUE, NOT_A_COMPARISON };

/* Compares. less, equal and greater are all false if an operand is NaN. */
static int compare(int op, bool less, bool equal, bool greater) {
    switch (op) {
    case WEFT_OP_EQ: return equal;
    case WEFT_OP_NE: return !equal;
    case WEFT_OP_LT: return less;
    case WEFT_OP_LE: return less || equal;
    case WEFT_OP_GT: return greater;
    case WEFT_OP_GE: return greater || equal;
    default: return NOT_A_COMPARISON;
    }
}

weft_value weft__interp_calc(int op, weft_dtype dtype, weft_value a, weft_value b, weft_value c,
                             bool *by_zero) {
    if (op == WEFT_OP_WHERE) return a.i != 0 ? b : c;
    if (weft_dtype_is_float(dtype)) {
        if (op == WEFT_OP_ISNAN) return integer(isnan(a.f) ? 1 : 0);
        if (op == WEFT_OP_ISINF) return integer(isinf(a.f) ? 1 : 0);
        const int truth = compare(op, a.f<b.f, a.f == b.f, a.f> b.f);
        return truth == NOT_A_COMPARISON ? interp_calc_number(float_binary(op, a.f, b.f)) : integer(truth);
    }
    const bool is_u = is_unsigned(dtype);
    const int truth = compare(op, int_less(is_u, a.i, b.i), a.i == b.i, int_less(is_u, b.i, a.i));
    if (truth != NOT_A_COMPARISON) return integer(truth);
    return integer(wrap(dtype, (uint64_t)int_calc(op, dtype, a.i, b.i, by_zero)));
}

weft_value weft__interp_start(int op, weft_dtype dtype) {
    const bool is_float = weft_dtype_is_float(dtype);
    switch (op) {
    case WEFT_OP_PROD: return is_float ? interp_calc_number(1) : integer(1);
    case WEFT_OP_MAX: return is_float ? interp_calc_number(-HUGE_VAL) : integer(limits_of(dtype).least);
    case WEFT_OP_MIN:
        return is_float ? interp_calc_number(HUGE_VAL) : integer((int64_t)limits_of(dtype).most);
    default: return is_float ? interp_calc_number(0) : integer(0);
    }
}

/* Returns a random word. Words 0 to 3 of the key are the Philox key and the step. Words 4 and 5 are the
 * number of the first element. */
int32_t weft__interp_random(const int32_t key[8], int64_t element) {
    const uint64_t first = (uint64_t)(uint32_t)key[4] | (uint64_t)(uint32_t)key[5] << 32;
    const uint64_t n = first + (uint64_t)element;
    const uint32_t philox_key[2] = {(uint32_t)key[0], (uint32_t)key[1]};
    const uint32_t counter[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), (uint32_t)key[2],
                                 (uint32_t)key[3]};
    uint32_t out[4];
    weft__philox(counter, philox_key, out);
    return (int32_t)out[n % 4];
}
