/* Reductions of the table over any set of dimensions, and functions made of them: mean, variance, norms, any
 * and all, argmax.
 * Must not know: kernels. Read next: scan.c, norm.c. */
#include <math.h>
#include "ops/composite.h"
#include "ops/ops.h"

weft_tensor *weft__reduce(const char *where, weft_op op, weft_tensor *x, uint32_t mask) {
    weft_attr_axes attr = {mask};
    int64_t shape[WEFT_MAX_RANK];
    bool any = false;
    for (int i = 0; i < x->rank; i++) {
        shape[i] = mask >> i & 1u ? 1 : x->shape[i];
        any |= mask >> i & 1u && x->shape[i] != 1;
    }
    if (!any) return x;
    if (is_complex(x)) return weft__complex_reduce(where, op, x, mask);
    if ((op == WEFT_OP_SUM || op == WEFT_OP_PROD) && is_half((weft_dtype)x->dtype)) {
        /* in f32, also where partial results are stored */
        weft_tensor *wide = weft__reduce(where, op, weft_cast_at(where, x, WEFT_F32), mask);
        return wide->error ? wide : weft_cast_at(where, wide, (weft_dtype)x->dtype);
    }
    return weft__node(x->ctx, where, op, (weft_dtype)x->dtype, x->rank, shape, 1, &x, sizeof attr, &attr);
}

/* Converts an axis argument to a mask of dimensions. Returns NULL or a poisoned tensor. */
static weft_tensor *mask_of(const char *where, const char *op, weft_tensor *x, int axis, uint32_t *mask) {
    int at = 0;
    *mask = (1u << x->rank) - 1u;
    if (axis == WEFT_ALL_AXES) return NULL;
    if (!weft__axis(axis, x->rank, &at))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "%s: axis %d is out of range for a tensor of rank %d", op, axis, x->rank);
    *mask = 1u << at;
    return NULL;
}

static weft_tensor *reduce_drop(const char *where, weft_tensor *x, uint32_t mask, bool keep) {
    if (keep || x->error) return x;
    int64_t shape[WEFT_MAX_RANK];
    int n = 0;
    for (int i = 0; i < x->rank; i++)
        if (!(mask >> i & 1u)) shape[n++] = x->shape[i];
    return weft__reshape_to(where, x, n, shape);
}

static int64_t reduced_count(const weft_tensor *x, uint32_t mask) {
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++)
        if (mask >> i & 1u) n *= x->shape[i];
    return n;
}

/* x as sums and products read it: bools and integers below 64 bits become i64, as in PyTorch. */
static weft_tensor *wide_of(const char *where, weft_op op, weft_tensor *x) {
    const weft_dtype dtype = (weft_dtype)x->dtype;
    const bool adds = op == WEFT_OP_SUM || op == WEFT_OP_PROD;
    if (!adds || !weft__dtype_in(dtype, WEFT_CLASS_INTEGER) || weft_dtype_size(dtype) == 8) return x;
    return weft_cast_at(where, x, WEFT_I64);
}

/* name: the function that the user called, for messages. */
static weft_tensor *reduce_axis(const char *where, const char *name, weft_op op, weft_tensor *x, int axis,
                                bool keep) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    uint32_t mask;
    if (bad || !x || (bad = mask_of(where, name, x, axis, &mask))) return bad;
    char text[WEFT_SHAPE_TEXT];
    x = wide_of(where, op, x);
    if (x->error) return x;
    if (!weft__row_accepts(op, (weft_dtype)x->dtype))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "%s: %s is not accepted; convert it with weft_cast", name,
                            weft__tensor_text(x, text));
    if ((op == WEFT_OP_MAX || op == WEFT_OP_MIN) && reduced_count(x, mask) == 0)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: there is no element to choose in %s", name,
                            weft__tensor_text(x, text));
    return reduce_drop(where, weft__reduce(where, op, x, mask), mask, keep);
}

weft_tensor *weft_sum_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return reduce_axis(where, "sum", WEFT_OP_SUM, x, axis, keep);
}
weft_tensor *weft_max_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return reduce_axis(where, "max", WEFT_OP_MAX, x, axis, keep);
}
weft_tensor *weft_min_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return reduce_axis(where, "min", WEFT_OP_MIN, x, axis, keep);
}
weft_tensor *weft_prod_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return reduce_axis(where, "prod", WEFT_OP_PROD, x, axis, keep);
}

