/* Activations made of table ops. If a branch could overflow, its operand is replaced before the function, not
 * its result after the function. The gradient of the branch that is not taken must stay finite, since 0 * inf
 * would make it NaN.
 * Must not know: layers, devices. Read next: composite.h. */
#include "ops/composite.h"

weft_tensor *weft_silu_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("silu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, at_mul(a, weft_sigmoid_at(where, a)), weft_dtype_of(x));
}

weft_tensor *weft_leaky_relu_at(const char *where, weft_tensor *x, double slope) {
    weft_tensor *bad = reject_float("leaky_relu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, at_where(at_gt(a, at_zeros_like(a)), a, at_mul_scalar(a, slope)),
                    weft_dtype_of(x));
}

/* max(x, 0) + log1p(exp(-|x|)). Choices replace max and abs, since both have gradient 0 at 0, where softplus
 * has 1/2. */
weft_tensor *weft_softplus_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("softplus", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x), *positive = at_gt(a, at_zeros_like(a));
    weft_tensor *tail = weft_log1p_at(where, at_exp(at_where(positive, at_neg(a), a)));
    return as_dtype(where, at_add(at_where(positive, a, at_zeros_like(a)), tail), weft_dtype_of(x));
}

weft_tensor *weft_softsign_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("softsign", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, at_div(a, at_add_scalar(weft_abs_at(where, a), 1.0)), weft_dtype_of(x));
}

weft_tensor *weft_elu_at(const char *where, weft_tensor *x, double alpha) {
    weft_tensor *bad = reject_float("elu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x), *negative = at_le(a, at_zeros_like(a));
    weft_tensor *low = at_mul_scalar(weft_expm1_at(where, at_where(negative, a, at_zeros_like(a))), alpha);
    return as_dtype(where, at_where(negative, low, a), weft_dtype_of(x));
}
