/* Complex numbers: pairs of floats, the real part first, as in C and NumPy. Their ops are recorded as ops of
 * the parts, so devices and kernels know no complex numbers. REAL and IMAG are views. COMPLEX interleaves two
 * tensors. Within a kernel they cancel out.
 *
 * Gradients are those of the parts. A real loss L has the gradient dL/dx + i dL/dy by z = x + iy. That is 2
 * dL/d(conj z) in Wirtinger's calculus, and what PyTorch defines (its notes "Autograd for Complex Numbers").
 * Its negative is the direction of steepest descent.
 *
 * Must not know: devices. Read next: complex_functions.c; pairs_of in compiler/passes/build.c. */
#include <math.h>
#include "ops/complex.h"

static weft_tensor *real(const char *where, weft_tensor *z) { return weft_real_at(where, z); }
static weft_tensor *imag(const char *where, weft_tensor *z) { return weft_imag_at(where, z); }
static weft_tensor *join(const char *where, weft_tensor *re, weft_tensor *im) {
    return weft_complex_at(where, re, im);
}

/* ---- parts ---- */

weft_tensor *weft_complex_at(const char *where, weft_tensor *re, weft_tensor *im) {
    weft_tensor *in[2] = {re, im}, *bad = weft__reject("complex", where, in, 2);
    if (bad || !re) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (re->dtype != im->dtype || (re->dtype != WEFT_F32 && re->dtype != WEFT_F64))
        return weft__poison(re->ctx, where, WEFT_ERR_DTYPE,
                            "complex: the parts are %s and %s; both must be f32, or both f64",
                            weft__tensor_text(re, a), weft__tensor_text(im, b));
    int rank;
    int64_t shape[WEFT_MAX_RANK];
    if (!weft__broadcast(re->rank, re->shape, im->rank, im->shape, &rank, shape))
        return weft__poison(re->ctx, where, WEFT_ERR_SHAPE, "complex: shapes %s and %s do not broadcast",
                            weft__tensor_text(re, a), weft__tensor_text(im, b));
    for (int i = 0; i < 2; i++) in[i] = weft__expand_to(where, in[i], rank, shape);
    if (in[0]->error || in[1]->error) return in[0]->error ? in[0] : in[1];
    return weft__node(re->ctx, where, WEFT_OP_COMPLEX, re->dtype == WEFT_F32 ? WEFT_C64 : WEFT_C128, rank,
                      shape, 2, in, 0, NULL);
}

static weft_tensor *part(const char *where, weft_op op, weft_tensor *z) {
    return weft__node(z->ctx, where, op, weft__part_dtype((weft_dtype)z->dtype), z->rank, z->shape, 1, &z, 0,
                      NULL);
}

static weft_tensor *refuse_real(const char *where, const char *op, weft_tensor *x) {
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "%s: %s is not complex", op,
                        weft__tensor_text(x, text));
}

weft_tensor *weft_real_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("real", where, &x, 1);
    if (bad || !x) return bad;
    return is_complex(x) ? part(where, WEFT_OP_REAL, x) : x;
}

weft_tensor *weft_imag_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("imag", where, &x, 1);
    if (bad || !x) return bad;
    return is_complex(x) ? part(where, WEFT_OP_IMAG, x) : refuse_real(where, "imag", x);
}

weft_tensor *weft_conj_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("conj", where, &x, 1);
    if (bad || !x) return bad;
    return is_complex(x) ? join(where, real(where, x), at_neg(imag(where, x))) : x;
}

weft_tensor *weft_angle_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("angle", where, &x, 1);
    if (bad || !x) return bad;
    if (!is_complex(x)) return refuse_real(where, "angle", x);
    return weft_atan2_at(where, imag(where, x), real(where, x));
}

weft_tensor *weft_view_as_real_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("view_as_real", where, &x, 1);
    if (bad || !x) return bad;
    int64_t shape[WEFT_MAX_RANK + 1];
    if (!is_complex(x)) return refuse_real(where, "view_as_real", x);
    if (x->rank == WEFT_MAX_RANK)
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "view_as_real: the result has one dimension more than rank %d; at most %d are allowed", x->rank,
            WEFT_MAX_RANK);
    for (int i = 0; i < x->rank; i++) shape[i] = x->shape[i];
    shape[x->rank] = 2;
    return weft__node(x->ctx, where, WEFT_OP_VIEW_AS_REAL, weft__part_dtype((weft_dtype)x->dtype),
                      x->rank + 1, shape, 1, &x, 0, NULL);
}

