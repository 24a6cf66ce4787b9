/* Sorting. One node, ARGSORT (argsort or top-k), finds the positions that sort rows: all of them or the first
 * k. Values are gathered at these positions, so their gradients go back to where they came from.
 * Must not know: kernels. Read next: gather.c; heavy/argsort.h. */
#include "ops/ops.h"

/* A tensor that compares as x does, in a dtype that devices can sort. */
static weft_tensor *comparable(const char *where, weft_tensor *x) {
    const weft_dtype dtype = (weft_dtype)x->dtype;
    if (dtype == WEFT_F32 || dtype == WEFT_F64 || dtype == WEFT_I32 || dtype == WEFT_I64) return x;
    if (weft_dtype_is_float(dtype)) return weft_cast_at(where, x, WEFT_F32);
    if (dtype == WEFT_U64) {
        weft_tensor *top = weft__constant(x->ctx, where, WEFT_I64, 0, NULL, (double)INT64_MIN, INT64_MIN);
        return weft_xor_at(where, weft_cast_at(where, x, WEFT_I64), top);
    }
    return weft_cast_at(where, x, dtype == WEFT_U32 ? WEFT_I64 : WEFT_I32);
}

/* The positions of the first `count` sorted elements along dimension d. */
static weft_tensor *order(const char *where, weft_tensor *x, int d, int64_t count, bool descending) {
    x = weft_transpose_at(where, comparable(where, x), d, -1);
    if (weft__poisoned(x)) return x;
    const weft_attr_sorted attr = {count, descending};
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = i == x->rank - 1 ? count : x->shape[i];
    x = weft__node(x->ctx, where, WEFT_OP_ARGSORT, WEFT_I32, x->rank, shape, 1, &x, sizeof attr, &attr);
    return x->error ? x : weft_transpose_at(where, x, d, -1);
}

static weft_tensor *sort_check(const char *where, const char *name, weft_tensor *x, int axis, int *d) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    *d = 0;
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (!weft_dtype_is_float((weft_dtype)x->dtype) &&
        !weft__dtype_in((weft_dtype)x->dtype, WEFT_CLASS_INTEGER))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "%s: %s has no order, so it cannot be sorted",
                            name, weft__tensor_text(x, text));
    if (!weft__axis(axis, x->rank, d) || x->shape[*d] > INT32_MAX)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "%s: axis %d of %s does not exist, or has more than 2^31 - 1 elements", name,
                            axis, weft__tensor_text(x, text));
    return NULL;
}

static weft_tensor *choose(const char *where, weft_tensor *x, int d, int64_t count, bool descending,
                           weft_tensor **index) {
    weft_tensor *places = order(where, x, d, count, descending);
    if (index) *index = places;
    return weft__poisoned(places) ? places : weft__take_along(where, x, places, d, true);
}

weft_tensor *weft_sort_at(const char *where, weft_tensor *x, int axis, bool descending, weft_tensor **index) {
    int d;
    weft_tensor *bad = sort_check(where, "sort", x, axis, &d);
    if (index) *index = bad;
    return bad || !x ? bad : choose(where, x, d, x->shape[d], descending, index);
}

weft_tensor *weft_argsort_at(const char *where, weft_tensor *x, int axis, bool descending) {
    int d;
    weft_tensor *bad = sort_check(where, "argsort", x, axis, &d);
    return bad || !x ? bad : order(where, x, d, x->shape[d], descending);
}

weft_tensor *weft_topk_at(const char *where, weft_tensor *x, int64_t k, int axis, bool largest,
                          weft_tensor **index) {
    int d;
    weft_tensor *bad = sort_check(where, "topk", x, axis, &d);
    if (!bad && x && (k < 0 || k > x->shape[d]))
        bad =
            weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "topk: k is %lld, but the axis has %lld elements",
                         (long long)k, (long long)x->shape[d]);
    if (index) *index = bad;
    return bad || !x ? bad : choose(where, x, d, k, largest, index);
}
