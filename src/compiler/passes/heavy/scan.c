/* Builds the nodes of cumulative sums and products. Must not know: how a device computes them. Read next:
 * heavy/scan.h. */
#include "compiler/passes/heavy/heavy.h"

weft_status weft__build_scan(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_scan *attr = t->attr;
    heavy_operand x;
    WEFT_TRY(weft__ir_take_operand(ir, in[0], t->rank, t->shape, weft__ir_contiguous, &x));
    const int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_SCAN};
    const weft_dtype dtype = t->dtype == WEFT_U64 ? WEFT_I64 : (weft_dtype)t->dtype; /* sums and products
                                                                                      * wrap, so both have
                                                                                      * the same bits */
    heavy.as.scan = (weft_heavy_scan){.dtype = (uint8_t)dtype,
                                      .product = attr->product != 0,
                                      .reverse = attr->reverse != 0,
                                      .outer = weft__ir_extent_of(t->shape, 0, axis),
                                      .extent = t->shape[axis],
                                      .inner = weft__ir_extent_of(t->shape, axis + 1, t->rank)};
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "scan");
    int n = weft__ir_heavy_node(ir, t, &heavy, 1, &x.edge);
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
