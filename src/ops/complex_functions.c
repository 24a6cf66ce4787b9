/* Functions of complex numbers, made of functions of their parts. Where a formula is not the definition, it
 * keeps precision or range: Kahan, "Branch Cuts for Complex Elementary Functions", 1987; Abramowitz and
 * Stegun, 4.3.49 to 4.5.51. Results at infinity and on the branch cuts are those of C's annex G. Gradients
 * are those of the formulas.
 * Must not know: devices. Read next: complex.c. */
#include <float.h>
#include <math.h>
#include "ops/complex.h"

typedef weft_pair pair;

static weft_tensor *complex_functions_number(const char *where, weft_tensor *like, double value) {
    return weft_full_like_at(where, like, value);
}
static weft_tensor *absolute(const char *where, weft_tensor *x) { return weft_abs_at(where, x); }
static bool is_wide(weft_tensor *x) { return weft_dtype_of(x) == WEFT_F64; }

static weft_tensor *is_nan(const char *where, weft_tensor *x) { return weft_isnan_at(where, x); }
static weft_tensor *is_inf(const char *where, weft_tensor *x) { return weft_isinf_at(where, x); }

/* A part of a direction. It is 1 where it is NaN and `known` says that the size alone decides the result. */
static weft_tensor *part_or_one(const char *where, weft_tensor *part, weft_tensor *known) {
    return at_where(at_and(is_nan(where, part), known), complex_functions_number(where, part, 1), part);
}

/* A size times a part of a direction. The product of 0 with NaN or infinity is 0 here: where the part is 0,
 * or where `vanishes` (NULL: nowhere) says that the size is 0. */
static weft_tensor *sized(const char *where, weft_tensor *size, weft_tensor *part, weft_tensor *vanishes) {
    weft_tensor *turned = at_eq(part, at_zeros_like(part)), *one = complex_functions_number(where, size, 1);
    weft_tensor *none =
        at_and(vanishes ? at_or(turned, vanishes) : turned, is_nan(where, at_mul(size, part)));
    return at_where(none, at_where(turned, part, size),
                    at_mul(at_where(none, one, size), at_where(none, one, part)));
}

/* ---- exponentials ---- */

/* e^x is 0 in every direction for x = -inf, and infinite for x = inf. The real part of the latter has no sign
 * where y has none. */
pair weft__complex_exp(const char *where, pair z) {
    weft_tensor *size = at_exp(z.re),
                *nothing = at_eq(z.re, complex_functions_number(where, z.re, -HUGE_VAL));
    return (pair){at_mul(size, part_or_one(where, at_cos(z.im), is_inf(where, z.re))),
                  sized(where, size, at_sin(z.im), nothing)};
}

/* ---- logarithms ---- */

/* log |z|. x is the larger part of z, y the smaller one. Near |z| = 1 it is log1p((x - 1) (x + 1) + y^2) / 2.
 * Elsewhere it is log x + log1p((y/x)^2) / 2, in which nothing overflows. If a part is infinite, the result
 * is infinite, even beside NaN. */
static weft_tensor *log_size(const char *where, pair z) {
    weft_tensor *turned = at_gt(absolute(where, z.im), absolute(where, z.re));
    weft_tensor *x = absolute(where, at_where(turned, z.im, z.re)), *y = at_where(turned, z.re, z.im);
    weft_tensor *near = at_and(at_gt(x, complex_functions_number(where, x, 0.5)),
                               at_lt(x, complex_functions_number(where, x, 2)));
    weft_tensor *one = complex_functions_number(where, x, 1), *near_x = at_where(near, x, one),
                *near_y = at_where(near, y, at_zeros_like(y));
    weft_tensor *square = at_mul(at_add_scalar(near_x, -1), at_add_scalar(near_x, 1));
    weft_tensor *precise = at_mul_scalar(weft_log1p_at(where, at_add(square, at_mul(near_y, near_y))), 0.5);
    weft_tensor *endless = at_or(is_inf(where, z.re), is_inf(where, z.im));
    weft_tensor *ratio = at_div(at_where(endless, at_zeros_like(y), y),
                                at_where(at_or(endless, at_eq(x, at_zeros_like(x))), one, x));
    weft_tensor *far = at_add(at_log(x), at_mul_scalar(weft_log1p_at(where, at_mul(ratio, ratio)), 0.5));
    return at_where(endless, complex_functions_number(where, x, HUGE_VAL), at_where(near, precise, far));
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
    weft_tensor *big = at_gt(larger, complex_functions_number(where, larger, most)),
                *tiny = at_lt(larger, complex_functions_number(where, larger, least));
    weft_tensor *one = complex_functions_number(where, larger, 1);
    weft_tensor *by = at_where(big, complex_functions_number(where, one, 0x1p-4),
                               at_where(tiny, complex_functions_number(where, one, 0x1p60), one));
    weft_tensor *back = at_where(big, complex_functions_number(where, one, 0x1p2),
                                 at_where(tiny, complex_functions_number(where, one, 0x1p-30), one));
    const pair z = {at_mul(given.re, by), at_mul(given.im, by)};
    weft_tensor *none = at_zeros_like(z.re), *right = weft_ge_at(where, z.re, none),
                *size = weft_hypot_at(where, z.re, z.im);
    weft_tensor *below =
        weft_or_at(where, at_lt(z.im, none), at_lt(weft_recip_at(where, z.im), none)); /* -0 too */
    weft_tensor *sign = at_where(below, complex_functions_number(where, none, -1), one);
    weft_tensor *endless = is_inf(where, z.im); /* both parts of the root are infinite */
    weft_tensor *t = weft_sqrt_at(
        where, at_add(at_mul_scalar(size, 0.5), at_mul_scalar(at_where(right, z.re, at_neg(z.re)), 0.5)));
    t = at_where(endless, size, t);
    weft_tensor *twice = at_where(at_eq(size, none), one, at_mul_scalar(t, 2));
    weft_tensor *other = at_where(endless, z.im, at_div(z.im, twice));
    return (pair){at_mul(at_where(right, t, at_mul(sign, other)), back),
                  at_mul(at_where(right, other, at_mul(sign, t)), back)};
}

