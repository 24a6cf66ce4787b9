/* Builds the nodes of packed matrices: unpacking, and matmuls that read the blocks. Must not know: how a
 * device reads blocks. Read next: heavy/packed.h. */
#include "compiler/passes/heavy/heavy.h"

/* t is one of the composites of ops/packed.c. Its params begin with the format. */
weft_status weft__build_packed(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const bool multiply = t->n_in == 2;
    const weft_tensor *x = t->in[0], *packed = t->in[t->n_in - 1];
    const int format = (int)*(const int64_t *)weft__params_of(t);
    const weft_packed_info *info = weft__packed_info(format);
    int64_t shape[WEFT_MAX_RANK];
    const int rank = multiply ? 2 : packed->rank;
    const int64_t bytes = packed->shape[packed->rank - 1], k = bytes / info->bytes * info->elements;
    weft_heavy heavy = {.kind = WEFT_HEAVY_PACKED,
                        .as.packed = {.format = (uint8_t)format,
                                      .multiply = multiply,
                                      .m = multiply ? x->shape[0] : 0,
                                      .n = weft__ir_extent_of(packed->shape, 0, packed->rank - 1),
                                      .k = k}};
    if ((multiply && x->dtype != WEFT_F32) || !weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    heavy_operand op;
    ir_edge edges[2];
    for (int i = 0; i < t->n_in; i++) {
        WEFT_TRY(weft__ir_take_operand(ir, in[i], t->in[i]->rank, t->in[i]->shape, weft__ir_contiguous, &op));
        edges[i] = op.edge;
    }
    for (int i = 0; i < rank; i++) shape[i] = multiply ? x->shape[i] : packed->shape[i];
    shape[rank - 1] = multiply ? packed->shape[0] : k;
    int n = weft__ir_heavy_node(ir, t, &heavy, t->n_in, edges);
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, WEFT_F32, rank, shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
