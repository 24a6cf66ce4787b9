/* Parameters that several processes have divided. To most passes they are leaves like any others, so programs
 * compute the same bits. This file notes which ops read them; exchanges.c then replaces them by places in
 * pieces that are gathered. Must not know: why they are divided. Read next: graph/variable.h, exchanges.c. */
#include "compiler/passes/ir.h"

bool weft__ir_divided(const ir_node *node) {
    return node->kind == IR_LEAF && node->within < 0 && node->from.tensor->leaf == WEFT_LEAF_STORAGE &&
           node->from.tensor->storage->divided;
}

/* The number of a leaf's elements. Complex ones count as two floats. */
static int64_t divided_count(const weft_tensor *t) {
    return weft_dtype_is_complex((weft_dtype)t->dtype) ? 2 * t->numel : t->numel;
}

const weft_divided_piece *weft__ir_piece(const weft_tensor *t) {
    const weft_divided *divided = t->storage->divided;
    const int64_t first = weft__variable_offset(t), end = first + divided_count(t);
    for (size_t i = 0; i < divided->count; i++) {
        const weft_divided_piece *piece = &divided->pieces[i];
        if (first >= piece->from && end <= piece->from + piece->n) return piece;
    }
    return NULL;
}

weft_status weft__ir_check_divided(weft_ir *ir, const weft_tensor *t) {
    if (weft__ir_piece(t)) return WEFT_OK;
    return weft__fail(
        ir->ctx, WEFT_ERR_STATE,
        "'%s' is divided among processes (WEFT_SHARD_PARAMETERS) and cannot be read as a whole: "
        "read its parameters one by one",
        t->name ? t->name : "data");
}

weft_status weft__ir_note_reads(weft_ir *ir, uint64_t serial, const ir_edge *in, int n_in) {
    for (int k = 0; k < n_in; k++) {
        const ir_node *node = &ir->nodes[in[k].node];
        if (!weft__ir_divided(node)) continue;
        if (!weft__grow(ir->ctx, &ir->reads.list, &ir->reads.capacity, ir->reads.count,
                        sizeof *ir->reads.list))
            return weft__ir_failed(ir);
        ir->reads.list[ir->reads.count++] = (ir_read){serial, weft__ir_piece(node->from.tensor)};
    }
    return WEFT_OK;
}
