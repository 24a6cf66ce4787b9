/* Batch normalisation: each channel is normalised by its mean and variance over all other dimensions. Nodes
 * are recorded with the channels last, as convolutions store them, so that every pass reads memory in order.
 * Statistics take two passes (mean first): a single pass loses all digits if the mean is large.
 * Must not know: running statistics, which belong to the layer (nn/batchnorm.c). Read next: norm.c. */
#include "base/option.h"
#include "ops/composite.h"
#include "ops/ops.h"

/* x (N, C, ...) as rows (R, C). */
static weft_tensor *rows_of(const char *where, weft_tensor *x) {
    int order[WEFT_MAX_RANK] = {0};
    const int64_t channels = x->shape[1], rows = channels ? x->numel / channels : 0;
    for (int i = 1; i < x->rank; i++) order[i] = i < x->rank - 1 ? i + 1 : 1;
    x = weft_permute_at(where, x, order);
    return weft__poisoned(x) ? x : weft_reshape_at(where, x, 2, (int64_t[]){rows, channels});
}

/* Rows (R, C) back to the shape of `like`. */
static weft_tensor *from_rows(const char *where, weft_tensor *y, const weft_tensor *like) {
    int64_t shape[WEFT_MAX_RANK] = {like->shape[0]};
    int order[WEFT_MAX_RANK] = {0};
    for (int i = 1; i < like->rank; i++) {
        shape[i] = like->shape[i < like->rank - 1 ? i + 1 : 1];
        order[i] = i == 1 ? like->rank - 1 : i - 1;
    }
    y = weft_reshape_at(where, y, like->rank, shape);
    return weft__poisoned(y) ? y : weft_permute_at(where, y, order);
}

static weft_tensor *reject_input(const char *where, weft_tensor *x, bool alone) {
    weft_tensor *bad = reject_float("batch_norm", where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (x->rank < 2)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "batch_norm: x %s must be (N, C, ...)",
                            weft__tensor_text(x, text));
    if (alone || x->numel > x->shape[1]) return NULL;
    return weft__poison(
        x->ctx, where, WEFT_ERR_SHAPE,
        "batch_norm: x %s must have at least two values in each channel, or there is no variance",
        weft__tensor_text(x, text));
}

/* NULL if v is a vector with one element a channel of x, or NULL; else a poisoned tensor. */
static weft_tensor *reject_vector(const char *where, weft_tensor *x, const char *what, weft_tensor *v) {
    weft_tensor *bad = v ? weft__reject("batch_norm", where, (weft_tensor *[]){x, v}, 2) : NULL;
    if (bad || !v || (v->rank == 1 && v->shape[0] == x->shape[1])) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                        "batch_norm: %s %s must be a vector with one element for each channel of %s", what,
                        weft__tensor_text(v, a), weft__tensor_text(x, b));
}

/* ---- variance and scaling, as composites whose gradients need fewer passes than derived ones ---- */

static void variance_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                           int *rank, int64_t *dims) {
    (void)params, (void)output;
    *dtype = (weft_dtype)in[1]->dtype;
    *rank = 1;
    dims[0] = in[1]->shape[0];
}

/* The variance of rows in[0] (R, C) with mean in[1] (C). */
static void variance_expand(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    (void)params;
    weft_tensor *d = at_sub(in[0], in[1]);
    out[0] = weft_mean_at(where, at_mul(d, d), 0, false);
}

/* The gradient by the mean is a sum of all d, which is 0 for any rows, and so are its own gradients. Leaving
 * it out saves a pass over the rows. */
static void variance_backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    weft_tensor *const *in = whole->in;
    grads[0] = at_mul(at_sub(in[0], in[1]), at_mul_scalar(g, 2.0 / (double)in[0]->shape[0]));
}

static const weft_composite variance_of_rows = {.name = "variance",
                                                .kind = -1, /* no device takes it */
                                                .n_inputs = 2,
                                                .n_outputs = 1,
                                                .shape = variance_shape,
                                                .expand = variance_expand,
                                                .backward = variance_backward};

static void scaled_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                         int64_t *dims) {
    (void)params, (void)output;
    *dtype = (weft_dtype)in[0]->dtype;
    *rank = 2;
    dims[0] = in[0]->shape[0], dims[1] = in[0]->shape[1];
}

/* (rows - mean) * factor: rows (R, C), mean (C), factor (C). */
static void scaled_expand(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    (void)where, (void)params;
    out[0] = at_mul(at_sub(in[0], in[1]), in[2]);
}

