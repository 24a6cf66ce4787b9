/* Pooling over windows. Large windows are pooled one dimension after the other. The order of dimensions keeps
 * the first of equal elements: the first largest element of an image is the first of its row, in the first
 * such row. A maximum is recorded as the sum of its window in which all elements but the first largest are 0.
 * So its gradient is this choice.
 * Must not know: convolution. Read next: window.c, max_pool.c. */
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

typedef struct pool {
    int64_t size, stride, padding, dilation;
    bool exclude;
} pool;

static weft_tensor *take_options(const char *name, const char *where, weft_tensor *x, int dims,
                                 const weft_pool_options *options, pool *p) {
    weft_tensor *bad = reject_float(name, where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (!options) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: the options are NULL", name);
    if (x->rank < dims || x->rank == WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: x %s must have %d to %d dimensions", name,
                            weft__tensor_text(x, text), dims, WEFT_MAX_RANK - 1);
    for (int i = 0; i < dims; i++) {
        const weft_pool_options *o = options;
        p[i] = (pool){o->size[i], o->stride[i] ? o->stride[i] : o->size[i], o->padding[i],
                      o->dilation[i] ? o->dilation[i] : 1, o->exclude_padding};
        if (p[i].size < 1 || p[i].padding < 0 || p[i].padding > p[i].size / 2)
            return weft__poison(
                x->ctx, where, WEFT_ERR_ARGUMENT,
                "%s: size %lld must be positive, and padding %lld must be 0 to half of the size", name,
                (long long)p[i].size, (long long)p[i].padding);
    }
    return NULL;
}

/* The windows of dimension dim. `outside` is the value of the padding. */
static weft_tensor *windows(const char *where, weft_tensor *x, int dim, const pool *p, double outside) {
    int64_t around[WEFT_MAX_RANK] = {0};
    if (weft__poisoned(x)) return x;
    around[dim] = p->padding;
    return weft_unfold_at(where, weft_pad_at(where, x, around, around, outside), dim, p->size, p->stride,
                          p->dilation);
}

weft_tensor *weft__first_largest(const char *where, weft_tensor *w, int dim) {
    if (weft__poisoned(w)) return w;
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < w->rank; i++) shape[i] = i == dim ? w->shape[i] : 1;
    weft_tensor *place = weft_iota(w->ctx, WEFT_I32, 1, &shape[dim]);
    if (dim < w->rank - 1) place = weft_reshape_at(where, place, w->rank - dim, shape + dim);
    weft_tensor *chosen = at_eq(place, weft_argmax_at(where, w, dim, true));
    return weft_sum_at(where, at_where(chosen, w, at_zeros_like(w)), dim, false);
}

static weft_tensor *largest(const char *where, weft_tensor *x, int dim, const pool *p) {
    weft_tensor *w = windows(where, x, dim, p, -HUGE_VAL);
    return weft__poisoned(w) ? w : weft__first_largest(where, w, w->rank - 1);
}

/* The sums of windows. With `exclude`, each is divided by the number of its elements that are not padding. */
static weft_tensor *total(const char *where, weft_tensor *x, int dim, const pool *p) {
    weft_tensor *sum = weft_sum_at(where, windows(where, x, dim, p, 0), -1, false);
    if (!p->exclude || weft__poisoned(sum)) return sum;
    weft_tensor *one = weft__constant(x->ctx, where, (weft_dtype)x->dtype, 1, &x->shape[dim], 1, 1);
    weft_tensor *count = weft_sum_at(where, windows(where, one, 0, p, 0), -1, false);
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = i == dim ? sum->shape[dim] : 1;
    return weft__poisoned(count) ? count : at_div(sum, weft__reshape_to(where, count, x->rank, shape));
}

static weft_tensor *max_pool(const char *name, const char *where, weft_tensor *x, int dims,
                             const weft_pool_options *options) {
    pool p[2];
    weft_tensor *bad = take_options(name, where, x, dims, options, p);
    if (bad || !x) return bad;
    weft_max_params m = {.size = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .count = {1, 1}};
    for (int i = 0; i < dims; i++) {
        const int k = 2 - dims + i;
        m.size[k] = p[i].size, m.stride[k] = p[i].stride, m.padding[k] = p[i].padding;
        m.dilation[k] = p[i].dilation;
        int64_t padded;
        if (!weft__add(x->shape[x->rank - dims + i], 2 * p[i].padding, &padded)) padded = INT64_MAX;
        bad = weft__window_count(where, name, x->ctx, padded, p[i].size, p[i].stride, p[i].dilation,
                                 &m.count[k]);
        if (bad) return bad;
        if (m.count[k] == 1) m.stride[k] = p[i].size; /* with one window any stride is right */
    }
    if (m.size[0] <= WEFT_MAX_TAPS && m.size[1] <= WEFT_MAX_TAPS && m.size[0] * m.size[1] <= WEFT_MAX_TAPS) {
        if (dims == 2) return weft__max_pool(where, x, &m);
        return weft_squeeze_at(where, weft__max_pool(where, weft_unsqueeze_at(where, x, x->rank - 1), &m),
                               x->rank - 1);
    }
    for (int i = dims - 1; i >= 0 && !weft__poisoned(x); i--)
        x = largest(where, x, x->rank - dims + i, &p[i]);
    return x;
}

static weft_tensor *avg_pool(const char *name, const char *where, weft_tensor *x, int dims,
                             const weft_pool_options *options) {
    pool p[2];
    weft_tensor *bad = take_options(name, where, x, dims, options, p);
    if (bad || !x) return bad;
    const weft_dtype dtype = (weft_dtype)x->dtype;
    double count = 1;
    x = widen(where, x);
    for (int i = dims - 1; i >= 0 && !weft__poisoned(x); i--) {
        x = total(where, x, x->rank - dims + i, &p[i]);
        count *= p[i].exclude ? 1 : (double)p[i].size;
    }
    return weft__poisoned(x) ? x : as_dtype(where, count > 1 ? at_mul_scalar(x, 1 / count) : x, dtype);
}

weft_tensor *weft_max_pool1d_at(const char *where, weft_tensor *x, const weft_pool_options *options) {
    return max_pool("max_pool1d", where, x, 1, options);
}
weft_tensor *weft_max_pool2d_at(const char *where, weft_tensor *x, const weft_pool_options *options) {
    return max_pool("max_pool2d", where, x, 2, options);
}
weft_tensor *weft_avg_pool1d_at(const char *where, weft_tensor *x, const weft_pool_options *options) {
    return avg_pool("avg_pool1d", where, x, 1, options);
}
weft_tensor *weft_avg_pool2d_at(const char *where, weft_tensor *x, const weft_pool_options *options) {
    return avg_pool("avg_pool2d", where, x, 2, options);
}
