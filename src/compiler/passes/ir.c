/* Nodes, views and edges of the IR, which every pass makes. Must not know: what ops mean, kernels. Read next:
 * build.c. */
#include <string.h>
#include "compiler/passes/ir.h"

int weft__by_key(const void *x, const void *y) {
    const ir_keyed *a = x, *b = y;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : a->number - b->number;
}

weft_status weft__ir_failed(weft_ir *ir) { return weft__fail_oom(ir->ctx, 0, "compiling a program"); }

int weft__ir_node(weft_ir *ir, ir_kind kind, weft_dtype dtype, int rank, const int64_t *shape, int n_in,
                  const ir_edge *in) {
    if (!weft__grow(ir->ctx, &ir->nodes, &ir->node_capacity, ir->n_nodes, sizeof *ir->nodes)) return -1;
    ir_node *node = &ir->nodes[ir->n_nodes];
    *node = (ir_node){.kind = (uint8_t)kind,
                      .dtype = (uint8_t)dtype,
                      .rank = rank,
                      .n_in = n_in,
                      .cluster = -1,
                      .pack.node = -1,
                      .within = -1,
                      .pack.lies = -1,
                      .sink = -1,
                      .unit = -1,
                      .numel = 1,
                      .from.path = "",
                      .place = {-1, 0}};
    node->shape = weft__arena_alloc(&ir->arena, (size_t)(rank + 1) * sizeof *shape);
    node->in = weft__arena_alloc(&ir->arena, (size_t)(n_in + 1) * sizeof *in);
    if (!node->shape || !node->in) return -1;
    for (int i = 0; i < rank; i++) node->numel *= node->shape[i] = shape[i];
    if (n_in && in) memcpy(node->in, in, (size_t)n_in * sizeof *in);
    return (int)ir->n_nodes++;
}

static int64_t numel_of(const weft_map *map) {
    int64_t n = 1;
    for (int d = 0; d < map->rank; d++) n *= map->extent[d];
    return n;
}

/* Does the view see all elements of the node, and not only a prefix? */
static bool covers(const weft_ir *ir, int n, const weft_view *view) {
    return numel_of(&view->map[0]) == ir->nodes[n].numel;
}

int weft__ir_view(weft_ir *ir, int n, const weft_view *view) {
    if (weft__view_is_identity(view) && covers(ir, n, view)) return -1;
    if (ir->nodes[n].kind == IR_CONST && !weft__view_guarded(view)) return -1; /* all elements are equal */
    weft_hash h;
    weft__hash_init(&h);
    weft__view_hash(&h, view);
    size_t probe = 0;
    for (int i; (i = weft__index_next(&ir->view_index, h.a, &probe)) >= 0;)
        if (weft__view_equal(&ir->views[i], view)) return i;
    if (!weft__grow(ir->ctx, &ir->views, &ir->view_capacity, ir->n_views, sizeof *ir->views) ||
        !weft__index_add(ir->ctx, &ir->view_index, h.a, (int)ir->n_views))
        return -2;
    ir->views[ir->n_views] = *view;
    return (int)ir->n_views++;
}

bool weft__ir_edge_view(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, weft_view *out) {
    if (edge.view < 0) {
        weft__view_identity(out, rank, shape);
        return true;
    }
    *out = ir->views[edge.view];
    return weft__view_reshape(out, rank, shape);
}

int weft__ir_copy(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape) {
    weft_view view;
    if (weft__ir_edge_view(ir, edge, rank, shape, &view) && view.count == 2 && edge.view >= 0) {
        const weft_map whole = view.map[1]; /* A permuted view that was then reshaped: copying it in its own
                                             * shape gives the same elements. */
        view.count = 1;
        if (weft__view_is_identity(&view) && whole.rank <= WEFT_MAX_RANK &&
            numel_of(&whole) == numel_of(&view.map[0])) {
            view.map[0] = whole;
            if (ir_is_compute(&ir->nodes[edge.node]))
                ir->nodes[edge.node].stored = true; /* the copy reads it in its own order */
            edge.view = weft__ir_view(ir, edge.node, &view);
            if (edge.view == -2) return -1;
            rank = whole.rank;
            shape = view.map[0].extent;
        }
    }
    int n = weft__ir_node(ir, IR_CAST, (weft_dtype)ir->nodes[edge.node].dtype, rank, shape, 1, &edge);
    if (n < 0) return n;
    ir->nodes[n].copy = true;
    ir->nodes[n].from.path = ir->nodes[edge.node].from.path;
    ir->nodes[n].from.serial = ir->nodes[edge.node].from.serial;
    ir->nodes[n].from.tensor = ir->nodes[edge.node].from.tensor;
    return n;
}

weft_status weft__ir_sort(weft_ir *ir) {
    const size_t n = ir->n_nodes;
    ir_node *old = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *old);
    int *number = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *number), count = 0, depth = 0;
    int *stack = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *stack);
    int *next = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *next);
    if (!old || !number || !stack || !next) return weft__ir_failed(ir);
    memcpy(old, ir->nodes, n * sizeof *old);
    for (size_t i = 0; i < n; i++) number[i] = -1;
    for (size_t i = 0; i < n; i++) {
        if (number[i] < 0) stack[depth++] = (int)i;
        while (depth > 0) {
            const int at = stack[depth - 1];
            if (next[at] < old[at].n_in) {
                const int in = old[at].in[next[at]++].node;
                if (number[in] < 0) stack[depth++] = in;
            } else {
                number[at] = count++;
                depth--;
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        ir_node *node = &ir->nodes[number[i]];
        *node = old[i];
        for (int k = 0; k < node->n_in; k++) node->in[k].node = number[node->in[k].node];
        if (node->pack.node >= 0) node->pack.node = number[node->pack.node];
    }
    for (size_t i = 0; i < ir->outputs.count; i++) ir->outputs.nodes[i] = number[ir->outputs.nodes[i]];
    for (size_t i = 0; i < ir->sinks.count; i++) ir->sinks.list[i].node = number[ir->sinks.list[i].node];
    return WEFT_OK;
}
