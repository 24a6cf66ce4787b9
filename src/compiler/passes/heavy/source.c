/* Builds the nodes of ops that a user defined by kernel source. Must not know: what the source computes. Read
 * next: heavy/source.h. */
#include "compiler/passes/heavy/heavy.h"

weft_status weft__build_source(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_source *source = ((const weft_defined_params *)weft__params_of(t))->source;
    const weft_tensor *x = t->in[0];
    const weft_heavy heavy = {.kind = WEFT_HEAVY_SOURCE,
                              .as.source = {.name = source->name,
                                            .code = source->text,
                                            .dtype = x->dtype,
                                            .dialect = (uint8_t)source->dialect,
                                            .arity = t->n_in,
                                            .items = source->items,
                                            .n = x->numel}};
    if (!weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    heavy_operand op;
    ir_edge edges[4];
    for (int i = 0; i < t->n_in; i++) {
        WEFT_TRY(weft__ir_take_operand(ir, in[i], x->rank, x->shape, weft__ir_contiguous, &op));
        edges[i] = op.edge;
    }
    int n = weft__ir_heavy_node(ir, t, &heavy, t->n_in, edges);
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, (weft_dtype)x->dtype, x->rank, x->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
