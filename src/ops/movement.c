/* Movement: reshape, permute, expand, pad, slice, and functions made of them. All are views. concat is a
 * choice between guarded views, so that each element is read once.
 * Must not know: kernels. Read next: arrange.c, graph/view.h. */
#include <string.h>
#include "ops/ops.h"

weft_tensor *weft__reshape_to(const char *where, weft_tensor *x, int rank, const int64_t *shape) {
    if (x->rank == rank && (!rank || memcmp(x->shape, shape, (size_t)rank * sizeof *shape) == 0)) return x;
    return weft__node(x->ctx, where, WEFT_OP_RESHAPE, (weft_dtype)x->dtype, rank, shape, 1, &x, 0, NULL);
}

weft_tensor *weft_reshape_at(const char *where, weft_tensor *x, int rank, const int64_t *shape) {
    weft_tensor *bad = weft__reject("reshape", where, &x, 1);
    if (bad || !x) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    int64_t full[WEFT_MAX_RANK], known = 1;
    int open = -1;
    if (rank && !shape) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "reshape: the shape is NULL");
    if (rank < 0 || rank > WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "reshape: rank %d is not in 0..%d", rank,
                            WEFT_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        full[i] = shape[i];
        if (shape[i] == -1 && open < 0)
            open = i;
        else if (shape[i] < 0 || !weft__mul(known, shape[i], &known))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "reshape: bad target %s",
                                weft__shape_text(rank, shape, a));
    }
    if (open >= 0) full[open] = known ? x->numel / known : 0;
    if (open >= 0 ? known * full[open] != x->numel : known != x->numel)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "reshape: %s has %lld elements, %s does not",
                            weft__tensor_text(x, a), (long long)x->numel, weft__shape_text(rank, shape, b));
    return weft__reshape_to(where, x, rank, full);
}

weft_tensor *weft_permute_at(const char *where, weft_tensor *x, const int *order) {
    weft_tensor *bad = weft__reject("permute", where, &x, 1);
    if (bad || !x) return bad;
    if (x->rank && !order)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "permute: the order is NULL");
    weft_attr_permutation attr = {{0}};
    int64_t shape[WEFT_MAX_RANK];
    unsigned seen = 0;
    bool moved = false;
    for (int i = 0; i < x->rank; i++) {
        int axis;
        if (!weft__axis(order[i], x->rank, &axis) || (seen >> axis & 1u))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                                "permute: order[%d] = %d, but each of 0..%d must appear once", i, order[i],
                                x->rank - 1);
        seen |= 1u << axis;
        attr.order[i] = axis;
        shape[i] = x->shape[axis];
        moved |= axis != i;
    }
    if (!moved) return x;
    return weft__node(x->ctx, where, WEFT_OP_PERMUTE, (weft_dtype)x->dtype, x->rank, shape, 1, &x,
                      sizeof attr, &attr);
}

weft_tensor *weft_transpose_at(const char *where, weft_tensor *x, int dim0, int dim1) {
    weft_tensor *bad = weft__reject("transpose", where, &x, 1);
    if (bad || !x) return bad;
    int a, b, order[WEFT_MAX_RANK];
    if (!weft__axis(dim0, x->rank, &a) || !weft__axis(dim1, x->rank, &b))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "transpose: dimension %d or %d is out of range for a tensor of rank %d", dim0,
                            dim1, x->rank);
    for (int i = 0; i < x->rank; i++) order[i] = i == a ? b : i == b ? a : i;
    return weft_permute_at(where, x, order);
}

bool weft__is_transpose(const weft_tensor *x) {
    if (x->op != WEFT_OP_PERMUTE) return false;
    const weft_attr_permutation *attr = x->attr;
    for (int i = 0; i < x->rank; i++)
        if (attr->order[i] != (i == x->rank - 1 ? x->rank - 2 : i == x->rank - 2 ? x->rank - 1 : i))
            return false;
    return true;
}

weft_tensor *weft__expand_to(const char *where, weft_tensor *x, int rank, const int64_t *shape) {
    if (x->rank < rank) { /* add leading extents of 1 */
        int64_t ones[WEFT_MAX_RANK];
        for (int i = 0; i < rank; i++) ones[i] = i < rank - x->rank ? 1 : x->shape[i - (rank - x->rank)];
        x = weft__reshape_to(where, x, rank, ones);
    }
    if (!rank || memcmp(x->shape, shape, (size_t)rank * sizeof *shape) == 0) return x;
    return weft__node(x->ctx, where, WEFT_OP_EXPAND, (weft_dtype)x->dtype, rank, shape, 1, &x, 0, NULL);
}

