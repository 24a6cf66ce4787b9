/* Rearranging and selecting by place: roll, tile, repeat_interleave, padding by modes, diagonals, triangles,
 * outer. All are made of movement, choices by a mask of indices, and concat. They have no kernel and no
 * gradient of their own.
 * Must not know: kernels, layers. Read next: movement.c. */
#include <string.h>
#include "ops/ops.h"

/* x as (outer, extent, inner), with dimension dim in the middle. */
static weft_tensor *around(const char *where, weft_tensor *x, int dim, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int i = 0; i < x->rank; i++) {
        if (i < dim) *outer *= x->shape[i];
        if (i > dim) *inner *= x->shape[i];
    }
    return weft__reshape_to(where, x, 3, (int64_t[]){*outer, x->shape[dim], *inner});
}

static weft_tensor *no_dimension(const char *where, const char *op, weft_tensor *x, int dim) {
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: %s has no dimension %d", op,
                        weft__tensor_text(x, text), dim);
}

weft_tensor *weft_roll_at(const char *where, weft_tensor *x, int64_t shift, int dim) {
    weft_tensor *bad = weft__reject("roll", where, &x, 1);
    if (bad || !x) return bad;
    int d = 0;
    if (dim == WEFT_ALL_AXES) {
        weft_tensor *flat = weft__reshape_to(where, x, 1, &x->numel);
        flat = weft_roll_at(where, flat, shift, 0);
        return weft__poisoned(flat) ? flat : weft__reshape_to(where, flat, x->rank, x->shape);
    }
    if (!weft__axis(dim, x->rank, &d)) return no_dimension(where, "roll", x, dim);
    const int64_t n = x->shape[d];
    shift = n ? shift % n : 0;
    if (shift < 0) shift += n;
    if (shift == 0) return x;
    weft_tensor *parts[2] = {weft_narrow_at(where, x, d, n - shift, shift),
                             weft_narrow_at(where, x, d, 0, n - shift)};
    return weft_concat_at(where, parts, 2, d);
}

weft_tensor *weft_tile_at(const char *where, weft_tensor *x, const int64_t *counts) {
    weft_tensor *bad = weft__reject("tile", where, &x, 1);
    if (bad || !x) return bad;
    if (x->rank && !counts)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "tile: the counts are NULL");
    int64_t shape[WEFT_MAX_RANK];
    char text[WEFT_SHAPE_TEXT];
    for (int d = 0; d < x->rank; d++)
        if (counts[d] < 0 || !weft__mul(x->shape[d], counts[d], &shape[d]))
            return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                                "tile: a count of %lld for dimension %d of %s is negative or too large",
                                (long long)counts[d], d, weft__tensor_text(x, text));
    for (int d = 0; d < x->rank && !weft__poisoned(x); d++) {
        if (counts[d] == 1) continue;
        const int rank = x->rank;
        int64_t outer, inner, full[WEFT_MAX_RANK];
        memcpy(full, x->shape, sizeof full);
        full[d] = shape[d];
        const int64_t n = x->shape[d];
        x = around(where, x, d, &outer, &inner);
        if (weft__poisoned(x)) return x;
        x = weft__reshape_to(where, x, 3, (int64_t[]){outer, 1, n * inner});
        if (weft__poisoned(x)) return x;
        x = weft__expand_to(where, x, 3, (int64_t[]){outer, counts[d], n * inner});
        if (!weft__poisoned(x)) x = weft__reshape_to(where, x, rank, full);
    }
    return x;
}

weft_tensor *weft_repeat_interleave_at(const char *where, weft_tensor *x, int64_t count, int dim) {
    weft_tensor *bad = weft__reject("repeat_interleave", where, &x, 1);
    if (bad || !x) return bad;
    int d;
    if (!weft__axis(dim, x->rank, &d)) return no_dimension(where, "repeat_interleave", x, dim);
    int64_t outer, inner, shape[WEFT_MAX_RANK];
    char text[WEFT_SHAPE_TEXT];
    memcpy(shape, x->shape, sizeof shape);
    if (count < 0 || !weft__mul(x->shape[d], count, &shape[d]))
        return weft__poison(
            x->ctx, where, WEFT_ERR_ARGUMENT,
            "repeat_interleave: a count of %lld for dimension %d of %s is negative or too large",
            (long long)count, d, weft__tensor_text(x, text));
    const int rank = x->rank;
    const int64_t n = x->shape[d];
    x = around(where, x, d, &outer, &inner);
    if (!weft__poisoned(x)) x = weft__reshape_to(where, x, 3, (int64_t[]){outer * n, 1, inner});
    if (!weft__poisoned(x)) x = weft__expand_to(where, x, 3, (int64_t[]){outer * n, count, inner});
    return weft__poisoned(x) ? x : weft__reshape_to(where, x, rank, shape);
}

