/* Operands of heavy operations, and the IR nodes of heavy operations. An operand must be stored, and one
 * affine map with a unit stride must address it. Any other operand gets a copy node, which the plan shows
 * (docs/design/010-matmul-operands.md). Must not know: kinds. Read next: heavy.c. */
#include <string.h>
#include "compiler/passes/heavy/heavy.h"

/* Writes the strides of a map over the shape. False if a device cannot address it. */
static bool strides_of(const weft_map *map, const int64_t *shape, int64_t *stride) {
    for (int i = 0; i < map->rank; i++) {
        stride[i] = shape[i] == 1 ? 0 : map->stride[i];
        if (stride[i] < 0) return false;
    }
    return !map->guarded;
}

bool weft__ir_addressable(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                          heavy_operand *out) {
    weft_view view;
    if (ir_is_source(&ir->nodes[edge.node]) || !weft__ir_edge_view(ir, edge, rank, shape, &view))
        return false;
    out->edge = edge;
    return view.count == 1 && strides_of(&view.map[0], shape, out->stride);
}

void weft__ir_store(weft_ir *ir, int n) {
    if (ir->nodes[n].kind != IR_LEAF) ir->nodes[n].stored = true;
}

/* If the operand is the transpose of a reshaped value: copies the reshaped value, which other readers can
 * share, and reads the copy by transposed strides. False for any other operand. */
static bool copy_within(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, heavy_accepts *direct,
                        heavy_operand *out) {
    weft_view outer, inner = {.count = 1};
    if (!weft__ir_edge_view(ir, edge, rank, shape, &outer) || outer.count != 2) return false;
    inner.map[0] = outer.map[1];
    outer.count = 1;
    if (!direct || inner.map[0].rank > WEFT_MAX_RANK || !strides_of(&outer.map[0], shape, out->stride) ||
        !direct(rank, shape, out->stride))
        return false;
    edge.view = weft__ir_view(ir, edge.node, &inner);
    if (edge.view == -2) return false;
    const int copy = weft__ir_unify(ir, weft__ir_copy(ir, edge, inner.map[0].rank, inner.map[0].extent));
    out->edge = (ir_edge){copy, copy < 0 ? -2 : weft__ir_view(ir, copy, &outer)};
    return out->edge.view != -2;
}

weft_status weft__ir_take_operand(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                                  heavy_accepts *direct, heavy_operand *out) {
    const bool fits =
        weft__ir_addressable(ir, edge, rank, shape, out) && (!direct || direct(rank, shape, out->stride));
    if (!fits && !copy_within(ir, edge, rank, shape, direct, out)) {
        const int copy =
            weft__ir_unify(ir, weft__ir_copy(ir, edge, rank, shape)); /* all readers share one copy */
        if (copy < 0) return weft__ir_failed(ir);
        weft__ir_addressable(ir, (ir_edge){copy, -1}, rank, shape, out);
    }
    weft__ir_store(ir, out->edge.node);
    return WEFT_OK;
}

bool weft__ir_contiguous(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t expect = 1;
    for (int i = rank - 1; i >= 0; i--) {
        if (shape[i] != 1 && stride[i] != expect) return false;
        expect *= shape[i];
    }
    return true;
}

bool weft__ir_unit_last(int rank, const int64_t *shape, const int64_t *stride) {
    return shape[rank - 1] == 1 || stride[rank - 1] == 1;
}

int weft__ir_heavy_node(weft_ir *ir, const weft_tensor *t, const weft_heavy *heavy, int n_in,
                        const ir_edge *in) {
    int n = weft__ir_node(ir, IR_HEAVY, (weft_dtype)t->dtype, 0, NULL, n_in, in);
    if (n < 0) return n;
    weft_heavy *copy = weft__arena_alloc(&ir->arena, sizeof *copy);
    if (!copy) return -1;
    *copy = *heavy;
    copy->path = t->path;
    ir->nodes[n].heavy = copy;
    ir->nodes[n].from.path = t->path;
    ir->nodes[n].from.tensor = t;
    ir->nodes[n].op = t->op;
    ir->nodes[n].from.recomputed = t->recomputed;
    ir->nodes[n].from.chunk = t->segment_kind == WEFT_SEGMENT_CHUNK ? t->segment : 0;
    ir->nodes[n].from.serial = t->serial;
    return n;
}

int weft__ir_heavy_out(weft_ir *ir, int heavy, int index, weft_dtype dtype, int rank, const int64_t *shape) {
    int n = weft__ir_node(ir, IR_HEAVY_OUT, dtype, rank, shape, 1, &(ir_edge){heavy, -1});
    if (n < 0) return n;
    ir->nodes[n].imm_i = index;
    ir->nodes[n].from.path = ir->nodes[heavy].from.path;
    ir->nodes[n].from.serial = ir->nodes[heavy].from.serial;
    ir->nodes[n].from.tensor = ir->nodes[heavy].from.tensor;
    return n;
}

bool weft__ir_takes(const weft_ir *ir, const weft_heavy *heavy) {
    return ir->device->ops->takes(ir->device, heavy);
}

weft_status weft__ir_declined(const weft_ir *ir, const char *op) {
    return weft__fail(ir->ctx, WEFT_ERR_UNSUPPORTED,
                      "%s: the device %s has no kernel for this op: use another device", op,
                      ir->device->ops->name);
}

int64_t weft__ir_extent_of(const int64_t *shape, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= shape[i];
    return n;
}
