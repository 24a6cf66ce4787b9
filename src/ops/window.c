/* Sliding windows: unfold shows all windows of a dimension, fold adds such windows up. Both are movement and
 * one sum, without a kernel of their own. unfold repeats the L elements `size` times in a row, and cuts the
 * result into rows of L + dilation. Each row is then shifted by `dilation` against the row before:
 *
 *     L = 4, size 3, dilation 1:   0 1 2 3 0 1 2 3 0 1 2 3   repeated
 *
 *                                  0 1 2 3 0                 rows of 5: element (j, q) is q + j of x
 *                                  1 2 3 0 1
 *                                  2 3 - - -
 *
 * Column q of the rows is window q, and a slice keeps whole windows. In general, element (j, q) is element q
 * + j * dilation of x. Views merge these movements into one map whose strides overlap. The gradients are
 * those of movement: each element sums the windows that contain it.
 *
 * Must not know: convolution. Read next: conv.c, pool.c. */
#include "ops/ops.h"
#include "ops/window.h"

weft_tensor *weft__window_count(const char *where, const char *op, weft_context *ctx, int64_t extent,
                                int64_t size, int64_t step, int64_t dilation, int64_t *n) {
    int64_t span;
    *n = 0;
    if (size < 1 || step < 1 || dilation < 1)
        return weft__poison(ctx, where, WEFT_ERR_ARGUMENT,
                            "%s: size %lld, step %lld and dilation %lld must be positive", op,
                            (long long)size, (long long)step, (long long)dilation);
    if (!weft__mul(size - 1, dilation, &span) || span >= extent)
        return weft__poison(ctx, where, WEFT_ERR_SHAPE,
                            "%s: a window of %lld elements, %lld apart, is longer than the extent of %lld",
                            op, (long long)size, (long long)dilation, (long long)extent);
    *n = (extent - span - 1) / step + 1;
    return NULL;
}

weft_tensor *weft__recut(const char *where, weft_tensor *x, int dim, int gone, int count,
                         const int64_t *extents) {
    int64_t shape[WEFT_MAX_RANK];
    int rank = 0;
    if (weft__poisoned(x)) return x;
    for (int i = 0; i < dim; i++) shape[rank++] = x->shape[i];
    for (int i = 0; i < count; i++) shape[rank++] = extents[i];
    for (int i = dim + gone; i < x->rank; i++) shape[rank++] = x->shape[i];
    return weft__reshape_to(where, x, rank, shape);
}

/* Cuts a dimension at its end, or adds zeros there, to reach the extent. */
static weft_tensor *fit(const char *where, weft_tensor *x, int dim, int64_t extent) {
    int64_t none[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
    if (weft__poisoned(x)) return x;
    if (extent <= x->shape[dim]) return weft_narrow_at(where, x, dim, 0, extent);
    after[dim] = extent - x->shape[dim];
    return weft_pad_at(where, x, none, after, 0);
}

/* Moves dimension `from` to place `to`. */
static weft_tensor *carry(const char *where, weft_tensor *x, int from, int to) {
    int order[WEFT_MAX_RANK], n = 0;
    if (weft__poisoned(x)) return x;
    for (int i = 0; i < x->rank; i++) {
        if (n == to) order[n++] = from;
        if (i != from) order[n++] = i;
    }
    if (n == to) order[n] = from;
    return weft_permute_at(where, x, order);
}

/* Checks that the rows of L + dilation elements can be counted. */
static weft_tensor *reject_length(const char *where, const char *op, weft_tensor *x, int64_t length,
                                  int64_t size, int64_t dilation) {
    int64_t row, all;
    if (weft__add(length, dilation, &row) && weft__mul(row, size, &all) && weft__mul(all, x->numel + 1, &all))
        return NULL;
    return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                        "%s: windows of %lld elements along an extent of %lld are too many elements", op,
                        (long long)size, (long long)length);
}

