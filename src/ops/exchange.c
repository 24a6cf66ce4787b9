/* Exchange: the sum of a vector over the processes that train together, or this process' part of the sum. It
 * is recorded like any op, so that a program can exchange some gradients while it computes others. Must not
 * know: processes. Read next: optim/gradients.c, heavy/exchange.h. */
#include "ops/build.h"
#include "ops/ops.h"

weft_tensor *weft__exchange(const char *where, weft_tensor *x, const weft_attr_exchange *attr) {
    weft_tensor *bad = weft__reject("exchange", where, &x, 1);
    if (bad) return bad;
    if (attr->part)
        return weft__node(x->ctx, where, WEFT_OP_EXCHANGE, (weft_dtype)x->dtype, 1, &attr->part, 1, &x,
                          sizeof *attr, attr);
    return weft__node(x->ctx, where, WEFT_OP_EXCHANGE, (weft_dtype)x->dtype, x->rank, x->shape, 1, &x,
                      sizeof *attr, attr);
}
