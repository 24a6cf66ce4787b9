/* Pack: several tensors placed in one block, as the optimizer wants gradients. Kernels write their part in
 * place where they can.
 * Must not know: optimizers. Read next: optim/gradients.c, compiler/passes/. */
#include "ops/ops.h"

weft_tensor *weft__pack(const char *where, weft_tensor *const *parts, const int64_t *offsets, int count,
                        int64_t n) {
    weft_tensor *bad = weft__reject("pack", where, parts, count);
    if (bad || count <= 0) return bad;
    if ((size_t)count * sizeof *offsets > UINT16_MAX) /* limit of a node's attributes */
        return weft__poison(parts[0]->ctx, where, WEFT_ERR_UNSUPPORTED, "pack: %d parts are more than %d",
                            count, (int)(UINT16_MAX / sizeof *offsets));
    int64_t end = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i]->dtype != parts[0]->dtype || offsets[i] < end || parts[i]->numel > n - offsets[i])
            return weft__poison(parts[0]->ctx, where, WEFT_ERR_ARGUMENT, "pack: part %d does not fit at %lld",
                                i, (long long)offsets[i]);
        end = offsets[i] + parts[i]->numel;
    }
    if (parts[0]->numel == n) return weft_reshape_at(where, parts[0], 1, &n); /* it fills all: a view */
    return weft__node(parts[0]->ctx, where, WEFT_OP_PACK, (weft_dtype)parts[0]->dtype, 1, &n, count, parts,
                      (size_t)count * sizeof *offsets, offsets);
}