/* exp(w log z). For z = 0 it is:
 *   - 1 for w = 0, z for w = 1;
 *   - 0 for other w with a positive real part;
 *   - infinite for w with a negative real part;
 *   - else NaN. */
pair weft__complex_pow(const char *where, pair z, pair w) {
    weft_tensor *none = at_and(at_eq(z.re, at_zeros_like(z.re)), at_eq(z.im, at_zeros_like(z.im)));
    weft_tensor *shown = at_add(at_zeros_like(z.re), at_zeros_like(w.re)),
                *one = complex_functions_number(where, shown, 1); /* of the shape of the result */
    pair safe = {at_where(none, complex_functions_number(where, z.re, 1), z.re),
                 at_where(none, at_zeros_like(z.im), z.im)};
    pair log = weft__complex_log(where, safe);
    pair y = weft__complex_exp(where, weft__complex_times(where, log, w));
    weft_tensor *real = at_eq(w.im, at_zeros_like(w.im)),
                *first = at_and(real, at_eq(w.re, complex_functions_number(where, w.re, 1)));
    weft_tensor *nothing = at_and(real, at_eq(w.re, at_zeros_like(w.re))),
                *grows = at_gt(w.re, at_zeros_like(w.re));
    weft_tensor *rest = at_where(grows, at_zeros_like(shown), complex_functions_number(where, shown, NAN));
    weft_tensor *pole =
        at_where(at_lt(w.re, at_zeros_like(w.re)), complex_functions_number(where, shown, HUGE_VAL), rest);
    weft_tensor *re = at_where(first, z.re, at_where(nothing, one, pole)),
                *im = at_where(first, z.im, at_where(nothing, at_zeros_like(shown), rest));
    return (pair){at_where(none, re, y.re), at_where(none, im, y.im)};
}

/* ---- circular and hyperbolic functions ---- */

/* cosh x and sinh x. e^x is computed as the product of two halves, which overflows no earlier than the
 * result. sinh of small x uses expm1. */
static pair hyperbolic(const char *where, weft_tensor *x) {
    weft_tensor *up = at_exp(at_mul_scalar(x, 0.5)), *down = at_exp(at_mul_scalar(x, -0.5));
    weft_tensor *grows = at_mul(at_mul_scalar(up, 0.5), up), *falls = at_mul(at_mul_scalar(down, 0.5), down);
    weft_tensor *small = at_lt(absolute(where, x), complex_functions_number(where, x, 1));
    weft_tensor *e = weft_expm1_at(where, at_where(small, x, at_zeros_like(x)));
    weft_tensor *precise = at_mul_scalar(at_add(e, at_div(e, at_add_scalar(e, 1))), 0.5);
    return (pair){at_add(grows, falls), at_where(small, precise, at_sub(grows, falls))};
}

pair weft__complex_sin(const char *where, pair z) {
    pair h = hyperbolic(where, z.im);
    weft_tensor *flat = at_eq(z.im, at_zeros_like(z.im)), *decided = at_or(is_inf(where, z.im), flat);
    return (pair){sized(where, h.re, at_sin(z.re), NULL),
                  at_mul(h.im, part_or_one(where, at_cos(z.re), decided))};
}

pair weft__complex_cos(const char *where, pair z) {
    pair h = hyperbolic(where, z.im);
    return (pair){at_mul(h.re, part_or_one(where, at_cos(z.re), is_inf(where, z.im))),
                  at_neg(sized(where, h.im, at_sin(z.re), at_eq(z.im, at_zeros_like(z.im))))};
}

/* (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y), in which nothing cancels. Far from 0 the real part
 * is 1 or -1, and the imaginary part is 4 sin y cos y e^-2|x|. A part that is 0 stays 0 beside NaN. */
pair weft__complex_tanh(const char *where, pair z) {
    const double border = is_wide(z.re) ? 20 : 10;
    weft_tensor *size = absolute(where, z.re),
                *far = at_gt(size, complex_functions_number(where, size, border));
    weft_tensor *endless = is_inf(where, z.re);
    pair h = hyperbolic(where, at_where(far, at_zeros_like(z.re), z.re));
    weft_tensor *c = at_cos(z.im), *turn = at_mul(at_sin(z.im), c);
    weft_tensor *under =
        at_where(far, complex_functions_number(where, size, 1), at_add(at_mul(h.im, h.im), at_mul(c, c)));
    weft_tensor *falls = at_mul_scalar(at_exp(at_mul_scalar(size, -2)), 4);
    weft_tensor *side = at_where(at_and(is_nan(where, c), weft_not_at(where, endless)), c, at_sign(z.re));
    weft_tensor *re = at_where(far, side, at_div(at_mul(h.im, h.re), under)),
                *im = at_where(far, at_mul(turn, falls), at_div(turn, under));
    weft_tensor *still = at_and(at_eq(z.re, at_zeros_like(z.re)), is_nan(where, re)),
                *level = at_and(at_eq(z.im, at_zeros_like(z.im)), is_nan(where, im));
    weft_tensor *limit = at_mul(at_zeros_like(size), at_sign(part_or_one(where, turn, endless)));
    return (pair){at_where(still, z.re, re), at_where(endless, limit, at_where(level, z.im, im))};
}