weft_tensor *weft_view_as_complex_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("view_as_complex", where, &x, 1);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (x->dtype != WEFT_F32 && x->dtype != WEFT_F64)
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "view_as_complex: %s must be f32 or f64",
                            weft__tensor_text(x, text));
    if (x->rank == 0 || x->shape[x->rank - 1] != 2)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "view_as_complex: the last dimension of %s must be 2",
                            weft__tensor_text(x, text));
    return weft__node(x->ctx, where, WEFT_OP_VIEW_AS_COMPLEX, x->dtype == WEFT_F32 ? WEFT_C64 : WEFT_C128,
                      x->rank - 1, x->shape, 1, &x, 0, NULL);
}

/* ---- rows of the op table ---- */

typedef weft_pair pair;

static weft_tensor *joined(const char *where, pair z) { return join(where, z.re, z.im); }
static pair parts_of(const char *where, weft_tensor *z) { return (pair){real(where, z), imag(where, z)}; }

pair weft__complex_times(const char *where, pair a, pair b) {
    return (pair){at_sub(at_mul(a.re, b.re), at_mul(a.im, b.im)),
                  at_add(at_mul(a.re, b.im), at_mul(a.im, b.re))};
}

static weft_tensor *is_infinite(const char *where, pair z) {
    return at_or(weft_isinf_at(where, z.re), weft_isinf_at(where, z.im));
}

/* A part of an infinite number: 1 or -1 if this part is infinite, else 0. Finite numbers are unchanged. */
static weft_tensor *corner(const char *where, weft_tensor *infinite, weft_tensor *x) {
    return at_where(infinite, at_where(weft_isinf_at(where, x), at_sign(x), at_zeros_like(x)), x);
}

/* A part of b divided by its larger part, which may be infinite. */
static weft_tensor *share_of(const char *where, weft_tensor *x, weft_tensor *most) {
    return at_where(weft_isinf_at(where, x), at_sign(x), at_div(x, most));
}

/* A value without a gradient, for cases in which the gradient would be 0 times infinity. */
static weft_tensor *alone(const char *where, weft_tensor *x) { return weft_detach_at(where, x); }

/* (a conj b) / |b|^2. The larger part of b is divided out first, so that no square overflows. This factor
 * cancels, so it needs no gradient. Special cases are those of C's annex G:
 *   - infinite by finite is infinite, finite by infinite is 0, whether or not the other part is NaN;
 *   - by 0, both parts of a are divided by the real part of b. */
static pair over(const char *where, pair a, pair b) {
    weft_tensor *endless = is_infinite(where, a), *under = is_infinite(where, b);
    weft_tensor *by_zero = at_and(at_eq(b.re, at_zeros_like(b.re)), at_eq(b.im, at_zeros_like(b.im))),
                *pole = weft_recip_at(where, b.re);
    const pair at_zero = {alone(where, at_mul(a.re, pole)), alone(where, at_mul(a.im, pole))};
    b.re = at_where(at_and(under, weft_isnan_at(where, b.re)), at_zeros_like(b.re), b.re);
    b.im = at_where(at_and(under, weft_isnan_at(where, b.im)), at_zeros_like(b.im), b.im);
    weft_tensor *most =
        alone(where, weft_maximum_at(where, weft_abs_at(where, b.re), weft_abs_at(where, b.im)));
    weft_tensor *re = share_of(where, b.re, most), *im = share_of(where, b.im, most),
                *size = at_add(at_mul(b.re, re), at_mul(b.im, im));
    pair up = {at_add(at_mul(a.re, re), at_mul(a.im, im)), at_sub(at_mul(a.im, re), at_mul(a.re, im))};
    weft_tensor *lost = at_and(endless, at_and(weft_isnan_at(where, up.re), weft_isnan_at(where, up.im)));
    const pair c = {corner(where, endless, a.re), corner(where, endless, a.im)};
    up.re = at_where(lost, alone(where, at_mul_scalar(at_add(at_mul(c.re, re), at_mul(c.im, im)), HUGE_VAL)),
                     up.re);
    up.im = at_where(lost, alone(where, at_mul_scalar(at_sub(at_mul(c.im, re), at_mul(c.re, im)), HUGE_VAL)),
                     up.im);
    return (pair){at_where(by_zero, at_zero.re, at_div(up.re, size)),
                  at_where(by_zero, at_zero.im, at_div(up.im, size))};
}

static weft_tensor *of_parts(const char *where, weft_op op, weft_tensor *condition, pair a, pair b) {
    weft_tensor *re[3] = {a.re, b.re}, *im[3] = {a.im, b.im};
    const int n = op == WEFT_OP_NEG ? 1 : op == WEFT_OP_WHERE ? 3 : 2;
    if (n == 3) {
        re[0] = im[0] = condition;
        re[1] = a.re, re[2] = b.re, im[1] = a.im, im[2] = b.im;
    }
    return join(where, weft__elementwise(where, op, n, re), weft__elementwise(where, op, n, im));
}

