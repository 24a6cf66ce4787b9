/* Resampling of dimensions to other extents: adaptive pools (windows of unequal length) and interpolation,
 * one dimension after the other. If one extent divides the other, both are reshapes. Else elements are
 * gathered at positions that the kernel computes, in f32 as PyTorch does, and gradients are scattered back.
 * Must not know: layers. Read next: pool.c, gather.c. */
#include "base/option.h"
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

/* NULL if x is a float tensor whose last `dims` dimensions are not empty; else a poisoned tensor. */
static weft_tensor *reject_image(const char *name, const char *where, weft_tensor *x, int dims) {
    weft_tensor *bad = reject_float(name, where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    bool fine = x->rank >= dims && x->rank < WEFT_MAX_RANK;
    for (int i = 0; fine && i < dims; i++) fine = x->shape[x->rank - 1 - i] > 0;
    if (fine) return NULL;
    return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                        "%s: x %s must have %d to %d dimensions, and the last %d must not be empty", name,
                        weft__tensor_text(x, text), dims, WEFT_MAX_RANK - 1, dims);
}

/* t has some of the dimensions from dim on, of a tensor of that rank. Returns t reshaped so that it
 * broadcasts. */
static weft_tensor *along(const char *where, weft_tensor *t, int dim, int rank) {
    int64_t shape[WEFT_MAX_RANK];
    if (weft__poisoned(t)) return t;
    for (int i = 0; i < rank - dim; i++) shape[i] = i < t->rank ? t->shape[i] : 1;
    return weft__reshape_to(where, t, rank - dim, shape);
}

/* ---- adaptive pools ---- */

/* Length of the longest of `n` windows that cover an extent. Window i begins at floor(i * extent / n). i *
 * extent mod n takes all multiples of the greatest common divisor, so the largest remainder gives the longest
 * window. */
static int64_t longest_window(int64_t extent, int64_t n) {
    int64_t divisor = extent, rest = n;
    while (rest) {
        const int64_t next = divisor % rest;
        divisor = rest, rest = next;
    }
    return (extent - divisor + n - 1) / n + 1;
}

/* The windows of one dimension: n windows of `size` places. `there` says which places belong to the window
 * (NULL: all); counts is their number. */
typedef struct cover {
    weft_tensor *windows, *there, *counts;
} cover;

static cover cover_with(const char *where, weft_tensor *x, int dim, int64_t n) {
    const int64_t extent = x->shape[dim];
    if (extent % n == 0)
        return (cover){weft__recut(where, x, dim, 1, 2, (int64_t[]){n, extent / n}), NULL, NULL};
    const int64_t size = longest_window(extent, n), column[2] = {n, 1};
    weft_tensor *i = weft_reshape_at(where, weft_iota(x->ctx, WEFT_I64, 1, &n), 2, column);
    weft_tensor *of = weft__constant(x->ctx, where, WEFT_I64, 2, column, (double)n, n);
    weft_tensor *start = at_div(at_mul_scalar(i, (double)extent), of);
    weft_tensor *stop =
        at_div(at_add_scalar(at_mul_scalar(at_add_scalar(i, 1), (double)extent), (double)(n - 1)), of);
    weft_tensor *at = at_add(start, weft_iota(x->ctx, WEFT_I64, 1, &size));
    weft_tensor *last = weft_full_like_at(where, at, (double)(extent - 1));
    cover c = {weft_gather_at(where, x, weft_minimum_at(where, at, last), dim),
               along(where, at_lt(at, stop), dim, x->rank + 1), NULL};
    c.counts = along(where, weft_cast_at(where, at_sub(stop, start), (weft_dtype)x->dtype), dim, x->rank + 1);
    return c;
}

static weft_tensor *mean_of_windows(const char *where, weft_tensor *x, int dim, int64_t n) {
    const cover c = cover_with(where, x, dim, n);
    if (!c.there) return weft_mean_at(where, c.windows, dim + 1, false);
    weft_tensor *sum =
        weft_sum_at(where, at_where(c.there, c.windows, at_zeros_like(c.windows)), dim + 1, true);
    sum = at_div(sum, c.counts);
    return weft__poisoned(sum) ? sum : weft_squeeze_at(where, sum, dim + 1);
}

