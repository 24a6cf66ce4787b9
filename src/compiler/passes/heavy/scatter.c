/* Builds the nodes of scatter-adds. A value that is added to a scatter-add becomes its base: the scatter-add
 * then adds onto this value instead of zeros. Must not know: how a device scatters. Read next:
 * heavy/scatter.h. */
#include <string.h>
#include "compiler/passes/heavy/heavy.h"

weft_status weft__build_scatter(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_axis *attr = t->attr;
    const weft_tensor *index = t->in[0], *source = t->in[1];
    heavy_operand at, from;
    WEFT_TRY(weft__ir_take_operand(ir, in[0], index->rank, index->shape, weft__ir_contiguous, &at));
    WEFT_TRY(weft__ir_take_operand(ir, in[1], source->rank, source->shape, weft__ir_contiguous, &from));
    int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_SCATTER};
    heavy.as.scatter = (weft_heavy_scatter){.dtype = (uint8_t)t->dtype,
                                            .index_dtype = (uint8_t)index->dtype,
                                            .unique = attr->unique != 0,
                                            .outer = weft__ir_extent_of(t->shape, 0, axis),
                                            .count = index->numel,
                                            .rows = attr->extent,
                                            .inner = weft__ir_extent_of(t->shape, axis + 1, t->rank)};
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "scatter_add");
    int n = weft__ir_heavy_node(ir, t, &heavy, 2, (ir_edge[]){at.edge, from.edge});
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* Returns the scatter-add into zeros that edge k of the sum reads, -1: none. Nothing else may read it. The
 * other operand must be able to become its base: it is computed before the scatter-add and has memory. A base
 * that others read as well would have to be copied, so it is refused. */
static int scatter_of(const weft_ir *ir, const ir_node *sum, int k) {
    const ir_node *part = &ir->nodes[sum->in[k].node], *base = &ir->nodes[sum->in[1 - k].node];
    if (part->kind != IR_HEAVY_OUT || part->users != 1 || part->claimed) return -1;
    const int h = part->in[0].node;
    const weft_heavy *heavy = ir->nodes[h].heavy;
    if (heavy->kind != WEFT_HEAVY_SCATTER || heavy->as.scatter.based) return -1;
    const bool made = ir_is_compute(base) || base->kind == IR_HEAVY_OUT;
    if (base->kind != IR_LEAF && !(made && base->users == 1 && !base->claimed)) return -1;
    if (sum->in[0].view >= 0 || sum->in[1].view >= 0 || base->numel != sum->numel) return -1;
    return sum->in[1 - k].node < h ? h : -1;
}

/* Turns sum s into the result of scatter-add h, which gets the other operand as its base. Does nothing if the
 * device declines. */
static weft_status base_scatter(weft_ir *ir, int s, int k, int h) {
    ir_node *sum = &ir->nodes[s], *node = &ir->nodes[h];
    const ir_edge base = sum->in[1 - k];
    weft_heavy based = *node->heavy;
    based.as.scatter.based = true;
    if (!weft__ir_takes(ir, &based)) return WEFT_OK;
    ir_edge *in = weft__arena_alloc(&ir->arena, 3 * sizeof *in);
    if (!in) return weft__ir_failed(ir);
    memcpy(in, node->in, 2 * sizeof *in);
    in[2] = base;
    node->in = in;
    node->n_in = 3;
    *node->heavy = based;
    weft__ir_store(ir, base.node);
    ir->nodes[sum->in[k].node].live = false;
    sum->kind = IR_HEAVY_OUT;
    sum->n_in = 1;
    sum->in[0] = (ir_edge){h, -1};
    sum->from.path = node->from.path;
    return WEFT_OK;
}

/* Runs in unfused programs as well, so both kinds of programs add in the same order. */
weft_status weft__ir_base_scatters(weft_ir *ir) {
    for (int i = 0; i < (int)ir->n_nodes; i++) {
        const ir_node *node = &ir->nodes[i];
        if (!node->live || node->kind != IR_CALC || node->op != WEFT_OP_ADD) continue;
        for (int k = 1, h = -1; k >= 0 && h < 0; k--) {
            h = scatter_of(ir, node, k);
            if (h >= 0) WEFT_TRY(base_scatter(ir, i, k, h));
        }
    }
    return WEFT_OK;
}
