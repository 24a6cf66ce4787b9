/* Reading and writing by index: gather, its transpose scatter-add, and update, the slice assignment of
 * caches.
 *
 *     gather:       x (A, n, B), index (I) -> (A, I, B). Gradient: dy scattered into zeros (A, n, B).
 *     scatter_add:  index (I), source (A, I, B) -> (A, n, B). Slices of equal index are added in order.
 *     update:       x (A, n, B), value (A, m, B), offset -> x with elements offset..offset+m-1 replaced.
 *
 * Must not know: kernels. Read next: sort.c, autodiff/rules.c. */
#include "ops/ops.h"

static weft_tensor *check_index(const char *where, const char *op, weft_tensor *index) {
    char text[WEFT_SHAPE_TEXT];
    if (index->dtype == WEFT_I32 || index->dtype == WEFT_I64) return NULL;
    return weft__poison(index->ctx, where, WEFT_ERR_DTYPE, "%s: the index is %s; it must be i32 or i64", op,
                        weft__tensor_text(index, text));
}

weft_tensor *weft__gather(const char *where, weft_tensor *x, weft_tensor *index, int axis, bool unique) {
    weft_tensor *in[2] = {x, index}, *bad = weft__reject("gather", where, in, 2);
    int rank = 0;
    int64_t shape[2 * WEFT_MAX_RANK];
    if (bad || !x) return bad;
    if (is_complex(x))
        return weft_view_as_complex_at(
            where, weft__gather(where, weft_view_as_real_at(where, x), index, axis, unique));
    for (int i = 0; i < axis; i++) shape[rank++] = x->shape[i];
    for (int i = 0; i < index->rank; i++) shape[rank++] = index->shape[i];
    for (int i = axis + 1; i < x->rank; i++) shape[rank++] = x->shape[i];
    if (rank > WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "gather: the result has rank %d, more than %d",
                            rank, WEFT_MAX_RANK);
    weft_attr_axis attr = {axis, x->shape[axis], unique};
    return weft__node(x->ctx, where, WEFT_OP_GATHER, (weft_dtype)x->dtype, rank, shape, 2, in, sizeof attr,
                      &attr);
}

weft_tensor *weft_gather_at(const char *where, weft_tensor *x, weft_tensor *index, int dim) {
    weft_tensor *in[2] = {x, index}, *bad = weft__reject("gather", where, in, 2);
    if (bad || !x || (bad = check_index(where, "gather", index))) return bad;
    int axis;
    if (!weft__axis(dim, x->rank, &axis))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "gather: axis %d is out of range for a tensor of rank %d", dim, x->rank);
    return weft__gather(where, x, index, axis, false);
}

weft_tensor *weft__scatter(const char *where, weft_tensor *index, weft_tensor *source, int axis,
                           int64_t extent, bool unique) {
    int64_t shape[WEFT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < axis; i++) shape[rank++] = source->shape[i];
    shape[rank++] = extent;
    for (int i = axis + index->rank; i < source->rank; i++) shape[rank++] = source->shape[i];
    weft_attr_axis attr = {axis, extent, unique};
    return weft__node(source->ctx, where, WEFT_OP_SCATTER_ADD, (weft_dtype)source->dtype, rank, shape, 2,
                      (weft_tensor *const[]){index, source}, sizeof attr, &attr);
}

weft_tensor *weft_scatter_add_at(const char *where, weft_tensor *x, weft_tensor *index, weft_tensor *source,
                                 int dim) {
    weft_tensor *in[3] = {x, index, source}, *bad = weft__reject("scatter_add", where, in, 3);
    if (bad || !x || (bad = check_index(where, "scatter_add", index))) return bad;
    int axis;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT], c[WEFT_SHAPE_TEXT];
    if (source->dtype != x->dtype || x->dtype == WEFT_BOOL)
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "scatter_add: x %s and source %s must be of one dtype, not bool",
                            weft__tensor_text(x, a), weft__tensor_text(source, c));
    bool fits = weft__axis(dim, x->rank, &axis) && source->rank == x->rank - 1 + index->rank;
    for (int i = 0; fits && i < source->rank; i++)
        fits = source->shape[i] == (i < axis                 ? x->shape[i]
                                    : i < axis + index->rank ? index->shape[i - axis]
                                                             : x->shape[i - index->rank + 1]);
    if (!fits)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "scatter_add: x %s, index %s and source %s do not fit together along axis %d",
                            weft__tensor_text(x, a), weft__tensor_text(index, b),
                            weft__tensor_text(source, c), dim);
    if (is_complex(x)) {
        weft_tensor *to = weft_view_as_real_at(where, x), *from = weft_view_as_real_at(where, source);
        return weft_view_as_complex_at(where, weft_scatter_add_at(where, to, index, from, axis));
    }
    weft_dtype dtype = (weft_dtype)x->dtype;
    if (weft_dtype_is_float(dtype) || weft_dtype_size(dtype) >= 4)
        return at_add(x, weft__scatter(where, index, source, axis, x->shape[axis], false));
    source = weft_cast_at(where, source, WEFT_I32); /* wraps to the same values */
    return source->error
               ? source
               : at_add(x,
                        weft_cast_at(where, weft__scatter(where, index, source, axis, x->shape[axis], false),
                                     dtype));
}

