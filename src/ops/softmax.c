/* Softmax and its logarithms. They subtract the row's maximum, so that exp never overflows. The maximum
 * cancels out, so it is a constant for the gradient. A row of only -inf has maximum -inf and sum 0. Both are
 * replaced, so that neither the value nor the gradient becomes NaN. Each function is one row kernel.
 * Must not know: attention, losses. Read next: attention.c, loss.c. */
#include "ops/composite.h"

/* The maximum along axis, or 0 where it is -inf. No gradient flows through it. */
static weft_tensor *shift_of(const char *where, weft_tensor *x, int axis) {
    weft_tensor *m = weft_detach_at(where, weft_max_at(where, x, axis, true));
    return at_where(at_eq(m, weft_full_like_at(where, m, -INFINITY)), at_zeros_like(m), m);
}

/* s, or 1 where s is 0. */
static weft_tensor *not_zero(const char *where, weft_tensor *s) {
    return at_where(at_eq(s, at_zeros_like(s)), weft_full_like_at(where, s, 1.0), s);
}

/* NULL if the axis exists, else a poisoned tensor. *empty: the reduced extent is 0, so there is no
 * maximum. */
static weft_tensor *reject_axis(const char *name, const char *where, weft_tensor *x, int axis, bool *empty) {
    weft_tensor *bad = reject_float(name, where, x);
    int at = 0;
    *empty = false;
    if (bad || !x) return bad;
    if (axis == WEFT_ALL_AXES) {
        *empty = x->numel == 0;
        return NULL;
    }
    if (weft__axis(axis, x->rank, &at)) {
        *empty = x->shape[at] == 0;
        return NULL;
    }
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: %s has no axis %d", name,
                        weft__tensor_text(x, text), axis);
}

weft_tensor *weft_softmax_at(const char *where, weft_tensor *x, int axis) {
    bool empty;
    weft_tensor *bad = reject_axis("softmax", where, x, axis, &empty);
    if (bad || !x || empty) return bad ? bad : x;
    weft_tensor *wide = widen(where, x);
    weft_tensor *e = at_exp(at_sub(wide, shift_of(where, wide, axis)));
    weft_tensor *s = not_zero(where, weft_sum_at(where, e, axis, true));
    return as_dtype(where, at_mul(e, weft_recip_at(where, s)), weft_dtype_of(x));
}

weft_tensor *weft_log_softmax_at(const char *where, weft_tensor *x, int axis) {
    bool empty;
    weft_tensor *bad = reject_axis("log_softmax", where, x, axis, &empty);
    if (bad || !x || empty) return bad ? bad : x;
    weft_tensor *wide = widen(where, x);
    weft_tensor *z = at_sub(wide, shift_of(where, wide, axis));
    weft_tensor *s = not_zero(where, weft_sum_at(where, at_exp(z), axis, true));
    return as_dtype(where, at_sub(z, at_log(s)), weft_dtype_of(x));
}

weft_tensor *weft_logsumexp_at(const char *where, weft_tensor *x, int axis, bool keep) {
    bool empty;
    weft_tensor *bad = reject_axis("logsumexp", where, x, axis, &empty);
    if (bad || !x) return bad;
    weft_tensor *wide = widen(where, x);
    if (empty) { /* the logarithm of a sum over nothing */
        weft_tensor *s = weft_sum_at(where, wide, axis, keep);
        return as_dtype(where, weft_full_like_at(where, s, -INFINITY), weft_dtype_of(x));
    }
    weft_tensor *m = weft_detach_at(where, weft_max_at(where, wide, axis, true));
    m = at_where(weft_isinf_at(where, m), at_zeros_like(m), m); /* a row with inf gives inf, by exp */
    weft_tensor *s = weft_sum_at(where, at_exp(at_sub(wide, m)), axis, true);
    weft_tensor *y = at_add(m, at_log(not_zero(where, s)));
    y = at_where(at_eq(s, at_zeros_like(s)), weft_full_like_at(where, y, -INFINITY), y);
    if (!keep && axis == WEFT_ALL_AXES)
        y = weft_reshape_at(where, y, 0, NULL);
    else if (!keep)
        y = weft_squeeze_at(where, y, axis);
    return as_dtype(where, y, weft_dtype_of(x));
}
