/* Builds the nodes of argsort and top-k. Must not know: how a device sorts. Read next: heavy/argsort.h. */
#include "compiler/passes/heavy/heavy.h"

weft_status weft__build_argsort(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_sorted *attr = t->attr;
    const weft_tensor *input = t->in[0];
    heavy_operand x;
    WEFT_TRY(weft__ir_take_operand(ir, in[0], input->rank, input->shape, weft__ir_contiguous, &x));
    weft_heavy heavy = {.kind = WEFT_HEAVY_ARGSORT};
    heavy.as.argsort = (weft_heavy_argsort){.dtype = input->dtype,
                                            .descending = attr->descending != 0,
                                            .rows = weft__ir_extent_of(t->shape, 0, t->rank - 1),
                                            .extent = input->shape[t->rank - 1],
                                            .count = attr->count};
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "argsort");
    int n = weft__ir_heavy_node(ir, t, &heavy, 1, &x.edge);
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, WEFT_I32, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