weft_tensor *weft_update_at(const char *where, weft_tensor *x, weft_tensor *value, weft_tensor *offset,
                            int dim) {
    weft_tensor *in[3] = {x, value, offset}, *bad = weft__reject("update", where, in, 3);
    if (bad || !x) return bad;
    int axis;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT], c[WEFT_SHAPE_TEXT];
    if (value->dtype != x->dtype || offset->dtype != WEFT_I32)
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "update: x %s and value %s must have one dtype, and offset %s must be i32",
                            weft__tensor_text(x, a), weft__tensor_text(value, b),
                            weft__tensor_text(offset, c));
    bool fits = weft__axis(dim, x->rank, &axis) && value->rank == x->rank && offset->numel == 1;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis ? value->shape[i] <= x->shape[i] : value->shape[i] == x->shape[i];
    if (!fits)
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "update: x %s, value %s and offset %s (an i32 scalar) do not fit together along axis %d",
            weft__tensor_text(x, a), weft__tensor_text(value, b), weft__tensor_text(offset, c), dim);
    if (is_complex(x)) {
        weft_tensor *to = weft_view_as_real_at(where, x), *from = weft_view_as_real_at(where, value);
        return weft_view_as_complex_at(where, weft_update_at(where, to, from, offset, axis));
    }
    weft_attr_axis attr = {.axis = axis, .extent = value->shape[axis]};
    return weft__node(x->ctx, where, WEFT_OP_UPDATE, (weft_dtype)x->dtype, x->rank, x->shape, 3, in,
                      sizeof attr, &attr);
}

/* Row (a, b) of x begins at element a * n * B + b. So one gather over x as a vector reads elements of all
 * rows. */
weft_tensor *weft__take_along(const char *where, weft_tensor *x, weft_tensor *index, int axis, bool unique) {
    const bool wide = index->dtype == WEFT_I64 || x->numel > INT32_MAX;
    const weft_dtype dtype = wide ? WEFT_I64 : WEFT_I32;
    int64_t stride = 1;
    for (int i = axis + 1; i < x->rank; i++) stride *= x->shape[i];
    weft_tensor *at = weft_cast_at(where, index, dtype);
    if (stride > 1) at = at_mul_scalar(at, (double)stride);
    stride = 1;
    for (int i = x->rank - 1; i >= 0 && !weft__poisoned(at); stride *= x->shape[i--]) {
        int64_t along[WEFT_MAX_RANK];
        if (i == axis || x->shape[i] <= 1) continue;
        for (int k = 0; k < x->rank; k++) along[k] = k == i ? x->shape[i] : 1;
        weft_tensor *rows = weft_iota(x->ctx, dtype, 1, &x->shape[i]);
        if (stride > 1) rows = at_mul_scalar(rows, (double)stride);
        at = weft__poisoned(rows) ? rows : at_add(at, weft__reshape_to(where, rows, x->rank, along));
    }
    if (weft__poisoned(at)) return at;
    return weft__gather(where, weft__reshape_to(where, x, 1, &x->numel), at, 0, unique);
}

/* Checks the index, then gathers. An index outside its row would read an element of another row. The check is
 * a gather of 0..n-1: the identity, which records a fault for an index that is out of range. */
weft_tensor *weft_take_along_axis_at(const char *where, weft_tensor *x, weft_tensor *index, int dim) {
    weft_tensor *in[2] = {x, index}, *bad = weft__reject("take_along_axis", where, in, 2);
    if (bad || !x || (bad = check_index(where, "take_along_axis", index))) return bad;
    int axis;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    bool fits = weft__axis(dim, x->rank, &axis) && index->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++) fits = i == axis || index->shape[i] == x->shape[i];
    if (!fits)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "take_along_axis: x %s and index %s do not fit together along axis %d",
                            weft__tensor_text(x, a), weft__tensor_text(index, b), dim);
    if (x->shape[axis] == x->numel)
        return weft__take_along(where, x, index, axis, false); /* there is no other row */
    weft_tensor *places = weft_iota(x->ctx, weft_dtype_of(index), 1, &x->shape[axis]);
    index = weft_gather_at(where, places, index, 0);
    return weft__poisoned(index) ? index : weft__take_along(where, x, index, axis, false);
}
