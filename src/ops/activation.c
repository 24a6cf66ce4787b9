/* Activations made of table ops. If a branch could overflow, its operand is replaced before the function, not
 * its result after the function. The gradient of the branch that is not taken must stay finite, since 0 * inf
 * would make it NaN.
 * Must not know: layers, devices. Read next: composite.h. */
#include "ops/composite.h"

weft_tensor *weft_silu_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("silu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, mul(a, weft_sigmoid_at(where, a)), weft_dtype_of(x));
}

weft_tensor *weft_leaky_relu_at(const char *where, weft_tensor *x, double slope) {
    weft_tensor *bad = reject_float("leaky_relu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, select(gt(a, zero(a)), a, mulc(a, slope)), weft_dtype_of(x));
}

/* max(x, 0) + log1p(exp(-|x|)). Choices replace max and abs, since both have gradient 0 at 0, where softplus
 * has 1/2. */
weft_tensor *weft_softplus_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("softplus", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x), *positive = gt(a, zero(a));
    weft_tensor *tail = weft_log1p_at(where, expo(select(positive, neg(a), a)));
    return as_dtype(where, add(select(positive, a, zero(a)), tail), weft_dtype_of(x));
}

weft_tensor *weft_softsign_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = reject_float("softsign", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    return as_dtype(where, divi(a, addc(weft_abs_at(where, a), 1.0)), weft_dtype_of(x));
}

weft_tensor *weft_elu_at(const char *where, weft_tensor *x, double alpha) {
    weft_tensor *bad = reject_float("elu", where, x);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x), *negative = le(a, zero(a));
    weft_tensor *low = mulc(weft_expm1_at(where, select(negative, a, zero(a))), alpha);
    return as_dtype(where, select(negative, low, a), weft_dtype_of(x));
}
