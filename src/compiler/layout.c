/* The order in which values are stored. Convolutions write images with their channels last and show them as
 * (N, C, H, W); what is computed from such an image element by element, or summed from it, runs over its
 * memory in order, and so do its readers, where it is computed and stored in that order too. Must not know:
 * kernels. Read next: build.c. */
#include "compiler/ir.h"

/* How many elements an operand touches over a shape; *last: its dimension 1 lies innermost, the others around
 * it, and among them some that follow it. (The numbers of tokens beside their logits, repeated along the last
 * dimension, have none.) */
static int64_t touched(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, bool *last) {
    weft_view view;
    int64_t n = 1;
    *last = false;
    if (ir_is_source(&ir->nodes[edge.node]) || !weft__ir_edge_view(ir, edge, rank, shape, &view)) return 0;
    const weft_map *map = &view.map[0];
    bool follows = false, around = view.count == 1 && map->stride[1] == 1 && shape[1] > 1;
    for (int d = 0; d < rank; d++) {
        if (shape[d] == 1 || map->stride[d] == 0) continue;
        n *= shape[d];
        around = around && (d == 1 || map->stride[d] > 1);
        follows = follows || d > 1;
    }
    *last = around && follows;
    return n;
}

/* Dimension 1 moved behind the others. */
static void turn(int rank, const int64_t *shape, int64_t *turned) {
    turned[0] = shape[0];
    for (int d = 2; d < rank; d++) turned[d - 1] = shape[d];
    turned[rank - 1] = shape[1];
}

bool weft__ir_channels_last(weft_ir *ir, int rank, const int64_t *shape, int n_in, ir_edge *in,
                            int64_t *stored) {
    int order[WEFT_VIEW_RANK];
    int64_t most = 0;
    bool last = false;
    if (rank < 3 || rank > WEFT_MAX_RANK) return false;
    for (int i = 0; i < n_in; i++) {
        bool is;
        const int64_t n = touched(ir, in[i], rank, shape, &is);
        if (n < most) continue;
        last = is || (last && n == most);
        most = n;
    }
    if (!last) return false;
    ir_edge turned[4];
    weft_view view;
    order[0] = 0, order[rank - 1] = 1;
    for (int d = 2; d < rank; d++) order[d - 1] = d;
    for (int i = 0; i < n_in; i++) {
        if (i == 4 || !weft__ir_edge_view(ir, in[i], rank, shape, &view) || !weft__view_permute(&view, order))
            return false;
        turned[i] = (ir_edge){in[i].node, weft__ir_view(ir, in[i].node, &view)};
        if (turned[i].view == -2) return false;
    }
    for (int i = 0; i < n_in; i++) in[i] = turned[i];
    turn(rank, shape, stored);
    return true;
}

ir_edge weft__ir_channels_first(weft_ir *ir, int n, int rank, const int64_t *stored) {
    int order[WEFT_VIEW_RANK];
    weft_view view;
    order[0] = 0, order[1] = rank - 1;
    for (int d = 2; d < rank; d++) order[d] = d - 1;
    weft__view_identity(&view, rank, stored);
    weft__view_permute(&view, order);
    return (ir_edge){n, weft__ir_view(ir, n, &view)};
}