weft_tensor *weft_expand_at(const char *where, weft_tensor *x, int rank, const int64_t *shape) {
    weft_tensor *bad = weft__reject("expand", where, &x, 1);
    if (bad || !x) return bad;
    if (rank && !shape) return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "expand: the shape is NULL");
    if (rank < 0 || rank > WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "expand: rank %d is not in 0..%d", rank,
                            WEFT_MAX_RANK);
    int got;
    int64_t both[WEFT_MAX_RANK];
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (rank > WEFT_MAX_RANK || rank < x->rank ||
        !weft__broadcast(x->rank, x->shape, rank, shape, &got, both) ||
        memcmp(both, shape, (size_t)rank * sizeof *shape) != 0)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "expand: %s does not broadcast to %s",
                            weft__tensor_text(x, a),
                            weft__shape_text(rank > WEFT_MAX_RANK ? 0 : rank, shape, b));
    return weft__expand_to(where, x, rank, shape);
}

/* Adds zeros around x. */
static weft_tensor *pad_zeros(const char *where, weft_tensor *x, const int64_t *before,
                              const int64_t *after) {
    weft_attr_pad attr = {{0}, {0}};
    int64_t shape[WEFT_MAX_RANK];
    bool any = false;
    for (int i = 0; i < x->rank; i++) {
        attr.lo[i] = before[i];
        attr.hi[i] = after[i];
        any |= before[i] || after[i];
        if (before[i] < 0 || after[i] < 0 || !weft__add(x->shape[i], before[i], &shape[i]) ||
            !weft__add(shape[i], after[i], &shape[i]))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                                "pad: cannot pad dimension %d of extent %lld by %lld and %lld", i,
                                (long long)x->shape[i], (long long)before[i], (long long)after[i]);
    }
    if (!any) return x;
    return weft__node(x->ctx, where, WEFT_OP_PAD, (weft_dtype)x->dtype, x->rank, shape, 1, &x, sizeof attr,
                      &attr);
}

/* A bool that is true where the padded tensor holds x. */
static weft_tensor *pad_mask(const char *where, weft_tensor *x, const int64_t *before, const int64_t *after) {
    weft_tensor *ones = weft__constant(x->ctx, where, WEFT_BOOL, x->rank, x->shape, 1, 1);
    return ones->error ? ones : pad_zeros(where, ones, before, after);
}

weft_tensor *weft_pad_at(const char *where, weft_tensor *x, const int64_t *before, const int64_t *after,
                         double value) {
    weft_tensor *bad = weft__reject("pad", where, &x, 1);
    if (bad || !x) return bad;
    if (x->rank && (!before || !after))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "pad: before or after is NULL");
    weft_tensor *padded = pad_zeros(where, x, before, after);
    if (padded->error || padded == x || value == 0) return padded;
    return at_where(pad_mask(where, x, before, after), padded, weft_full_like_at(where, padded, value));
}

/* Computes Python's slice(start, stop, step).indices(extent). Returns the number of elements. */
static int64_t slice_indices(int64_t extent, int64_t *start, int64_t stop, int64_t step) {
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
    *start = *start < 0 ? *start + extent : *start;
    *start = *start < low ? low : *start > high ? high : *start;
    stop = stop < 0 ? stop + extent : stop;
    stop = stop < low ? low : stop > high ? high : stop;
    int64_t n = step > 0 ? (stop - *start + step - 1) / step : (*start - stop - step - 1) / -step;
    return n > 0 ? n : 0;
}

static weft_tensor *slice_node(const char *where, weft_tensor *x, const weft_attr_slice *attr,
                               const int64_t *shape) {
    bool whole = true;
    for (int i = 0; i < x->rank; i++)
        whole &= attr->start[i] == 0 && attr->step[i] == 1 && shape[i] == x->shape[i];
    if (whole) return x;
    return weft__node(x->ctx, where, WEFT_OP_SLICE, (weft_dtype)x->dtype, x->rank, shape, 1, &x, sizeof *attr,
                      attr);
}

