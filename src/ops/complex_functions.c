/* Functions of complex numbers, made of functions of their parts. Where a formula is not the definition, it
 * keeps precision or range: Kahan, "Branch Cuts for Complex Elementary Functions", 1987; Abramowitz and
 * Stegun, 4.3.49 to 4.5.51. Results at infinity and on the branch cuts are those of C's annex G. Gradients
 * are those of the formulas.
 * Must not know: devices. Read next: complex.c. */
#include <float.h>
#include <math.h>
#include "ops/complex.h"

typedef weft_pair pair;

static weft_tensor *number(const char *where, weft_tensor *like, double value) {
    return weft_full_like_at(where, like, value);
}
static weft_tensor *absolute(const char *where, weft_tensor *x) { return weft_abs_at(where, x); }
static bool is_wide(weft_tensor *x) { return weft_dtype_of(x) == WEFT_F64; }

static weft_tensor *is_nan(const char *where, weft_tensor *x) { return weft_isnan_at(where, x); }
static weft_tensor *is_inf(const char *where, weft_tensor *x) { return weft_isinf_at(where, x); }

/* A part of a direction. It is 1 where it is NaN and `known` says that the size alone decides the result. */
static weft_tensor *part_or_one(const char *where, weft_tensor *part, weft_tensor *known) {
    return select(both(is_nan(where, part), known), number(where, part, 1), part);
}

/* A size times a part of a direction. The product of 0 with NaN or infinity is 0 here: where the part is 0,
 * or where `vanishes` (NULL: nowhere) says that the size is 0. */
static weft_tensor *sized(const char *where, weft_tensor *size, weft_tensor *part, weft_tensor *vanishes) {
    weft_tensor *turned = eq(part, zero(part)), *one = number(where, size, 1);
    weft_tensor *none = both(vanishes ? either(turned, vanishes) : turned, is_nan(where, mul(size, part)));
    return select(none, select(turned, part, size), mul(select(none, one, size), select(none, one, part)));
}

/* ---- exponentials ---- */

/* e^x is 0 in every direction for x = -inf, and infinite for x = inf. The real part of the latter has no sign
 * where y has none. */
pair weft__complex_exp(const char *where, pair z) {
    weft_tensor *size = expo(z.re), *nothing = eq(z.re, number(where, z.re, -HUGE_VAL));
    return (pair){mul(size, part_or_one(where, cosine(z.im), is_inf(where, z.re))),
                  sized(where, size, sine(z.im), nothing)};
}

/* ---- logarithms ---- */

/* log |z|. x is the larger part of z, y the smaller one. Near |z| = 1 it is log1p((x - 1) (x + 1) + y^2) / 2.
 * Elsewhere it is log x + log1p((y/x)^2) / 2, in which nothing overflows. If a part is infinite, the result
 * is infinite, even beside NaN. */
static weft_tensor *log_size(const char *where, pair z) {
    weft_tensor *turned = gt(absolute(where, z.im), absolute(where, z.re));
    weft_tensor *x = absolute(where, select(turned, z.im, z.re)), *y = select(turned, z.re, z.im);
    weft_tensor *near = both(gt(x, number(where, x, 0.5)), lt(x, number(where, x, 2)));
    weft_tensor *one = number(where, x, 1), *near_x = select(near, x, one),
                *near_y = select(near, y, zero(y));
    weft_tensor *square = mul(addc(near_x, -1), addc(near_x, 1));
    weft_tensor *precise = mulc(weft_log1p_at(where, add(square, mul(near_y, near_y))), 0.5);
    weft_tensor *endless = either(is_inf(where, z.re), is_inf(where, z.im));
    weft_tensor *ratio = divi(select(endless, zero(y), y), select(either(endless, eq(x, zero(x))), one, x));
    weft_tensor *far = add(logn(x), mulc(weft_log1p_at(where, mul(ratio, ratio)), 0.5));
    return select(endless, number(where, x, HUGE_VAL), select(near, precise, far));
}

pair weft__complex_log(const char *where, pair z) {
    return (pair){log_size(where, z), weft_atan2_at(where, z.im, z.re)};
}

/* ---- powers ---- */

/* The root with a real part of at least 0. Where that is 0, the root has the sign of z's imaginary part. t is
 * the part of the root that is larger in z's half of the plane; the other part is |im z| / 2t. Numbers whose
 * size would overflow, or lose bits below the smallest number, are first multiplied by a power of 4. */
