/* Values that are assembled from adjacent parts: concatenations, stacks and the gradients of slices. They are
 * recorded as choices between padded values, or as sums of padded values. Computed like that, each element
 * would be computed once for each part, and all results but one thrown away. If such a value is stored, this
 * pass computes each part separately instead, directly into its place in one block. Must not know: which
 * parts share a kernel. Read next: fuse.c, plan.c.
 *
 *     recorded   [a a a 0 0] + [0 0 0 b b]
 *     becomes    PACK [a a a | b b], with a and b as nodes of their own */
#include <string.h>
#include "compiler/passes/ir.h"

enum {
    SMALLEST = 1 << 14, /* elements; for a smaller value, one kernel costs less than several */
    MOST = 16           /* parts of one value */
};

/* A box of a value's index space, and the operand that supplies the elements there. */
typedef struct piece {
    weft_map box; /* lo <= index < hi */
    ir_edge edge; /* over the value's whole space */
} piece;

/* The pieces of one value. Their space may have more dimensions than the value's shape. */
typedef struct pieces {
    int rank, count;
    int64_t shape[WEFT_VIEW_RANK];
    piece list[MOST];
} pieces;

/* A part of a block and its place there: the view `lies` takes an index of the part to an element of the
 * block. */
typedef struct part {
    ir_edge edge;
    weft_view lies;
} part;

typedef struct parts {
    weft_ir *ir;
    int count;
    bool failed; /* memory is gone */
    part list[MOST];
} parts;

/* ---- pieces of one value ---- */

/* Can the node be assembled from parts? Only sums and choices can. */
static bool assembled(const ir_node *node) {
    return node->kind == IR_CALC && (node->op == WEFT_OP_ADD || node->op == WEFT_OP_WHERE);
}

static bool add_piece(pieces *p, const weft_view *guard, ir_edge edge) {
    const weft_map *m = &guard->map[0];
    if (!m->guarded || p->count == MOST) return false;
    p->list[p->count++] = (piece){*m, edge};
    return true;
}

/* Adds the piece of a WHERE whose condition is true in exactly one box. False if the condition is no box. */
static bool add_chosen(const weft_ir *ir, const ir_node *node, pieces *p) {
    const ir_node *mask = &ir->nodes[node->in[0].node];
    weft_view box;
    return mask->kind == IR_CONST && mask->imm_i &&
           weft__ir_edge_view(ir, node->in[0], p->rank, p->shape, &box) && box.count == 1 &&
           add_piece(p, &box, node->in[1]);
}

/* Finds the pieces of node n. An operand of the same shape that only n reads, and that is assembled itself,
 * adds its own pieces. False if there are too many pieces or only one. */
static bool find_pieces(const weft_ir *ir, int n, pieces *p) {
    int stack[MOST], depth = 0;
    for (stack[depth++] = n; depth > 0;) {
        const ir_node *node = &ir->nodes[stack[--depth]];
        const bool chooses = node->op == WEFT_OP_WHERE;
        if (chooses && !add_chosen(ir, node, p)) return false;
        for (int k = chooses ? 2 : 0; k < node->n_in; k++) {
            const ir_edge edge = node->in[k];
            const ir_node *in = &ir->nodes[edge.node];
            weft_view view;
            if (edge.view < 0 && assembled(in) && !in->stored && in->users == 1) {
                if (depth == MOST) return false;
                stack[depth++] = edge.node;
            } else if (!weft__ir_edge_view(ir, edge, p->rank, p->shape, &view) ||
                       !add_piece(p, &view, edge)) {
                return false;
            }
        }
    }
    return p->count > 1;
}

/* Do the pieces' boxes cover each element of the space exactly once? */
static bool cover(const pieces *p) {
    int64_t all = 1, sum = 0;
    for (int d = 0; d < p->rank; d++) all *= p->shape[d];
    for (int i = 0; i < p->count; i++) {
        const weft_map *x = &p->list[i].box;
        int64_t inside = 1;
        for (int d = 0; d < p->rank; d++) inside *= x->hi[d] - x->lo[d];
        sum += inside;
        for (int j = 0; j < i; j++) {
            const weft_map *y = &p->list[j].box;
            bool apart = false;
            for (int d = 0; d < p->rank; d++) apart = apart || x->hi[d] <= y->lo[d] || y->hi[d] <= x->lo[d];
            if (!apart) return false;
        }
    }
    return sum == all;
}

