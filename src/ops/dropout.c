/* Dropout (Srivastava et al. 2014), scaled at training time. The mask is a function of the layer's random
 * stream. The backward pass draws it again instead of keeping it.
 * Must not know: layers. Read next: source.c. */
#include "ops/composite.h"
#include "ops/ops.h"

/* Draws one number for each element of the first `drawn` dimensions. The other dimensions share it. */
static weft_tensor *dropout_drop(const char *name, const char *where, weft_tensor *x, int drawn, double p) {
    if (!(p >= 0.0 && p <= 1.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "%s: probability %g is not in 0..1", name, p);
    if (p == 0.0) return x;
    if (p == 1.0) return at_zeros_like(x);
    weft_tensor *u = weft__uniform_of_layer(where, x->ctx, drawn, x->shape);
    if (drawn < x->rank && !weft__poisoned(u)) {
        int64_t shape[WEFT_MAX_RANK];
        for (int i = 0; i < x->rank; i++) shape[i] = i < drawn ? x->shape[i] : 1;
        u = weft__reshape_to(where, u, x->rank, shape);
    }
    weft_tensor *kept = weft_ge_at(where, u, weft_full_like_at(where, u, p));
    return at_where(kept, at_mul_scalar(x, 1.0 / (1.0 - p)), at_zeros_like(x));
}

weft_tensor *weft_dropout_at(const char *where, weft_tensor *x, double p) {
    weft_tensor *bad = reject_float("dropout", where, x);
    return bad || !x ? bad : dropout_drop("dropout", where, x, x->rank, p);
}

weft_tensor *weft_dropout2d_at(const char *where, weft_tensor *x, double p) {
    weft_tensor *bad = reject_float("dropout2d", where, x);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (x->rank < 2)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "dropout2d: x %s must be (N, C, ...)",
                            weft__tensor_text(x, text));
    return dropout_drop("dropout2d", where, x, 2, p);
}
