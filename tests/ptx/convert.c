/* cvt: conversions between integers and floats of all sizes. Read next: memory.c. */
#include "actions.h"
#include "number.h"

/* ---- narrow floats ---- */

typedef struct ptx_format {
    int exponent_bits, digits; /* digits: with the leading one */
} ptx_format;
static const ptx_format half = {5, 11}, bfloat = {8, 8}, tfloat = {8, 11};

/* x with the digits and the range of a format, rounded as the host rounds now, or half away from 0. x is
 * exact. */
static double round_to(const ptx_format *f, double x, bool away) {
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    if (x == 0 || isnan(x) || isinf(x)) return x;
    const int exponent = ilogb(x) < 1 - bias ? 1 - bias : ilogb(x);
    const double steps = ldexp(x, f->digits - 1 - exponent), most = ldexp(2 - ldexp(1, 1 - f->digits), bias);
    const double y = ldexp(away ? round(steps) : rint(steps), exponent - f->digits + 1);
    if (fabs(y) <= most) return y;
    const int mode = fegetround();
    const bool up = mode == FE_TONEAREST || mode == (x > 0 ? FE_UPWARD : FE_DOWNWARD);
    return copysign(up ? INFINITY : most, x);
}

static double narrow_value(const ptx_format *f, unsigned bits) {
    const int bias = (1 << (f->exponent_bits - 1)) - 1, fraction_bits = f->digits - 1;
    const int exponent = (int)(bits >> fraction_bits & (unsigned)ptx_mask((unsigned)f->exponent_bits));
    const unsigned fraction = bits & (unsigned)ptx_mask((unsigned)fraction_bits);
    double x = exponent ? ldexp(fraction + ldexp(1, fraction_bits), exponent - bias - fraction_bits)
                        : ldexp(fraction, 1 - bias - fraction_bits);
    if (exponent == 2 * bias + 1) x = fraction ? NAN : INFINITY;
    return bits >> (fraction_bits + f->exponent_bits) & 1 ? -x : x;
}

double ptx_half(uint64_t bits) { return narrow_value(&half, (unsigned)bits); }
double ptx_bfloat(uint64_t bits) { return ptx_float(bits << 16); }

/* The bits of a number that has the format already. NaN is 0x7fff. */
static uint64_t half_bits(double x) {
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return 0x7fff;
    if (isinf(x)) return sign | 0x7c00;
    if (x == 0) return sign;
    const int exponent = ilogb(x) < -14 ? -14 : ilogb(x);
    const unsigned steps = (unsigned)ldexp(fabs(x), 10 - exponent);
    return sign | (steps < 1024 ? steps : steps - 1024 + ((unsigned)(exponent + 15) << 10));
}
static uint64_t bfloat_bits(double x) { return isnan(x) ? 0x7fff : ptx_float_bits((float)x) >> 16; }

/* ---- reading and writing a type ---- */

static double read_real(const ptx_instruction *in, ptx_type type, uint64_t bits) {
    switch (type) {
    case F16: return ptx_half(bits);
    case BF16: return ptx_bfloat(bits);
    case F32: return ptx_float_in(in, bits);
    default: return ptx_double(bits);
    }
}

static uint64_t write_real(const ptx_instruction *in, ptx_type type, double x) {
    const bool away = in->rounding == RNA;
    if (in->flags & RELU && !(x > 0) && x == x) x = 0;
    switch (type) {
    case F16: return half_bits(round_to(&half, x, away));
    case BF16: return bfloat_bits(round_to(&bfloat, x, away));
    case TF32: return ptx_float_bits((float)round_to(&tfloat, x, away));
    case F32: return ptx_float_out(in, (float)x);
    default: return ptx_double_bits(x);
    }
}

/* ---- from floats to integers ---- */

static double to_whole(const ptx_instruction *in, double x) {
    switch (in->rounding) {
    case RZI: return trunc(x);
    case RMI: return floor(x);
    case RPI: return ceil(x);
    default: return rint(x); /* to the nearest even number */
    }
}

/* "NaN becomes 0 if neither is 64 bits wide, else 1 << (width - 1)." Others are clamped to the range. */
static uint64_t whole(const ptx_instruction *in, double x) {
    const unsigned bits = 8 * ptx_bytes(in->type);
    const bool is_signed = ptx_is_signed(in->type);
    if (isnan(x)) return in->from_type != F64 && bits < 64 ? 0 : 1ull << (bits - 1);
    x = to_whole(in, x);
    const double end = ldexp(1, (int)bits - is_signed);
    if (x >= end) return ptx_mask(bits - is_signed);
    if (x < (is_signed ? -end : 0)) return is_signed ? (uint64_t)-1 << (bits - 1) : 0;
    return is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
}

/* ---- between integers ---- */

static uint64_t clamped(const ptx_instruction *in, uint64_t x) {
    const unsigned bits = 8 * ptx_bytes(in->type);
    const bool from_signed = ptx_is_signed(in->from_type), negative = from_signed && (int64_t)x < 0;
    if (!ptx_is_signed(in->type)) return negative ? 0 : x > ptx_mask(bits) ? ptx_mask(bits) : x;
    const uint64_t most = ptx_mask(bits - 1);
    if (negative) return (int64_t)x < -(int64_t)most - 1 ? ~most : x;
    return x > most ? most : x;
}

/* ---- the instruction ---- */

static uint64_t convert(const ptx_instruction *in, uint64_t bits) {
    const ptx_type to = in->type, from = in->from_type;
    const bool to_real = ptx_is_float(to) || to == TF32;
    if (!ptx_is_float(from)) {
        const uint64_t x = ptx_integer(from, bits);
        if (!to_real) return ptx_integer(to, in->flags & SAT ? clamped(in, x) : x);
        const long double whole_number = ptx_is_signed(from) ? (long double)(int64_t)x : (long double)x;
        if (to == F32) return ptx_float_out(in, (float)whole_number);
        return to == F64 ? ptx_double_bits((double)whole_number) : write_real(in, to, (double)whole_number);
    }
    const double x = read_real(in, from, bits);
    if (!to_real) return whole(in, x);
    const bool to_integer = in->rounding >= RNI;
    return write_real(in, to, to_integer ? to_whole(in, x) : x);
}

static bool is_known(const ptx_instruction *in) {
    const bool sizes = in->type && in->from_type && in->type != PREDICATE && in->from_type != PREDICATE;
    const bool pair = in->type == BF16X2 || in->type == F16X2;
    if (pair) return in->from_type == F32 && in->n_from == 2 && (in->rounding == RN || in->rounding == RZ);
    const bool whole_to_narrow = !ptx_is_float(in->from_type) && (in->type == F16 || in->type == BF16);
    const bool wide = ptx_bytes(in->from_type) == 8 && whole_to_narrow; /* would be rounded twice */
    return sizes && in->n_from == 1 && in->from_type != TF32 && in->from_type < F16X2 && !wide;
}

void ptx_cvt(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    uint64_t *to = ptx_to(w, in, 0);
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, in->n_from - 1);
    if (!is_known(in)) {
        ptx_unknown(w, in);
        return;
    }
    const ptx_type part = in->type == BF16X2 ? BF16 : F16;
    ptx_round_begin(in);
    if (in->n_from == 2) /* the first operand is the upper half */
        EACH_LANE(mask)
    to[l] = write_real(in, part, ptx_float_in(in, a[l])) << 16 | write_real(in, part, ptx_float_in(in, b[l]));
    else EACH_LANE(mask) to[l] = convert(in, a[l]) & in->keep;
    ptx_round_end(in);
}
