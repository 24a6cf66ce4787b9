/* Floating-point functions: fused multiply-add, roots, reciprocals, exponentials, sines. Approximate ones are
 * computed in double precision and rounded, so they are as near as the ISA wants and differ from a GPU within
 * its bound. Read next: convert.c. */
#include "actions.h"
#include "number.h"

void ptx_fma(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1), *c = ptx_from(w, in, 2);
    uint64_t *to = ptx_to(w, in, 0);
    if ((in->type != F32 && in->type != F64) || in->flags & RELU) {
        ptx_unknown(w, in);
        return;
    }
    ptx_round_begin(in);
    if (in->type == F32) EACH_LANE(mask)
    to[l] = ptx_float_out(in, fmaf(ptx_float_in(in, a[l]), ptx_float_in(in, b[l]), ptx_float_in(in, c[l])));
    else EACH_LANE(mask) to[l] = ptx_double_bits(fma(ptx_double(a[l]), ptx_double(b[l]), ptx_double(c[l])));
    ptx_round_end(in);
}

/* copysign d, a, b: the value of b with the sign of a */
void ptx_copysign(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1);
    const uint64_t sign = in->type == F64 ? 1ull << 63 : 1u << 31, all = in->type == F64 ? ~0ull : 0xffffffff;
    uint64_t *to = ptx_to(w, in, 0);
    if (in->type != F32 && in->type != F64)
        ptx_unknown(w, in);
    else
        EACH_LANE(mask) to[l] = (a[l] & sign) | (b[l] & all & ~sign);
}

/* ---- functions of one operand ---- */

static double reciprocal(double x) { return 1 / x; }
static double reciprocal_root(double x) { return 1 / sqrt(x); }

/* An approximate f32, or an exact one if no .approx is there: x is a float, and the double result of a root
 * or reciprocal rounds to the same float as the exact value, since it has more than twice the bits. Other
 * roundings than to nearest need the exact value's side. */
static void function32(ptx_warp *w, const ptx_instruction *in, uint32_t mask, double (*f)(double)) {
    const uint64_t *a = ptx_from(w, in, 0);
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask) to[l] = ptx_float_out(in, (float)f(ptx_float_in(in, a[l])));
}

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read and give the upper 32 bits of a double. */
static void function64(ptx_warp *w, const ptx_instruction *in, uint32_t mask, double (*f)(double)) {
    const uint64_t *a = ptx_from(w, in, 0), high = ~0ull << 32;
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask) {
        double x = ptx_double(a[l] & high);
        if (fabs(x) < 0x1p-1022) x = copysign(0, x);
        double y = f(x);
        if (fabs(y) < 0x1p-1022) y = copysign(0, y);
        to[l] = y != y ? 0x7fffffffull << 32 : ptx_double_bits(y) & high;
    }
}

/* sqrt and rcp with a rounding are exact. */
static void exact(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool root) {
    const uint64_t *a = ptx_from(w, in, 0);
    uint64_t *to = ptx_to(w, in, 0);
    ptx_round_begin(in);
    EACH_LANE(mask) {
        if (in->type == F32) {
            const float x = ptx_float_in(in, a[l]);
            to[l] = ptx_float_out(in, root ? sqrtf(x) : 1 / x);
        } else {
            const double x = ptx_double(a[l]);
            to[l] = ptx_double_bits(root ? sqrt(x) : 1 / x);
        }
    }
    ptx_round_end(in);
}

static void root_or_reciprocal(ptx_warp *w, const ptx_instruction *in, uint32_t mask, bool root) {
    const bool rough = in->flags & APPROX;
    if (rough && in->type == F32)
        function32(w, in, mask, root ? sqrt : reciprocal);
    else if (rough && in->type == F64 && !root && in->flags & FTZ)
        function64(w, in, mask, reciprocal);
    else if (!rough && in->rounding && (in->type == F32 || in->type == F64))
        exact(w, in, mask, root);
    else
        ptx_unknown(w, in);
}

void ptx_sqrt(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    root_or_reciprocal(w, in, mask, true);
}
void ptx_rcp(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    root_or_reciprocal(w, in, mask, false);
}

void ptx_rsqrt(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (in->flags & APPROX && in->type == F32)
        function32(w, in, mask, reciprocal_root);
    else if (in->flags & APPROX && in->type == F64)
        function64(w, in, mask, reciprocal_root);
    else
        ptx_unknown(w, in);
}

static void approximate(ptx_warp *w, const ptx_instruction *in, uint32_t mask, double (*f)(double)) {
    if (in->flags & APPROX && in->type == F32)
        function32(w, in, mask, f);
    else
        ptx_unknown(w, in);
}

void ptx_ex2(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { approximate(w, in, mask, exp2); }
void ptx_lg2(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { approximate(w, in, mask, log2); }
void ptx_sin(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { approximate(w, in, mask, sin); }
void ptx_cos(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { approximate(w, in, mask, cos); }
void ptx_tanh(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { approximate(w, in, mask, tanh); }

static bool is_of(int word, int kind) {
    enum { FINITE = 1, INFINITE, NUMBER, NOT_A_NUMBER, NORMAL, SUBNORMAL };
    switch (word) {
    case FINITE: return kind != FP_NAN && kind != FP_INFINITE;
    case INFINITE: return kind == FP_INFINITE;
    case NUMBER: return kind != FP_NAN;
    case NOT_A_NUMBER: return kind == FP_NAN;
    case NORMAL: return kind == FP_NORMAL;
    case SUBNORMAL: return kind == FP_SUBNORMAL;
    default: return false;
    }
}

void ptx_testp(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0);
    uint64_t *to = ptx_to(w, in, 0);
    if ((in->type != F32 && in->type != F64) || !in->word)
        ptx_unknown(w, in);
    else
        EACH_LANE(mask)
    to[l] = is_of(in->word, in->type == F32 ? fpclassify(ptx_float(a[l])) : fpclassify(ptx_double(a[l])));
}
