/* Normalisation over the last dimension, or over groups of channels; each is one row kernel. The variance
 * takes two passes over the row (mean first): a single pass loses all digits if the mean is large.
 * Must not know: layers. Read next: batch_norm.c. */
#include "ops/composite.h"

/* NULL if `p` is a vector as long as the last dimension of x, or NULL; else a poisoned tensor. */
static weft_tensor *reject_vector(const char *name, const char *what, const char *where, weft_tensor *x,
                                  weft_tensor *p) {
    if (!p) return NULL;
    weft_tensor *bad = weft__reject(name, where, (weft_tensor *[]){x, p}, 2);
    if (bad) return bad;
    if (p->rank == 1 && p->shape[0] == x->shape[x->rank - 1]) return NULL;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                        "%s: %s %s must be a vector as long as the last dimension of %s", name, what,
                        weft__tensor_text(p, a), weft__tensor_text(x, b));
}

static weft_tensor *reject_norm(const char *name, const char *where, weft_tensor *x, weft_tensor *gamma,
                                weft_tensor *beta, double eps) {
    weft_tensor *bad = reject_float(name, where, x);
    if (bad || !x) return bad;
    if (x->rank < 1)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: a scalar has no last dimension", name);
    if (!(eps >= 0.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: eps %g must not be negative", name, eps);
    bad = reject_vector(name, "gamma", where, x, gamma);
    return bad ? bad : reject_vector(name, "beta", where, x, beta);
}

/* normal * gamma + beta, in the dtype of x. gamma and beta may be NULL. */
static weft_tensor *scale_shift(const char *where, weft_tensor *x, weft_tensor *normal, weft_tensor *gamma,
                                weft_tensor *beta) {
    if (gamma) normal = at_mul(normal, widen(where, gamma));
    if (beta) normal = at_add(normal, widen(where, beta));
    return as_dtype(where, normal, weft_dtype_of(x));
}

weft_tensor *weft_layer_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta,
                                double eps) {
    weft_tensor *bad = reject_norm("layer_norm", where, x, gamma, beta, eps);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    weft_tensor *d = at_sub(a, weft_mean_at(where, a, -1, true));
    weft_tensor *variance = weft_mean_at(where, at_mul(d, d), -1, true);
    return scale_shift(where, x, at_mul(d, weft_rsqrt_at(where, at_add_scalar(variance, eps))), gamma, beta);
}

weft_tensor *weft_rms_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, double eps) {
    weft_tensor *bad = reject_norm("rms_norm", where, x, gamma, NULL, eps);
    if (bad || !x) return bad;
    weft_tensor *a = widen(where, x);
    weft_tensor *square = weft_mean_at(where, at_mul(a, a), -1, true);
    return scale_shift(where, x, at_mul(a, weft_rsqrt_at(where, at_add_scalar(square, eps))), gamma, NULL);
}

static weft_tensor *norm_groups(const char *name, const char *where, weft_tensor *x, int64_t groups,
                                weft_tensor *gamma, weft_tensor *beta, double eps) {
    weft_tensor *bad;
    char text[WEFT_SHAPE_TEXT];
    if (!(eps >= 0.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: eps %g must not be negative", name, eps);
    const int64_t channels = x->shape[1];
    weft_tensor *given[2] = {gamma, beta};
    for (int i = 0; i < 2; i++) {
        bad = given[i] ? weft__reject(name, where, (weft_tensor *[]){x, given[i]}, 2) : NULL;
        if (bad) return bad;
        if (given[i] && (given[i]->rank != 1 || given[i]->shape[0] != channels))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: %s %s must be a vector of %lld", name,
                                i ? "beta" : "gamma", weft__tensor_text(given[i], text), (long long)channels);
    }
    int64_t rows[3] = {x->shape[0], groups, channels / groups}, column[WEFT_MAX_RANK] = {channels};
    for (int i = 2; i < x->rank; i++) rows[2] *= x->shape[i], column[i - 1] = 1;
    weft_tensor *a = weft_reshape_at(where, widen(where, x), 3, rows);
    weft_tensor *d = at_sub(a, weft_mean_at(where, a, -1, true));
    weft_tensor *variance = weft_mean_at(where, at_mul(d, d), -1, true);
    weft_tensor *normal = at_mul(d, weft_rsqrt_at(where, at_add_scalar(variance, eps)));
    for (int i = 0; i < 2; i++)
        if (given[i]) given[i] = weft_reshape_at(where, given[i], x->rank - 1, column);
    return scale_shift(where, x, weft_reshape_at(where, normal, x->rank, x->shape), given[0], given[1]);
}

weft_tensor *weft_group_norm_at(const char *where, weft_tensor *x, int64_t groups, weft_tensor *gamma,
                                weft_tensor *beta, double eps) {
    weft_tensor *bad = reject_float("group_norm", where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (x->rank < 2 || groups < 1 || x->shape[1] % groups)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "group_norm: x %s must be (N, C, ...), with C a multiple of %lld groups",
                            weft__tensor_text(x, text), (long long)groups);
    return norm_groups("group_norm", where, x, groups, gamma, beta, eps);
}

weft_tensor *weft_instance_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta,
                                   double eps) {
    weft_tensor *bad = reject_float("instance_norm", where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (x->rank < 3 || x->shape[1] < 1)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "instance_norm: x %s must be (N, C, ...) with at least 3 dimensions",
                            weft__tensor_text(x, text));
    return norm_groups("instance_norm", where, x, x->shape[1], gamma, beta, eps);
}
