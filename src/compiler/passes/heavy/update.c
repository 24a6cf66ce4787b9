/* Builds the nodes of slice updates. Must not know: how a device updates. Read next: heavy/update.h. */
#include "compiler/passes/heavy/heavy.h"

weft_status weft__build_update(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_axis *attr = t->attr;
    heavy_operand x, value, offset;
    int64_t one = 1;
    WEFT_TRY(weft__ir_take_operand(ir, in[0], t->rank, t->shape, weft__ir_contiguous, &x));
    WEFT_TRY(weft__ir_take_operand(ir, in[1], t->rank, t->in[1]->shape, weft__ir_contiguous, &value));
    WEFT_TRY(weft__ir_take_operand(ir, in[2], 1, &one, weft__ir_contiguous, &offset));
    int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_UPDATE};
    heavy.as.update = (weft_heavy_update){.dtype = (uint8_t)t->dtype,
                                          .outer = weft__ir_extent_of(t->shape, 0, axis),
                                          .total = t->shape[axis],
                                          .extent = attr->extent,
                                          .inner = weft__ir_extent_of(t->shape, axis + 1, t->rank)};
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "update");
    int n = weft__ir_heavy_node(ir, t, &heavy, 3, (ir_edge[]){x.edge, value.edge, offset.edge});
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