weft_tensor *weft_unfold_at(const char *where, weft_tensor *x, int dim, int64_t size, int64_t step,
                            int64_t dilation) {
    weft_tensor *bad = weft__reject("unfold", where, &x, 1);
    if (bad || !x) return bad;
    int d;
    int64_t n;
    if (!weft__axis(dim, x->rank, &d) || x->rank == WEFT_MAX_RANK)
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "unfold: dimension %d is out of range for a tensor of rank %d, or its rank is above %d", dim,
            x->rank, WEFT_MAX_RANK - 1);
    const int64_t length = x->shape[d];
    if ((bad = weft__window_count(where, "unfold", x->ctx, length, size, step, dilation, &n))) return bad;
    if (size == 1) dilation = 1;
    if ((bad = reject_length(where, "unfold", x, length, size, dilation))) return bad;
    int64_t all[WEFT_MAX_RANK], start[WEFT_MAX_RANK] = {0}, stop[WEFT_MAX_RANK], by[WEFT_MAX_RANK];
    weft_tensor *y = weft__recut(where, x, d, 1, 2, (int64_t[]){1, length});
    if (weft__poisoned(y)) return y;
    for (int i = 0; i < y->rank; i++) all[i] = i == d ? size : y->shape[i];
    y = weft__recut(where, weft__expand_to(where, y, y->rank, all), d, 2, 1, (int64_t[]){size * length});
    y = fit(where, y, d, size * (length + dilation));
    y = weft__recut(where, y, d, 1, 2, (int64_t[]){size, length + dilation});
    if (weft__poisoned(y)) return y;
    for (int i = 0; i < y->rank; i++) {
        stop[i] = i == d + 1 ? (n - 1) * step + 1 : y->shape[i];
        by[i] = i == d + 1 ? step : 1;
    }
    return carry(where, weft_slice_at(where, y, start, stop, by), d, x->rank);
}

weft_tensor *weft_fold_at(const char *where, weft_tensor *x, int dim, int64_t extent, int64_t step,
                          int64_t dilation) {
    weft_tensor *bad = weft__reject("fold", where, &x, 1);
    if (bad || !x) return bad;
    int d;
    int64_t n;
    if (x->rank < 2 || !weft__axis(dim, x->rank - 1, &d))
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "fold: dimension %d is out of range for windows of rank %d, whose last dimension is the window",
            dim, x->rank);
    const int64_t size = x->shape[x->rank - 1], count = x->shape[d];
    if ((bad = weft__window_count(where, "fold", x->ctx, extent, size, step, dilation, &n))) return bad;
    if (n != count)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "fold: an extent of %lld has %lld windows, but dimension %d has %lld",
                            (long long)extent, (long long)n, d, (long long)count);
    if (!weft__row_accepts(WEFT_OP_SUM, (weft_dtype)x->dtype)) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "fold: elements of %s cannot be added; convert it with weft_cast",
                            weft__tensor_text(x, text));
    }
    if (size == 1) dilation = 1;
    if ((bad = reject_length(where, "fold", x, extent, size, dilation))) return bad;
    weft_tensor *y = carry(where, x, x->rank - 1, d);
    if (step > 1 && n > 1) { /* put step - 1 zeros after each window's element */
        y = fit(where, weft__recut(where, y, d, 2, 2, (int64_t[]){size * n, 1}), d + 1, step);
        y = weft__recut(where, y, d, 2, 2, (int64_t[]){size, n * step});
    }
    y = fit(where, y, d + 1, extent + dilation);
    y = weft__recut(where, y, d, 2, 1, (int64_t[]){size * (extent + dilation)});
    y = weft__recut(where, fit(where, y, d, size * extent), d, 1, 2, (int64_t[]){size, extent});
    if (weft__poisoned(y)) return y;
    const weft_dtype dtype = (weft_dtype)y->dtype;
    y = weft_sum_at(where, y, d, false); /* i64 of small integers: wraps the same */
    return y->error ? y : weft_cast_at(where, y, dtype);
}