/* The gradient of the mean needs the sum of g, which is also the gradient of beta. One pass over the rows
 * gives both sums. */
static void scaled_backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    weft_tensor *const *in = whole->in;
    grads[0] = at_mul(g, in[2]);
    grads[1] = at_neg(at_mul(weft_sum_at(where, g, 0, false), in[2]));
    grads[2] = weft_sum_at(where, at_mul(g, at_sub(in[0], in[1])), 0, false);
}

static const weft_composite scaled_rows = {.name = "scale",
                                           .kind = -1,
                                           .n_inputs = 3,
                                           .n_outputs = 1,
                                           .shape = scaled_shape,
                                           .expand = scaled_expand,
                                           .backward = scaled_backward};

weft_tensor *weft__batch_moments(const char *where, weft_tensor *x, weft_tensor **mean,
                                 weft_tensor **variance) {
    weft_tensor *bad = reject_input(where, x, false);
    if (bad || !x) return bad;
    weft_tensor *a = rows_of(where, widen(where, x));
    *mean = weft_mean_at(where, a, 0, false);
    if (weft__poisoned(*mean)) return *mean;
    weft__composite(where, &variance_of_rows, NULL, (weft_tensor *[]){a, *mean}, variance);
    return NULL;
}

/* The variance of the rows about a mean that is not theirs has no gradient by the mean in one process. Over
 * all processes it has none either, since the deviations from the common mean add up to 0. */
weft_tensor *weft__shared_moments(const char *where, weft_tensor *x, weft_tensor **mean,
                                  weft_tensor **variance, weft_tensor **count) {
    static const weft_attr_exchange attr = {.exact = 1};
    weft_tensor *bad = reject_input(where, x, true);
    if (bad || !x) return bad;
    weft_tensor *a = rows_of(where, widen(where, x)), *own;
    if (weft__poisoned(a)) return a;
    const int64_t rows = a->shape[0], channels = a->shape[1], one = 1;
    weft_tensor *sums[2] = {weft_sum_at(where, a, 0, false),
                            weft_full(x->ctx, (weft_dtype)a->dtype, 1, &one, (double)rows)};
    weft_tensor *all = weft__exchange(where, weft_concat_at(where, sums, 2, 0), &attr);
    *count = weft_narrow_at(where, all, 0, channels, 1);
    *mean = at_div(weft_narrow_at(where, all, 0, 0, channels), *count);
    if (weft__poisoned(*mean)) return *mean;
    weft__composite(where, &variance_of_rows, NULL, (weft_tensor *[]){a, *mean}, &own);
    *variance = at_div(weft__exchange(where, at_mul_scalar(own, (double)rows), &attr), *count);
    return weft__poisoned(*variance) ? *variance : NULL;
}

weft_tensor *weft_batch_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta,
                                const weft_batch_norm_options *options) {
    const weft_batch_norm_options o = options ? *options : (weft_batch_norm_options){.eps = 0};
    weft_tensor *mean = o.mean, *variance = o.variance, *bad = reject_input(where, x, mean || variance);
    if (bad || !x) return bad;
    if (!(o.eps >= 0.0) || !mean != !variance)
        return weft__poison(
            x->ctx, where, WEFT_ERR_ARGUMENT,
            "batch_norm: eps %g must not be negative, and mean and variance must be given together", o.eps);
    if (!(bad = reject_vector(where, x, "mean", mean)) &&
        !(bad = reject_vector(where, x, "variance", variance)) &&
        !(bad = reject_vector(where, x, "gamma", gamma)))
        bad = reject_vector(where, x, "beta", beta);
    if (!bad && !mean) bad = weft__batch_moments(where, x, &mean, &variance);
    if (bad) return bad;
    weft_tensor *rows = rows_of(where, widen(where, x)), *y;
    weft_tensor *factor =
        weft_rsqrt_at(where, at_add_scalar(widen(where, variance), weft__value_or(o.eps, 1e-5)));
    if (gamma) factor = at_mul(factor, widen(where, gamma)); /* a channel at a time */
    weft__composite(where, &scaled_rows, NULL, (weft_tensor *[]){rows, widen(where, mean), factor}, &y);
    if (beta) y = at_add(y, widen(where, beta));
    y = as_dtype(where, y, (weft_dtype)x->dtype);
    return weft__poisoned(y) ? y : from_rows(where, y, x);
}