/* A padding that is followed by a reshape is no box in the value's shape. Finds the space before the reshape,
 * in which the padding is a box. False if no operand shows such a space. */
static bool refine(const weft_ir *ir, int n, pieces *p) {
    const ir_node *node = &ir->nodes[n];
    for (int k = 0; k < node->n_in; k++) {
        weft_view view;
        if (!weft__ir_edge_view(ir, node->in[k], node->rank, node->shape, &view) || view.count < 2) continue;
        const weft_map fine = view.map[1];
        view.count = 1;
        if (!weft__view_is_identity(&view)) continue;
        *p = (pieces){.rank = fine.rank};
        memcpy(p->shape, fine.extent, sizeof p->shape);
        return true;
    }
    return false;
}

/* Finds the pieces of node n, in its own shape or in a finer space. False if they do not cover it exactly. */
static bool take_apart(const weft_ir *ir, int n, pieces *p) {
    const ir_node *node = &ir->nodes[n];
    if (!assembled(node)) return false;
    *p = (pieces){.rank = node->rank};
    memcpy(p->shape, node->shape, (size_t)node->rank * sizeof *node->shape);
    if (find_pieces(ir, n, p) && cover(p)) return true;
    return refine(ir, n, p) && find_pieces(ir, n, p) && cover(p);
}

/* ---- parts ---- */

/* Does the view see a whole value with its dimensions permuted? Then *lies, over the dimensions of the view,
 * is changed to the value's own order. */
static bool turn(const weft_ir *ir, int n, const weft_map *view, weft_view *lies) {
    const ir_node *node = &ir->nodes[n];
    int order[WEFT_VIEW_RANK], rank = 0;
    int64_t expect = node->numel;
    if (view->guarded || view->offset) return false;
    for (int d = 0; d < view->rank; d++) order[rank++] = d;
    for (int i = 1; i < rank; i++) /* sorts by stride, longest first; extents of 1 have no stride */
        for (int j = i; j > 0 && view->stride[order[j]] > view->stride[order[j - 1]]; j--) {
            const int longer = order[j];
            order[j] = order[j - 1];
            order[j - 1] = longer;
        }
    for (int i = 0; i < rank; i++) {
        const int64_t extent = view->extent[order[i]];
        if (extent == 1) continue;
        if (view->stride[order[i]] * extent != expect) return false;
        expect /= extent;
    }
    weft_view turned = *lies;
    if (expect != 1 || !weft__view_permute(&turned, order)) return false;
    *lies = turned;
    return true;
}

/* Finds the place of piece x, where `whole` is the place of the pieces' space. If the piece is all of another
 * value, the part is this value in its own order. Any other piece is copied through its view. */
static bool parts_place(parts *to, const pieces *p, const piece *x, const weft_view *whole, part *out) {
    const weft_ir *ir = to->ir;
    int64_t extent[WEFT_VIEW_RANK], step[WEFT_VIEW_RANK];
    weft_view seen;
    for (int d = 0; d < p->rank; d++) extent[d] = x->box.hi[d] - x->box.lo[d], step[d] = 1;
    out->lies = *whole;
    if (!weft__ir_edge_view(ir, x->edge, p->rank, p->shape, &seen) ||
        !weft__view_slice(&seen, x->box.lo, extent, step) ||
        !weft__view_slice(&out->lies, x->box.lo, extent, step))
        return false;
    const weft_view boxed = out->lies;
    weft_view first = seen;
    first.count = 1;
    if (seen.count == 2 && weft__view_is_identity(&first) &&
        weft__view_reshape(&out->lies, seen.map[1].rank, seen.map[1].extent) && out->lies.count == 1)
        first.map[0] = seen.map[1];
    else if (seen.count > 1)
        first.map[0].guarded = true; /* it has no single order of dimensions, so turn must refuse it */
    out->edge = (ir_edge){x->edge.node, -1};
    if (turn(ir, x->edge.node, &first.map[0], &out->lies)) return true;
    out->lies = boxed;
    out->edge.view = weft__ir_view(to->ir, x->edge.node, &seen);
    to->failed = to->failed || out->edge.view == -2;
    return !to->failed;
}

/* Adds the parts of node n, whose place is `lies` over its shape. A part that is assembled itself is split
 * further. False if there are too many parts, or if a place needs more than one map. */