pair weft__complex_sqrt(const char *where, pair given) {
    const double most = is_wide(given.re) ? DBL_MAX / 4 : (double)FLT_MAX / 4,
                 least = is_wide(given.re) ? DBL_MIN * 0x1p54 : (double)FLT_MIN * 0x1p26;
    weft_tensor *larger = weft_maximum_at(where, absolute(where, given.re), absolute(where, given.im));
    weft_tensor *big = gt(larger, number(where, larger, most)),
                *tiny = lt(larger, number(where, larger, least));
    weft_tensor *one = number(where, larger, 1);
    weft_tensor *by = select(big, number(where, one, 0x1p-4), select(tiny, number(where, one, 0x1p60), one));
    weft_tensor *back =
        select(big, number(where, one, 0x1p2), select(tiny, number(where, one, 0x1p-30), one));
    const pair z = {mul(given.re, by), mul(given.im, by)};
    weft_tensor *none = zero(z.re), *right = weft_ge_at(where, z.re, none),
                *size = weft_hypot_at(where, z.re, z.im);
    weft_tensor *below = weft_or_at(where, lt(z.im, none), lt(weft_recip_at(where, z.im), none)); /* -0 too */
    weft_tensor *sign = select(below, number(where, none, -1), one);
    weft_tensor *endless = is_inf(where, z.im); /* both parts of the root are infinite */
    weft_tensor *t = weft_sqrt_at(where, add(mulc(size, 0.5), mulc(select(right, z.re, neg(z.re)), 0.5)));
    t = select(endless, size, t);
    weft_tensor *twice = select(eq(size, none), one, mulc(t, 2));
    weft_tensor *other = select(endless, z.im, divi(z.im, twice));
    return (pair){mul(select(right, t, mul(sign, other)), back),
                  mul(select(right, other, mul(sign, t)), back)};
}

/* exp(w log z). For z = 0 it is:
 *   - 1 for w = 0, z for w = 1;
 *   - 0 for other w with a positive real part;
 *   - infinite for w with a negative real part;
 *   - else NaN. */
pair weft__complex_pow(const char *where, pair z, pair w) {
    weft_tensor *none = both(eq(z.re, zero(z.re)), eq(z.im, zero(z.im)));
    weft_tensor *shown = add(zero(z.re), zero(w.re)),
                *one = number(where, shown, 1); /* of the shape of the result */
    pair safe = {select(none, number(where, z.re, 1), z.re), select(none, zero(z.im), z.im)};
    pair log = weft__complex_log(where, safe);
    pair y = weft__complex_exp(where, weft__complex_times(where, log, w));
    weft_tensor *real = eq(w.im, zero(w.im)), *first = both(real, eq(w.re, number(where, w.re, 1)));
    weft_tensor *nothing = both(real, eq(w.re, zero(w.re))), *grows = gt(w.re, zero(w.re));
    weft_tensor *rest = select(grows, zero(shown), number(where, shown, NAN));
    weft_tensor *pole = select(lt(w.re, zero(w.re)), number(where, shown, HUGE_VAL), rest);
    weft_tensor *re = select(first, z.re, select(nothing, one, pole)),
                *im = select(first, z.im, select(nothing, zero(shown), rest));
    return (pair){select(none, re, y.re), select(none, im, y.im)};
}

/* ---- circular and hyperbolic functions ---- */

/* cosh x and sinh x. e^x is computed as the product of two halves, which overflows no earlier than the
 * result. sinh of small x uses expm1. */
static pair hyperbolic(const char *where, weft_tensor *x) {
    weft_tensor *up = expo(mulc(x, 0.5)), *down = expo(mulc(x, -0.5));
    weft_tensor *grows = mul(mulc(up, 0.5), up), *falls = mul(mulc(down, 0.5), down);
    weft_tensor *small = lt(absolute(where, x), number(where, x, 1));
    weft_tensor *e = weft_expm1_at(where, select(small, x, zero(x)));
    weft_tensor *precise = mulc(add(e, divi(e, addc(e, 1))), 0.5);
    return (pair){add(grows, falls), select(small, precise, sub(grows, falls))};
}

pair weft__complex_sin(const char *where, pair z) {
    pair h = hyperbolic(where, z.im);
    weft_tensor *flat = eq(z.im, zero(z.im)), *decided = either(is_inf(where, z.im), flat);
    return (pair){sized(where, h.re, sine(z.re), NULL), mul(h.im, part_or_one(where, cosine(z.re), decided))};
}

pair weft__complex_cos(const char *where, pair z) {
    pair h = hyperbolic(where, z.im);
    return (pair){mul(h.re, part_or_one(where, cosine(z.re), is_inf(where, z.im))),
                  neg(sized(where, h.im, sine(z.re), eq(z.im, zero(z.im))))};
}

/* (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y), in which nothing cancels. Far from 0 the real part
 * is 1 or -1, and the imaginary part is 4 sin y cos y e^-2|x|. A part that is 0 stays 0 beside NaN. */
pair weft__complex_tanh(const char *where, pair z) {
    const double border = is_wide(z.re) ? 20 : 10;
    weft_tensor *size = absolute(where, z.re), *far = gt(size, number(where, size, border));
    weft_tensor *endless = is_inf(where, z.re);
    pair h = hyperbolic(where, select(far, zero(z.re), z.re));
    weft_tensor *c = cosine(z.im), *turn = mul(sine(z.im), c);
    weft_tensor *under = select(far, number(where, size, 1), add(mul(h.im, h.im), mul(c, c)));
    weft_tensor *falls = mulc(expo(mulc(size, -2)), 4);
    weft_tensor *side = select(both(is_nan(where, c), weft_not_at(where, endless)), c, sgn(z.re));
    weft_tensor *re = select(far, side, divi(mul(h.im, h.re), under)),
                *im = select(far, mul(turn, falls), divi(turn, under));
    weft_tensor *still = both(eq(z.re, zero(z.re)), is_nan(where, re)),
                *level = both(eq(z.im, zero(z.im)), is_nan(where, im));
    weft_tensor *limit = mul(zero(size), sgn(part_or_one(where, turn, endless)));
    return (pair){select(still, z.re, re), select(endless, limit, select(level, z.im, im))};
}
