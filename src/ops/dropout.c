/* Dropout (Srivastava et al. 2014), scaled at training time. The mask is a function of the layer's random
 * stream, so backward draws it again instead of keeping it. */
#include "ops/composite.h"

weft_tensor *weft_dropout_at(const char *where, weft_tensor *x, double p) {
    weft_tensor *bad = reject_float("dropout", where, x);
    if (bad || !x) return bad;
    if (!(p >= 0.0 && p <= 1.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "dropout: probability %g is not in 0..1", p);
    if (p == 0.0) return x;
    if (p == 1.0) return zero(x);
    weft_tensor *u = weft__uniform_of_layer(where, x->ctx, x->rank, x->shape);
    weft_tensor *kept = weft_ge_at(where, u, weft_full_like_at(where, u, p));
    return select(kept, mulc(x, 1.0 / (1.0 - p)), zero(x));
}