static weft_tensor *largest_of_windows(const char *where, weft_tensor *x, int dim, int64_t n) {
    const cover c = cover_with(where, x, dim, n);
    weft_tensor *w = c.windows;
    if (c.there) w = at_where(c.there, w, weft_full_like_at(where, w, -HUGE_VAL));
    return weft__first_largest(where, w, dim + 1);
}

/* to: the new extents of the last dimensions. */
static weft_tensor *pool(const char *name, const char *where, weft_tensor *x, int dims, const int64_t *to,
                         bool mean) {
    weft_tensor *bad = reject_image(name, where, x, dims);
    if (bad || !x) return bad;
    for (int i = 0; i < dims; i++)
        if (to[i] < 1 || to[i] > INT32_MAX || x->shape[x->rank - dims + i] > INT32_MAX)
            return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                                "%s: cannot make an extent of %lld from one of %lld", name, (long long)to[i],
                                (long long)x->shape[x->rank - dims + i]);
    const weft_dtype dtype = (weft_dtype)x->dtype;
    const int rank = x->rank;
    if (mean) x = widen(where, x);
    for (int i = dims - 1; i >= 0 && !weft__poisoned(x); i--)
        x = (mean ? mean_of_windows : largest_of_windows)(where, x, rank - dims + i, to[i]);
    return as_dtype(where, x, dtype);
}

weft_tensor *weft_adaptive_avg_pool1d_at(const char *where, weft_tensor *x, int64_t size) {
    return pool("adaptive_avg_pool1d", where, x, 1, &size, true);
}
weft_tensor *weft_adaptive_avg_pool2d_at(const char *where, weft_tensor *x, int64_t rows, int64_t columns) {
    return pool("adaptive_avg_pool2d", where, x, 2, (int64_t[]){rows, columns}, true);
}
weft_tensor *weft_adaptive_max_pool1d_at(const char *where, weft_tensor *x, int64_t size) {
    return pool("adaptive_max_pool1d", where, x, 1, &size, false);
}
weft_tensor *weft_adaptive_max_pool2d_at(const char *where, weft_tensor *x, int64_t rows, int64_t columns) {
    return pool("adaptive_max_pool2d", where, x, 2, (int64_t[]){rows, columns}, false);
}

/* ---- interpolation ---- */

/* The new extent of a dimension, and the scale that the user gave. */
typedef struct drawn {
    int64_t to;
    double scale; /* 0: no scale was given */
} drawn;

static double step_of(const drawn *d, int64_t extent, bool wide) {
    if (d->scale > 0) return wide ? 1 / d->scale : (double)(float)(1 / d->scale);
    return wide ? (double)extent / (double)d->to : (double)((float)extent / (float)d->to);
}

/* Positions of the centres of `to` elements: (i + 1/2) step - 1/2, rounded once, as a fused multiply-add
 * does. A second rounding would move a position near 300 by 3e-5. (PyTorch on a CPU rounds once for gradients
 * and for channels-last images, else twice.) The first part of the step has few digits, so its products are
 * exact, up to 2^12 elements in f32. The rest of the step is small beside it. */
static weft_tensor *centres(const char *where, weft_context *ctx, weft_dtype dtype, int64_t to, double step) {
    const int digits = dtype == WEFT_F64 ? 20 : 11;
    int exponent;
    const double part = frexp(step, &exponent);
    const double most = ldexp(rint(ldexp(part, digits)), exponent - digits);
    weft_tensor *at = at_add_scalar(weft_cast_at(where, weft_iota(ctx, WEFT_I32, 1, &to), dtype), 0.5);
    weft_tensor *whole = at_add_scalar(at_mul_scalar(at, most), -0.5);
    return step == most ? whole : at_add(whole, at_mul_scalar(at, step - most));
}

/* Nearest elements. Whole multiples of the extent are repetitions. As in PyTorch, an extent that stays or
 * doubles is treated so whatever the scale is. */
