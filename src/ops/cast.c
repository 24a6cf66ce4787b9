/* Conversions of dtype, and stopping gradients. */
#include "ops/ops.h"

weft_tensor *weft_cast_at(const char *where, weft_tensor *x, weft_dtype dtype) {
    weft_tensor *bad = weft__reject("cast", where, &x, 1);
    if (bad || !x) return bad;
    if (x->ctx->hooks.check_dtype(x->ctx, (int)dtype) != WEFT_OK)
        return weft__poison(x->ctx, where, weft_last_status(x->ctx), "cast: %s", weft_last_error(x->ctx));
    if (x->dtype == dtype) return x;
    return weft__node(x->ctx, where, WEFT_OP_CAST, dtype, x->rank, x->shape, 1, &x, 0, NULL);
}

weft_tensor *weft_detach_at(const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject("detach", where, &x, 1);
    if (bad || !x) return bad;
    return weft__node(x->ctx, where, WEFT_OP_DETACH, (weft_dtype)x->dtype, x->rank, x->shape, 1, &x, 0, NULL);
}