weft_tensor *weft_slice_at(const char *where, weft_tensor *x, const int64_t *start, const int64_t *stop,
                           const int64_t *step) {
    weft_tensor *bad = weft__reject("slice", where, &x, 1);
    if (bad || !x) return bad;
    weft_attr_slice attr = {{0}, {0}};
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        int64_t by = step ? step[i] : 1;
        if (by == 0)
            return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "slice: the step is 0 in dimension %d", i);
        if (by > x->shape[i]) by = x->shape[i] + 1; /* reaches beyond any end, and nothing overflows */
        if (by < -x->shape[i]) by = -x->shape[i] - 1;
        int64_t from = start ? start[i] : by > 0 ? 0 : -1;
        if (stop || by > 0)
            shape[i] = slice_indices(x->shape[i], &from, stop ? stop[i] : x->shape[i], by);
        else { /* backwards to the beginning */
            from = from < 0 ? from + x->shape[i] : from >= x->shape[i] ? x->shape[i] - 1 : from;
            shape[i] = from < 0 ? 0 : from / -by + 1;
        }
        attr.start[i] = shape[i] ? from : 0;
        attr.step[i] = by;
    }
    return slice_node(where, x, &attr, shape);
}

weft_tensor *weft_narrow_at(const char *where, weft_tensor *x, int dim, int64_t start, int64_t extent) {
    weft_tensor *bad = weft__reject("narrow", where, &x, 1);
    if (bad || !x) return bad;
    int axis;
    if (!weft__axis(dim, x->rank, &axis))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "narrow: dimension %d is out of range for a tensor of rank %d", dim, x->rank);
    if (start < 0 || extent < 0 || start > x->shape[axis] - extent)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "narrow: %lld elements from %lld on are not in an extent of %lld",
                            (long long)extent, (long long)start, (long long)x->shape[axis]);
    weft_attr_slice attr = {{0}, {0}};
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        attr.start[i] = i == axis && extent ? start : 0;
        attr.step[i] = 1;
        shape[i] = i == axis ? extent : x->shape[i];
    }
    return slice_node(where, x, &attr, shape);
}

weft_tensor *weft_flip_at(const char *where, weft_tensor *x, int dim) {
    weft_tensor *bad = weft__reject("flip", where, &x, 1);
    if (bad || !x) return bad;
    int axis;
    if (!weft__axis(dim, x->rank, &axis))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "flip: dimension %d is out of range for a tensor of rank %d", dim, x->rank);
    weft_attr_slice attr = {{0}, {0}};
    for (int i = 0; i < x->rank; i++) {
        attr.start[i] = i == axis && x->shape[i] ? x->shape[i] - 1 : 0;
        attr.step[i] = i == axis ? -1 : 1;
    }
    return slice_node(where, x, &attr, x->shape);
}

weft_tensor *weft_squeeze_at(const char *where, weft_tensor *x, int dim) {
    weft_tensor *bad = weft__reject("squeeze", where, &x, 1);
    if (bad || !x) return bad;
    int axis, n = 0;
    int64_t shape[WEFT_MAX_RANK];
    if (!weft__axis(dim, x->rank, &axis) || x->shape[axis] != 1) {
        char a[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "squeeze: dimension %d of %s does not have an extent of 1", dim,
                            weft__tensor_text(x, a));
    }
    for (int i = 0; i < x->rank; i++)
        if (i != axis) shape[n++] = x->shape[i];
    return weft__reshape_to(where, x, n, shape);
}

weft_tensor *weft_unsqueeze_at(const char *where, weft_tensor *x, int dim) {
    weft_tensor *bad = weft__reject("unsqueeze", where, &x, 1);
    if (bad || !x) return bad;
    int axis;
    int64_t shape[WEFT_MAX_RANK + 1];
    if (!weft__axis(dim, x->rank + 1, &axis) || x->rank == WEFT_MAX_RANK)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "unsqueeze: dimension %d is out of range for a tensor of rank %d, or the result "
                            "has more than %d dimensions",
                            dim, x->rank, WEFT_MAX_RANK);
    for (int i = 0; i <= x->rank; i++) shape[i] = i == axis ? 1 : x->shape[i < axis ? i : i - 1];
    return weft__reshape_to(where, x, x->rank + 1, shape);
}

