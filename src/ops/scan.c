/* Running sums and products: cumsum, cumprod. Each is one node, which every device must compute. Small
 * integers are widened, as in sums.
 * Must not know: kernels. Read next: reduce.c; heavy/scan.h. */
#include "ops/composite.h"
#include "ops/ops.h"

weft_tensor *weft__scan(const char *where, weft_tensor *x, int axis, bool product, bool reverse) {
    if (weft__poisoned(x)) return x;
    if (is_half((weft_dtype)x->dtype)) {
        weft_tensor *wide = weft__scan(where, weft_cast_at(where, x, WEFT_F32), axis, product, reverse);
        return as_dtype(where, wide, (weft_dtype)x->dtype);
    }
    const weft_attr_scan attr = {axis, product, reverse};
    return weft__node(x->ctx, where, WEFT_OP_SCAN, (weft_dtype)x->dtype, x->rank, x->shape, 1, &x,
                      sizeof attr, &attr);
}

static weft_tensor *scan(const char *where, const char *name, weft_tensor *x, int axis, bool product) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    if (bad || !x) return bad;
    int at;
    char text[WEFT_SHAPE_TEXT];
    if (!weft__axis(axis, x->rank, &at))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: axis %d is out of range for %s", name, axis,
                            weft__tensor_text(x, text));
    if (is_complex(x)) return weft__complex_scan(where, x, at, product);
    if (!weft_dtype_is_float((weft_dtype)x->dtype) &&
        !weft__dtype_in((weft_dtype)x->dtype, WEFT_CLASS_INTEGER))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "%s: %s is not accepted", name,
                            weft__tensor_text(x, text));
    if (weft__dtype_in((weft_dtype)x->dtype, WEFT_CLASS_INTEGER) && weft_dtype_size((weft_dtype)x->dtype) < 8)
        x = weft_cast_at(where, x, WEFT_I64);
    return weft__scan(where, x, at, product, false);
}

/* ---- products by multiplications alone: all their derivatives are right, also where numbers are 0 ---- */

weft_tensor *weft__product_along(const char *where, weft_tensor *x, int dim) {
    while (!x->error && x->shape[dim] > 1) {
        const int64_t n = x->shape[dim], half = n / 2;
        weft_tensor *rest = n % 2 ? weft_narrow_at(where, x, dim, n - 1, 1) : NULL;
        x = at_mul(weft_narrow_at(where, x, dim, 0, half), weft_narrow_at(where, x, dim, half, half));
        if (rest) x = weft_concat_at(where, (weft_tensor *const[]){x, rest}, 2, dim);
    }
    if (x->error || x->shape[dim] == 1) return x;
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < x->rank; i++) shape[i] = i == dim ? 1 : x->shape[i];
    return weft__constant(x->ctx, where, (weft_dtype)x->dtype, x->rank, shape, 1, 1); /* of nothing */
}

/* Multiplies the 2, 4, 8, ... elements up to each element (Hillis and Steele, "Data parallel algorithms",
 * 1986). */
weft_tensor *weft__products_along(const char *where, weft_tensor *x, int axis) {
    for (int64_t step = 1; !x->error && step < x->shape[axis]; step *= 2) {
        int64_t before[WEFT_MAX_RANK] = {0}, none[WEFT_MAX_RANK] = {0};
        before[axis] = step;
        weft_tensor *rest = weft_narrow_at(where, x, axis, 0, x->shape[axis] - step);
        x = at_mul(x, weft_pad_at(where, rest, before, none, 1));
    }
    return x;
}

/* ---- public functions ---- */

weft_tensor *weft_cumsum_at(const char *where, weft_tensor *x, int axis) {
    return scan(where, "cumsum", x, axis, false);
}

weft_tensor *weft_cumprod_at(const char *where, weft_tensor *x, int axis) {
    return scan(where, "cumprod", x, axis, true);
}