weft_tensor *weft_mean_at(const char *where, weft_tensor *x, int axis, bool keep) {
    weft_tensor *bad = weft__reject("mean", where, &x, 1);
    uint32_t mask;
    if (bad || !x || (bad = mask_of(where, "mean", x, axis, &mask))) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (!weft_dtype_is_float((weft_dtype)x->dtype) && !is_complex(x))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "mean: %s is not a float; convert it with weft_cast", weft__tensor_text(x, text));
    weft_dtype dtype = (weft_dtype)x->dtype;
    weft_tensor *sum = weft_sum_at(where, widen(where, x), axis, keep);
    return as_dtype(where, at_mul_scalar(sum, 1.0 / (double)reduced_count(x, mask)), dtype);
}

/* Sum of squared distances from the mean, divided by the count minus the correction. */
static weft_tensor *variance(const char *where, const char *name, weft_tensor *x, int axis, double correction,
                             bool keep) {
    uint32_t mask;
    weft_tensor *bad = mask_of(where, name, x, axis, &mask);
    if (bad) return bad;
    weft_tensor *mean = weft_mean_at(where, x, axis, true);
    if (mean->error) return mean;
    weft_tensor *distance = at_sub(x, mean), *squares = at_mul(distance, distance);
    if (correction == 0) return weft_mean_at(where, squares, axis, keep);
    const double left = fmax(0, (double)reduced_count(x, mask) - correction);
    return at_mul_scalar(weft_sum_at(where, squares, axis, keep), 1 / left);
}

/* NULL if x is a float or complex number. The variance of complex numbers is real: the sum of both parts'
 * variances. */
static weft_tensor *reject_number(const char *name, const char *where, weft_tensor *x) {
    return x && !x->error && is_complex(x) ? NULL : reject_float(name, where, x);
}

static weft_tensor *variance_of_parts(const char *where, const char *name, weft_tensor *x, int axis,
                                      double correction, bool keep) {
    weft_tensor *re = variance(where, name, weft_real_at(where, x), axis, correction, keep);
    return at_add(re, variance(where, name, weft_imag_at(where, x), axis, correction, keep));
}

weft_tensor *weft_var_at(const char *where, weft_tensor *x, int axis, double correction, bool keep) {
    weft_tensor *bad = reject_number("var", where, x);
    if (bad || !x) return bad;
    if (is_complex(x)) return variance_of_parts(where, "var", x, axis, correction, keep);
    return as_dtype(where, variance(where, "var", widen(where, x), axis, correction, keep),
                    (weft_dtype)x->dtype);
}

/* The p-th root of s, for p > 0. The gradient is 0 where s is 0. */
static weft_tensor *root(const char *where, weft_tensor *s, double p) {
    weft_tensor *none = at_eq(s, at_zeros_like(s)), *safe = at_where(none, weft_full_like_at(where, s, 1), s);
    safe = p == 2 ? weft_sqrt_at(where, safe) : at_pow(safe, weft_full_like_at(where, safe, 1 / p));
    return at_where(none, at_zeros_like(s), safe);
}

weft_tensor *weft_std_at(const char *where, weft_tensor *x, int axis, double correction, bool keep) {
    weft_tensor *bad = reject_number("std", where, x);
    if (bad || !x) return bad;
    if (is_complex(x)) return root(where, variance_of_parts(where, "std", x, axis, correction, keep), 2);
    weft_tensor *v = variance(where, "std", widen(where, x), axis, correction, keep);
    return as_dtype(where, root(where, v, 2), (weft_dtype)x->dtype);
}

static weft_tensor *norm_of(const char *where, weft_tensor *x, double p, int axis, bool keep) {
    weft_tensor *size = weft_abs_at(where, x);
    if (isinf(p)) return reduce_axis(where, "norm", p > 0 ? WEFT_OP_MAX : WEFT_OP_MIN, size, axis, keep);
    if (p == 1) return weft_sum_at(where, size, axis, keep);
    if (p == 2) return root(where, weft_sum_at(where, at_mul(x, x), axis, keep), p);
    weft_tensor *none = at_eq(x, at_zeros_like(x)), *one = weft_full_like_at(where, x, 1);
    if (p == 0) return weft_sum_at(where, at_where(none, at_zeros_like(x), one), axis, keep);
    weft_tensor *powers = at_pow(at_where(none, one, size), weft_full_like_at(where, x, p));
    powers = at_where(none, p > 0 ? at_zeros_like(x) : weft_full_like_at(where, x, INFINITY), powers);
    weft_tensor *sum = weft_sum_at(where, powers, axis, keep);
    if (p > 0) return root(where, sum, p);
    return at_pow(sum, weft_full_like_at(where, sum, 1 / p)); /* if an element is 0, inf becomes 0 */
}