static weft_tensor *nearest(const char *where, weft_tensor *x, int dim, const drawn *d) {
    const int64_t extent = x->shape[dim], times = d->to / extent;
    if (d->to == times * extent && (times <= 2 || d->scale == 0 || d->scale == (double)times)) {
        int64_t shape[WEFT_MAX_RANK];
        x = weft__recut(where, x, dim, 1, 2, (int64_t[]){extent, 1});
        if (weft__poisoned(x)) return x;
        for (int i = 0; i < x->rank; i++) shape[i] = i == dim + 1 ? times : x->shape[i];
        x = weft__expand_to(where, x, x->rank, shape);
        return weft__recut(where, x, dim, 2, 1, &d->to);
    }
    weft_tensor *at = weft_cast_at(where, weft_iota(x->ctx, WEFT_I32, 1, &d->to), WEFT_F32);
    at = weft_cast_at(where, at_floor(at_mul_scalar(at, step_of(d, extent, false))), WEFT_I32);
    at = weft_minimum_at(where, at, weft_full_like_at(where, at, (double)(extent - 1)));
    return weft_gather_at(where, x, at, dim);
}

/* Interpolates between the two elements whose centres surround the centre of the result's element. */
static weft_tensor *linear(const char *where, weft_tensor *x, int dim, const drawn *d) {
    const int64_t extent = x->shape[dim];
    const weft_dtype dtype = (weft_dtype)x->dtype;
    if (d->to == extent) return x; /* whatever the scale is, as in PyTorch */
    weft_tensor *at = centres(where, x->ctx, dtype, d->to, step_of(d, extent, dtype == WEFT_F64));
    at = weft_maximum_at(where, at, at_zeros_like(at));
    weft_tensor *low = weft_cast_at(where, at, WEFT_I32);
    weft_tensor *last = weft_full_like_at(where, low, (double)(extent - 1));
    low = weft_minimum_at(where, low, last);
    weft_tensor *high = weft_minimum_at(where, at_add_scalar(low, 1), last);
    weft_tensor *part = at_sub(at, weft_cast_at(where, low, dtype));
    part = weft_clamp_at(where, part, 0, 1); /* a scale may point past the last element */
    part = along(where, part, dim, x->rank);
    return at_add(at_mul(weft_gather_at(where, x, low, dim), at_sub_from(1, part)),
                  at_mul(weft_gather_at(where, x, high, dim), part));
}

static weft_tensor *take_options(const char *name, const char *where, weft_tensor *x, int dims,
                                 const weft_interpolate_options *o, drawn *d) {
    weft_tensor *bad = reject_image(name, where, x, dims);
    if (bad || !x) return bad;
    if (!o) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: the options are NULL", name);
    if (o->mode != WEFT_NEAREST && o->mode != WEFT_LINEAR)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: unknown mode %d", name, (int)o->mode);
    for (int i = 0; i < dims; i++) {
        const int64_t extent = x->shape[x->rank - dims + i];
        const bool sized = o->size[i] != 0, scaled = !weft__is_unset(o->scale[i]);
        const double to = sized ? (double)o->size[i] : floor((double)extent * o->scale[i]);
        if (sized == scaled || !(to >= 1 && to <= INT32_MAX) || extent > INT32_MAX)
            return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                                "%s: size %lld and scale %g for an extent of %lld: give one of the two, so "
                                "that at least one element remains",
                                name, (long long)o->size[i], o->scale[i], (long long)extent);
        d[i] = (drawn){(int64_t)to, o->scale[i]};
    }
    return NULL;
}

static weft_tensor *interpolate(const char *name, const char *where, weft_tensor *x, int dims,
                                const weft_interpolate_options *options) {
    drawn d[2];
    weft_tensor *bad = take_options(name, where, x, dims, options, d);
    if (bad || !x) return bad;
    const weft_dtype dtype = (weft_dtype)x->dtype;
    const int rank = x->rank;
    const bool smooth = options->mode == WEFT_LINEAR;
    if (smooth) x = widen(where, x);
    for (int i = dims - 1; i >= 0 && !weft__poisoned(x); i--)
        x = (smooth ? linear : nearest)(where, x, rank - dims + i, &d[i]);
    return as_dtype(where, x, dtype);
}

weft_tensor *weft_interpolate1d_at(const char *where, weft_tensor *x,
                                   const weft_interpolate_options *options) {
    return interpolate("interpolate1d", where, x, 1, options);
}
weft_tensor *weft_interpolate2d_at(const char *where, weft_tensor *x,
                                   const weft_interpolate_options *options) {
    return interpolate("interpolate2d", where, x, 2, options);
}