/* Each element of a concatenation chooses among all parts, and so does each element of a part's gradient.
 * More parts than this are therefore joined in groups first, and the groups in turn. */
enum { CONCAT_MOST = 32 };

/* No program joins more parts. A larger count is a mistake, and the list would be read past its end. */
enum { MOST_PARTS = 65536 };

static weft_tensor *check_parts(const char *op, const char *where, weft_tensor *const *parts, int count) {
    if (!parts || count < 1 || count > MOST_PARTS)
        return weft__poison(NULL, where, WEFT_ERR_ARGUMENT,
                            "%s: parts is %s, count is %d; give 1 to %d parts", op, parts ? "given" : "NULL",
                            count, MOST_PARTS);
    return weft__reject(op, where, parts, count);
}

static weft_tensor *concat_groups(const char *where, weft_tensor *const *parts, int count, int axis) {
    weft_context *ctx = parts[0]->ctx;
    weft_tensor **groups = weft__array(ctx, (size_t)count / CONCAT_MOST + 1, sizeof *groups);
    if (!groups) return &ctx->graph->oom;
    int n = 0;
    for (int from = 0; from < count; from += CONCAT_MOST) {
        const int left = count - from;
        groups[n++] = weft_concat_at(where, parts + from, left < CONCAT_MOST ? left : CONCAT_MOST, axis);
    }
    weft_tensor *all = weft_concat_at(where, groups, n, axis);
    weft__free(ctx, groups);
    return all;
}

weft_tensor *weft_concat_at(const char *where, weft_tensor *const *parts, int count, int dim) {
    weft_tensor *bad = check_parts("concat", where, parts, count);
    if (bad) return bad;
    weft_tensor *first = parts[0];
    int axis;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (!weft__axis(dim, first->rank, &axis))
        return weft__poison(first->ctx, where, WEFT_ERR_SHAPE,
                            "concat: axis %d is out of range for a tensor of rank %d", dim, first->rank);
    int64_t total = 0;
    for (int p = 0; p < count; p++) {
        if (parts[p]->dtype != first->dtype)
            return weft__poison(first->ctx, where, WEFT_ERR_DTYPE,
                                "concat: part %d is %s, the first is %s; convert one with weft_cast", p,
                                weft__tensor_text(parts[p], a), weft__tensor_text(first, b));
        bool fits = parts[p]->rank == first->rank;
        for (int i = 0; fits && i < first->rank; i++)
            fits = i == axis || parts[p]->shape[i] == first->shape[i];
        if (!fits || !weft__add(total, parts[p]->shape[axis], &total))
            return weft__poison(first->ctx, where, WEFT_ERR_SHAPE,
                                "concat: part %d is %s, the first is %s; they may differ only along the axis",
                                p, weft__tensor_text(parts[p], a), weft__tensor_text(first, b));
    }
    if (count > CONCAT_MOST) return concat_groups(where, parts, count, axis);
    weft_tensor *all = NULL;
    int64_t before[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
    for (int p = 0; p < count; p++) {
        after[axis] = total - before[axis] - parts[p]->shape[axis];
        weft_tensor *placed = pad_zeros(where, parts[p], before, after);
        if (placed->error) return placed;
        all = all ? at_where(pad_mask(where, parts[p], before, after), placed, all) : placed;
        before[axis] += parts[p]->shape[axis];
    }
    return all;
}

weft_tensor *weft_stack_at(const char *where, weft_tensor *const *parts, int count, int axis) {
    weft_tensor *bad = check_parts("stack", where, parts, count);
    if (bad) return bad;
    int rank = parts[0]->rank, at;
    if (rank == WEFT_MAX_RANK || !weft__axis(axis, rank + 1, &at))
        return weft__poison(parts[0]->ctx, where, WEFT_ERR_SHAPE,
                            "stack: axis %d is out of range for parts of rank %d, or their rank is above %d",
                            axis, rank, WEFT_MAX_RANK - 1);
    weft_tensor **rows = weft__array(parts[0]->ctx, (size_t)count, sizeof *rows);
    if (!rows) return &parts[0]->ctx->graph->oom;
    for (int p = 0; p < count; p++) rows[p] = weft_unsqueeze_at(where, parts[p], at);
    weft_tensor *all = weft_concat_at(where, rows, count, at);
    weft__free(parts[0]->ctx, rows);
    return all;
}