weft_tensor *weft_norm_at(const char *where, weft_tensor *x, double p, int axis, bool keep) {
    weft_tensor *bad = reject_number("norm", where, x);
    if (bad || !x) return bad;
    if (is_complex(x)) x = weft_abs_at(where, x);
    if (isnan(p)) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "norm: p is NaN");
    return as_dtype(where, norm_of(where, widen(where, x), p, axis, keep), (weft_dtype)x->dtype);
}

/* any or all. Over nothing: false for any, true for all. */
static weft_tensor *truth(const char *where, const char *name, weft_op op, weft_tensor *x, int axis,
                          bool keep) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    uint32_t mask;
    if (bad || !x || (bad = mask_of(where, name, x, axis, &mask))) return bad;
    weft_tensor *is = x->dtype == WEFT_BOOL ? x : weft_cast_at(where, x, WEFT_BOOL);
    if (is->error || reduced_count(x, mask))
        return is->error ? is : reduce_axis(where, name, op, is, axis, keep);
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = mask >> i & 1u ? 1 : x->shape[i];
    is = weft__constant(x->ctx, where, WEFT_BOOL, x->rank, shape, op == WEFT_OP_MIN, op == WEFT_OP_MIN);
    return reduce_drop(where, is, mask, keep);
}

weft_tensor *weft_any_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return truth(where, "any", WEFT_OP_MAX, x, axis, keep);
}

weft_tensor *weft_all_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return truth(where, "all", WEFT_OP_MIN, x, axis, keep);
}

/* The smallest index at which x equals its extreme value, or is NaN if that is NaN. One row kernel. */
static weft_tensor *arg_extreme(const char *where, weft_op op, const char *name, weft_tensor *x, int axis,
                                bool keep) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    if (bad || !x) return bad;
    if (axis == WEFT_ALL_AXES) {
        const int64_t flat = x->numel, ones[WEFT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
        weft_tensor *index = arg_extreme(where, op, name, weft__reshape_to(where, x, 1, &flat), 0, false);
        return index->error || !keep ? index : weft__reshape_to(where, index, x->rank, ones);
    }
    weft_tensor *extreme = reduce_axis(where, name, op, x, axis, true);
    if (extreme->error) return extreme;
    int at;
    weft__axis(axis, x->rank, &at);
    if (x->shape[at] > INT32_MAX)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: more than 2^31 - 1 elements along the axis",
                            name);
    weft_tensor *hit = at_eq(x, extreme);
    if (weft_dtype_is_float((weft_dtype)x->dtype)) hit = weft_or_at(where, hit, weft_isnan_at(where, x));
    int64_t column[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) column[i] = i == at ? x->shape[at] : 1;
    weft_tensor *count = weft_iota(x->ctx, WEFT_I32, 1, &x->shape[at]);
    if (count->error) return count;
    count = weft__reshape_to(where, count, x->rank, column);
    weft_tensor *far = weft__constant(x->ctx, where, WEFT_I32, 0, NULL, INT32_MAX, INT32_MAX);
    return reduce_axis(where, name, WEFT_OP_MIN, at_where(hit, count, far), axis, keep);
}

weft_tensor *weft_argmax_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return arg_extreme(where, WEFT_OP_MAX, "argmax", x, axis, keep);
}

weft_tensor *weft_argmin_at(const char *where, weft_tensor *x, int axis, bool keep) {
    return arg_extreme(where, WEFT_OP_MIN, "argmin", x, axis, keep);
}

weft_tensor *weft_sum_to_at(const char *where, weft_tensor *x, int rank, const int64_t *shape) {
    weft_tensor *bad = weft__reject("sum_to", where, &x, 1);
    if (bad || !x) return bad;
    if (rank && !shape) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "sum_to: the shape is NULL");
    if (rank < 0 || rank > WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "sum_to: rank %d is not in 0..%d", rank,
                            WEFT_MAX_RANK);
    uint32_t mask = 0;
    int lead = x->rank - rank;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (!weft__row_accepts(WEFT_OP_SUM, (weft_dtype)x->dtype))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "sum_to: %s is not accepted; convert it with weft_cast", weft__tensor_text(x, a));
    bool fits = lead >= 0;
    for (int i = 0; fits && i < x->rank; i++) {
        int64_t to = i < lead ? 1 : shape[i - lead];
        fits = to == x->shape[i] || to == 1;
        if (to != x->shape[i]) mask |= 1u << i;
    }
    if (!fits)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "sum_to: %s is not a broadcast of %s",
                            weft__tensor_text(x, a), weft__shape_text(rank, shape, b));
    return weft__reshape_to(where, weft__reduce(where, WEFT_OP_SUM, x, mask), rank, shape);
}
