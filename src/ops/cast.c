/* Conversions of dtype, and detach, which stops gradients.
 * Must not know: optimizers. Read next: graph/variable.h for rounded copies. */
#include "ops/ops.h"

weft_tensor *weft_cast_at(const char *where, weft_tensor *x, weft_dtype dtype) {
    weft_tensor *bad = weft__reject("cast", where, &x, 1);
    if (bad || !x) return bad;
    if (x->ctx->hooks.check_dtype(x->ctx, (int)dtype) != WEFT_OK)
        return weft__poison(x->ctx, where, weft_last_status(x->ctx), "cast: %s", weft_last_error(x->ctx));
    if (x->dtype == dtype) return x;
    if (is_complex(x) || weft_dtype_is_complex(dtype)) return weft__complex_cast(where, x, dtype);
    return weft__node(x->ctx, where, WEFT_OP_CAST, dtype, x->rank, x->shape, 1, &x, 0, NULL);
}

/* Reads the rounded copy of a variable if there is one. The gradient still flows to the variable, as through
 * any cast. */
weft_tensor *weft__rounded_at(const char *where, weft_tensor *x, weft_dtype dtype) {
    const bool variable = x && !x->error && x->leaf == WEFT_LEAF_STORAGE && x->dtype != dtype;
    weft_tensor *part = variable ? weft__rounded_part(where, x, dtype) : NULL;
    if (!part) return weft_cast_at(where, x, dtype);
    if (part->error) return part;
    return weft__node(x->ctx, where, WEFT_OP_CAST, dtype, x->rank, x->shape, 2,
                      (weft_tensor *const[]){x, part}, 0, NULL);
}

weft_tensor *weft_detach_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("detach", where, &x, 1);
    if (bad || !x) return bad;
    return weft__node(x->ctx, where, WEFT_OP_DETACH, (weft_dtype)x->dtype, x->rank, x->shape, 1, &x, 0, NULL);
}