static bool add_parts(parts *to, int n, const weft_view *lies) {
    struct {
        int node;
        weft_view lies;
    } stack[MOST + 1];
    int depth = 0;
    stack[depth].node = n;
    stack[depth++].lies = *lies;
    while (depth > 0) {
        pieces p;
        const int at = stack[--depth].node;
        weft_view whole = stack[depth].lies;
        if (!take_apart(to->ir, at, &p) || !weft__view_reshape(&whole, p.rank, p.shape) || whole.count != 1)
            return false;
        for (int i = 0; i < p.count; i++) {
            part one;
            if (to->count == MOST || !parts_place(to, &p, &p.list[i], &whole, &one)) return false;
            const ir_node *in = &to->ir->nodes[one.edge.node];
            pieces inner;
            weft_view over = one.lies;
            const bool deeper = one.edge.view < 0 && !in->stored && in->users == 1 &&
                                take_apart(to->ir, one.edge.node, &inner) &&
                                weft__view_reshape(&over, inner.rank, inner.shape) && over.count == 1;
            if (deeper && depth == MOST) return false;
            if (deeper) {
                stack[depth].node = one.edge.node;
                stack[depth++].lies = one.lies;
            } else {
                to->list[to->count++] = one;
            }
        }
    }
    return true;
}

/* ---- the block ---- */

/* Adds the node that stores a part. It has the shape of the value that it stores, if one map can place that
 * shape. Then both can share a kernel. */
static int part_node(weft_ir *ir, part *one) {
    const ir_node *from = &ir->nodes[one->edge.node];
    int rank = one->lies.map[0].rank;
    int64_t shape[WEFT_VIEW_RANK];
    weft_view own = one->lies;
    memcpy(shape, own.map[0].extent, sizeof shape);
    if (one->edge.view < 0 && weft__view_reshape(&own, from->rank, from->shape) && own.count == 1) {
        rank = from->rank;
        memcpy(shape, from->shape, (size_t)rank * sizeof *shape);
    }
    const int n = weft__ir_copy(ir, one->edge, rank, shape);
    if (n >= 0) weft__view_reshape(&one->lies, ir->nodes[n].rank, ir->nodes[n].shape);
    return n;
}

/* Turns node n into a PACK of these parts. The parts come after n, so the caller must call weft__ir_sort. */
static bool make_block(weft_ir *ir, int n, parts *found) {
    int64_t *offsets = weft__arena_alloc(&ir->arena, (size_t)found->count * sizeof *offsets);
    ir_edge *in = weft__arena_alloc(&ir->arena, (size_t)found->count * sizeof *in);
    if (!offsets || !in) return false;
    for (int i = 0; i < found->count; i++) {
        part *one = &found->list[i];
        const int at = part_node(ir, one);
        if (at < 0) return false;
        offsets[i] = one->lies.map[0].offset;
        one->lies.map[0].offset = 0;
        in[i] = (ir_edge){at, -1};
        ir_node *node = &ir->nodes[at];
        const ir_node *whole = &ir->nodes[n];
        node->pack.node = n;
        node->pack.lies = weft__ir_view(ir, at, &one->lies);
        node->from.tensor = whole->from.tensor;
        node->from.path = whole->from.path;
        node->from.serial = whole->from.serial;
        node->from.recomputed = whole->from.recomputed;
        node->from.early = whole->from.early;
        node->from.chunk = whole->from.chunk;
        if (node->pack.lies == -2) return false;
    }
    ir_node *whole = &ir->nodes[n];
    whole->kind = IR_PACK;
    whole->imm_i = IR_PACK_APART;
    whole->n_in = found->count;
    whole->in = in;
    whole->offsets = offsets;
    return true;
}

weft_status weft__ir_parts(weft_ir *ir, bool *taken) {
    const int count = (int)ir->n_nodes;
    parts *found = weft__arena_alloc(&ir->arena, sizeof *found);
    if (!found) return weft__ir_failed(ir);
    for (int n = 0; n < count; n++) {
        const ir_node *node = &ir->nodes[n];
        if (!node->live || !node->stored || !assembled(node) || node->sink >= 0 || node->pack.node >= 0 ||
            node->numel < SMALLEST)
            continue;
        weft_view whole;
        weft__view_identity(&whole, node->rank, node->shape);
        *found = (parts){.ir = ir};
        const bool apart = add_parts(found, n, &whole);
        if (found->failed || (apart && !make_block(ir, n, found))) return weft__ir_failed(ir);
        *taken = *taken || apart;
    }
    return *taken ? weft__ir_sort(ir) : WEFT_OK;
}