/* ---- padding with elements of x ---- */

/* The `count` elements that stand before (or after) x along d. */
static weft_tensor *border(const char *where, weft_tensor *x, int d, int64_t count, bool before,
                           weft_pad_mode mode) {
    const int64_t n = x->shape[d];
    if (mode == WEFT_PAD_CIRCULAR) return weft_narrow_at(where, x, d, before ? n - count : 0, count);
    if (mode == WEFT_PAD_REFLECT)
        return weft_flip_at(where, weft_narrow_at(where, x, d, before ? 1 : n - 1 - count, count), d);
    weft_tensor *edge = weft_narrow_at(where, x, d, before ? 0 : n - 1, 1);
    if (weft__poisoned(edge)) return edge;
    int64_t shape[WEFT_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[d] = count;
    return weft__expand_to(where, edge, x->rank, shape);
}

weft_tensor *weft_pad_with_at(const char *where, weft_tensor *x, const int64_t *before, const int64_t *after,
                              weft_pad_mode mode) {
    weft_tensor *bad = weft__reject("pad_with", where, &x, 1);
    if (bad || !x) return bad;
    if ((x->rank && (!before || !after)) || (int)mode < 0 || mode > WEFT_PAD_CIRCULAR)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                            "pad_with: before or after is NULL, or the mode is unknown");
    char text[WEFT_SHAPE_TEXT];
    for (int d = 0; d < x->rank; d++) {
        const int64_t n = x->shape[d], most = mode == WEFT_PAD_REFLECT    ? n - 1
                                              : mode == WEFT_PAD_CIRCULAR ? n
                                              : n                         ? INT64_MAX
                                                                          : 0;
        if (before[d] == 0 && after[d] == 0) continue;
        if (before[d] < 0 || after[d] < 0 || before[d] > most || after[d] > most)
            return weft__poison(
                x->ctx, where, WEFT_ERR_SHAPE,
                "pad_with: cannot pad dimension %d of %s by %lld and %lld; this mode allows 0 to %lld", d,
                weft__tensor_text(x, text), (long long)before[d], (long long)after[d],
                (long long)(most < 0 ? 0 : most));
    }
    for (int d = 0; !weft__poisoned(x) && d < x->rank; d++) {
        weft_tensor *parts[3];
        int count = 0;
        if (before[d]) parts[count++] = border(where, x, d, before[d], true, mode);
        parts[count++] = x;
        if (after[d]) parts[count++] = border(where, x, d, after[d], false, mode);
        if (count > 1) x = weft_concat_at(where, parts, count, d);
    }
    return x;
}

/* ---- matrices ---- */

weft_tensor *weft_diagonal_at(const char *where, weft_tensor *x, int64_t offset, int dim0, int dim1) {
    weft_tensor *bad = weft__reject("diagonal", where, &x, 1);
    if (bad || !x) return bad;
    int a, b, order[WEFT_MAX_RANK], rank = 0;
    char text[WEFT_SHAPE_TEXT];
    if (!weft__axis(dim0, x->rank, &a) || !weft__axis(dim1, x->rank, &b) || a == b)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "diagonal: dimensions %d and %d must be two different dimensions of %s", dim0,
                            dim1, weft__tensor_text(x, text));
    const int64_t n = x->shape[a], m = x->shape[b];
    int64_t shape[WEFT_MAX_RANK], outer = 1, length = 0, first = 0;
    for (int i = 0; i < x->rank; i++) {
        if (i == a || i == b) continue;
        shape[rank] = x->shape[i];
        outer *= x->shape[i];
        order[rank++] = i;
    }
    order[rank] = a;
    order[rank + 1] = b;
    if (offset >= 0 && offset < m) { /* the diagonal stays within both extents */
        length = n < m - offset ? n : m - offset;
        first = offset;
    } else if (offset < 0 && offset > -n) {
        length = n + offset < m ? n + offset : m;
        first = -offset * m;
    }
    shape[rank] = length;
    x = weft_permute_at(where, x, order);
    if (weft__poisoned(x)) return x;
    if (length == 0)
        return weft__reshape_to(where, weft_narrow_at(where, x, x->rank - 1, 0, 0), rank + 1, shape);
    x = weft__reshape_to(where, x, 2, (int64_t[]){outer, n * m});
    if (weft__poisoned(x)) return x;
    x = weft_slice_at(where, x, (int64_t[]){0, first}, (int64_t[]){outer, first + (length - 1) * (m + 1) + 1},
                      (int64_t[]){1, m + 1});
    return weft__poisoned(x) ? x : weft__reshape_to(where, x, rank + 1, shape);
}