/* Functions of one complex number, by op. */
static pair (*const functions[WEFT_OP_COUNT])(const char *, pair) = {
    [WEFT_OP_EXP] = weft__complex_exp, [WEFT_OP_LOG] = weft__complex_log, [WEFT_OP_SQRT] = weft__complex_sqrt,
    [WEFT_OP_SIN] = weft__complex_sin, [WEFT_OP_COS] = weft__complex_cos, [WEFT_OP_TANH] = weft__complex_tanh,
};

bool weft__complex_takes(weft_op op) {
    switch (op) {
    case WEFT_OP_NEG:
    case WEFT_OP_RECIP:
    case WEFT_OP_ABS:
    case WEFT_OP_ISNAN:
    case WEFT_OP_ISINF:
    case WEFT_OP_ADD:
    case WEFT_OP_SUB:
    case WEFT_OP_MUL:
    case WEFT_OP_DIV:
    case WEFT_OP_POW:
    case WEFT_OP_EQ:
    case WEFT_OP_NE:
    case WEFT_OP_WHERE:
    case WEFT_OP_SUM:
    case WEFT_OP_PROD: return true;
    default: return functions[op] != NULL;
    }
}

weft_tensor *weft__complex_row(const char *where, weft_op op, int n, weft_tensor *const *in) {
    const int first = n == 3 ? 1 : 0;
    const pair a = parts_of(where, in[first]), b = n > 1 ? parts_of(where, in[n - 1]) : a;
    if (functions[op]) return joined(where, functions[op](where, a));
    switch (op) {
    case WEFT_OP_MUL: return joined(where, weft__complex_times(where, a, b));
    case WEFT_OP_DIV: return joined(where, over(where, a, b));
    case WEFT_OP_POW: return joined(where, weft__complex_pow(where, a, b));
    case WEFT_OP_RECIP:
        return joined(where, over(where, (pair){weft_full_like_at(where, a.re, 1), at_zeros_like(a.re)}, a));
    case WEFT_OP_ABS: return weft_hypot_at(where, a.re, a.im);
    case WEFT_OP_ISNAN: return weft_or_at(where, weft_isnan_at(where, a.re), weft_isnan_at(where, a.im));
    case WEFT_OP_ISINF: return weft_or_at(where, weft_isinf_at(where, a.re), weft_isinf_at(where, a.im));
    case WEFT_OP_EQ: return weft_and_at(where, at_eq(a.re, b.re), at_eq(a.im, b.im));
    case WEFT_OP_NE: return weft_or_at(where, weft_ne_at(where, a.re, b.re), weft_ne_at(where, a.im, b.im));
    default: return of_parts(where, op, in[0], a, b);
    }
}

weft_tensor *weft__complex_with_number(const char *where, weft_op op, weft_tensor *z, double value) {
    const pair a = parts_of(where, z);
    return op == WEFT_OP_ADD ? join(where, at_add_scalar(a.re, value), a.im)
                             : join(where, at_mul_scalar(a.re, value), at_mul_scalar(a.im, value));
}

/* ---- reductions ---- */

weft_tensor *weft__complex_reduce(const char *where, weft_op op, weft_tensor *z, uint32_t mask) {
    if (op == WEFT_OP_SUM)
        return join(where, weft__reduce(where, op, real(where, z), mask),
                    weft__reduce(where, op, imag(where, z), mask));
    for (int i = 0; i < z->rank && !z->error; i++)
        if (mask >> i & 1u) z = weft__product_along(where, z, i);
    return z;
}

/* ---- scans ---- */

weft_tensor *weft__complex_scan(const char *where, weft_tensor *z, int axis, bool product) {
    if (product) return weft__products_along(where, z, axis);
    return join(where, weft__scan(where, real(where, z), axis, false, false),
                weft__scan(where, imag(where, z), axis, false, false));
}

/* ---- casts ---- */

weft_tensor *weft__complex_cast(const char *where, weft_tensor *x, weft_dtype dtype) {
    const bool to = weft_dtype_is_complex(dtype);
    if (!is_complex(x)) {
        weft_tensor *re = weft_cast_at(where, x, weft__part_dtype(dtype));
        return re->error ? re : join(where, re, at_zeros_like(re));
    }
    const pair z = parts_of(where, x);
    if (to)
        return join(where, weft_cast_at(where, z.re, weft__part_dtype(dtype)),
                    weft_cast_at(where, z.im, weft__part_dtype(dtype)));
    if (dtype != WEFT_BOOL) return weft_cast_at(where, z.re, dtype);
    return weft_or_at(where, weft_cast_at(where, z.re, dtype), weft_cast_at(where, z.im, dtype));
}
