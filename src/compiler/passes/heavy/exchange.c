/* Builds the nodes of exchanges with other processes. Must not know: how processes exchange. Read next:
 * heavy/exchange.h. */
#include "compiler/passes/heavy/heavy.h"

/* Keeps the kernels of different exchanges apart, as if each exchange were a chunk. Otherwise one kernel
 * would compute small gradients of all layers, and the first exchange would start after the last layer. */
static void set_apart(weft_ir *ir, int n, uint32_t chunk) {
    ir_node *node = &ir->nodes[n];
    for (int i = 0; node->kind == IR_PACK && i < node->n_in; i++) set_apart(ir, node->in[i].node, chunk);
    if (ir_is_compute(node) && !node->from.chunk) node->from.chunk = chunk;
}

weft_status weft__build_exchange(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_exchange *attr = t->attr;
    const weft_tensor *input = t->in[0];
    heavy_operand x;
    WEFT_TRY(weft__ir_take_operand(ir, in[0], input->rank, input->shape, weft__ir_contiguous, &x));
    set_apart(ir, x.edge.node, IR_CHUNK_OF_EXCHANGE | (uint32_t)t->serial);
    const weft_heavy heavy = {.kind = WEFT_HEAVY_EXCHANGE,
                              .as.exchange = {.dtype = (uint8_t)t->dtype,
                                              .exact = attr->exact != 0,
                                              .count = 1,
                                              .n = input->numel,
                                              .part = attr->part}};
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "exchange");
    int n = weft__ir_heavy_node(ir, t, &heavy, 1, &x.edge);
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