weft_tensor *weft_trace_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("trace", where, &x, 1);
    if (bad || !x) return bad;
    if (x->rank < 2) return no_dimension(where, "trace", x, -2);
    return weft_sum_at(where, weft_diagonal_at(where, x, 0, -2, -1), -1, false);
}

/* A mask that is true where column - row <= k. */
static weft_tensor *lower(const char *where, weft_tensor *x, int64_t k) {
    const int64_t rows[2] = {x->shape[x->rank - 2], 1}, columns = x->shape[x->rank - 1];
    weft_tensor *row = weft_iota(x->ctx, WEFT_I64, 1, rows),
                *column = weft_iota(x->ctx, WEFT_I64, 1, &columns);
    if (weft__poisoned(row) || weft__poisoned(column)) return weft__poisoned(row) ? row : column;
    const int64_t far = rows[0] + columns; /* no |column - row| is larger */
    k = k > far ? far : k < -far ? -far : k;
    weft_tensor *limit = weft__constant(x->ctx, where, WEFT_I64, 0, NULL, (double)k, k);
    return weft_le_at(where, column, at_add(weft__reshape_to(where, row, 2, rows), limit));
}

static weft_tensor *triangle(const char *where, const char *op, weft_tensor *x, int64_t k, bool low) {
    weft_tensor *bad = weft__reject(op, where, &x, 1);
    if (bad || !x) return bad;
    if (x->rank < 2) return no_dimension(where, op, x, -2);
    weft_tensor *mask = lower(where, x, low ? k : k == INT64_MIN ? k : k - 1);
    return low ? at_where(mask, x, at_zeros_like(x)) : at_where(mask, at_zeros_like(x), x);
}

weft_tensor *weft_tril_at(const char *where, weft_tensor *x, int64_t k) {
    return triangle(where, "tril", x, k, true);
}

weft_tensor *weft_triu_at(const char *where, weft_tensor *x, int64_t k) {
    return triangle(where, "triu", x, k, false);
}

weft_tensor *weft_outer_at(const char *where, weft_tensor *a, weft_tensor *b) {
    weft_tensor *in[2] = {a, b}, *bad = weft__reject("outer", where, in, 2);
    if (bad || !a) return bad;
    return at_mul(weft__reshape_to(where, a, 2, (int64_t[]){a->numel, 1}),
                  weft__reshape_to(where, b, 2, (int64_t[]){1, b->numel}));
}

/* ---- by mask and class ---- */

weft_tensor *weft_masked_fill_at(const char *where, weft_tensor *x, weft_tensor *mask, double value) {
    weft_tensor *in[2] = {x, mask}, *bad = weft__reject("masked_fill", where, in, 2);
    if (bad || !x) return bad;
    weft_tensor *number = weft__number(x->ctx, where, "masked_fill", (weft_dtype)x->dtype, 0, NULL, value);
    return weft__poisoned(number) ? number : at_where(mask, number, x);
}

weft_tensor *weft_one_hot_at(const char *where, weft_tensor *index, int64_t classes, weft_dtype dtype) {
    weft_tensor *bad = weft__reject("one_hot", where, &index, 1);
    if (bad || !index) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (!weft__dtype_in((weft_dtype)index->dtype, WEFT_CLASS_INTEGER) || index->dtype == WEFT_BOOL)
        return weft__poison(index->ctx, where, WEFT_ERR_DTYPE, "one_hot: the index is %s, not an integer",
                            weft__tensor_text(index, text));
    if (classes < 0 || classes > INT32_MAX || index->rank == WEFT_MAX_RANK)
        return weft__poison(index->ctx, where, WEFT_ERR_SHAPE,
                            "one_hot: %lld classes for index %s: the number is negative or too large, or the "
                            "index has too many dimensions",
                            (long long)classes, weft__tensor_text(index, text));
    const bool wide = weft_dtype_size((weft_dtype)index->dtype) > 4 || index->dtype == WEFT_U32;
    index = weft_cast_at(where, index, wide ? WEFT_I64 : WEFT_I32);
    weft_tensor *class = weft_iota(index->ctx, wide ? WEFT_I64 : WEFT_I32, 1, &classes);
    return weft_cast_at(where, at_eq(weft_unsqueeze_at(where, index, -1), class), dtype);
}
