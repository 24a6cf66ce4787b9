/* The order of dimensions in which values are stored (docs/design/011-memory-order-of-images.md). A
 * convolution stores images with their channels last, but shows them as (N, C, H, W). Attention stores heads
 * as (B, T, H, D), but shows them as (B, H, T, D). Kernels that compute elementwise from such a value, or sum
 * it, run over it in memory order and store their result in the same order. Kernels that read this result do
 * the same. Must not know: kernels. Read next: build.c.
 *
 *     shown (N, C, H, W)  --permute by order (0, 2, 3, 1)-->  stored (N, H, W, C) */
#include <stdlib.h>
#include <string.h>
#include "compiler/passes/ir.h"

/* Number of elements that an operand touches over a shape. Dimensions of stride 0 repeat elements. */
static int64_t touched(const weft_map *map) {
    int64_t n = 1;
    for (int d = 0; d < map->rank; d++)
        if (map->stride[d] != 0) n *= map->extent[d];
    return n;
}

/* Is dimension 1 the innermost in memory, with other dimensions around it, of which at least one follows it
 * in the shape? (An index of tokens that is repeated along the logits has no dimension that follows.) */
static bool channels_last(const weft_map *map, int *order) {
    bool follows = false;
    if (map->rank < 3 || map->stride[1] != 1 || map->extent[1] < 2) return false;
    for (int d = 0; d < map->rank; d++) {
        if (d == 1 || map->extent[d] == 1 || map->stride[d] == 0) continue;
        if (map->stride[d] <= 1) return false;
        follows = follows || d > 1;
    }
    order[0] = 0, order[map->rank - 1] = 1;
    for (int d = 2; d < map->rank; d++) order[d - 1] = d;
    return follows;
}

/* Sorts all dimensions but the last by their strides. False if they are sorted already. The last dimension
 * stays, so a copy to the shown order still moves whole runs. */
static bool by_strides(const weft_map *map, int *order) {
    const int last = map->rank - 1;
    bool moved = false;
    if (map->rank < 4 || map->stride[last] != 1 || map->extent[last] == 1) return false;
    for (int d = 0; d <= last; d++) {
        if (map->extent[d] > 1 && map->stride[d] == 0) return false;
        order[d] = d;
    }
    for (int i = 1; i < last; i++)
        for (int j = i; j > 0; j--) {
            const int inner = order[j], outer = order[j - 1];
            if (map->extent[inner] == 1 || map->extent[outer] == 1) break;
            if (llabs(map->stride[inner]) <= llabs(map->stride[outer])) break;
            order[j] = outer;
            order[j - 1] = inner;
            moved = true;
        }
    return moved;
}

/* Finds the order in which the largest operand is stored. False if that is the order of the shape. */
static bool order_of(const weft_ir *ir, int rank, const int64_t *shape, int n_in, const ir_edge *in,
                     int *order) {
    int64_t most = 0;
    bool found = false;
    for (int i = 0; i < n_in; i++) {
        weft_view view;
        int its[WEFT_VIEW_RANK];
        if (ir_is_source(&ir->nodes[in[i].node]) || !weft__ir_edge_view(ir, in[i], rank, shape, &view))
            continue;
        const int64_t n = touched(&view.map[0]);
        if (n < most || (n == most && found)) continue;
        most = n;
        found = view.count == 1 && (channels_last(&view.map[0], its) ||
                                    (!weft__view_guarded(&view) && by_strides(&view.map[0], its)));
        if (found) memcpy(order, its, (size_t)rank * sizeof *order);
    }
    return found;
}

bool weft__ir_in_order(weft_ir *ir, int rank, const int64_t *shape, int n_in, ir_edge *in, int *order,
                       int64_t *stored) {
    ir_edge turned[4];
    weft_view view;
    if (rank < 3 || rank > WEFT_MAX_RANK || !order_of(ir, rank, shape, n_in, in, order)) return false;
    for (int i = 0; i < n_in; i++) {
        if (i == 4 || !weft__ir_edge_view(ir, in[i], rank, shape, &view) || !weft__view_permute(&view, order))
            return false;
        turned[i] = (ir_edge){in[i].node, weft__ir_view(ir, in[i].node, &view)};
        if (turned[i].view == -2) return false;
    }
    for (int i = 0; i < n_in; i++) in[i] = turned[i];
    for (int d = 0; d < rank; d++) stored[d] = shape[order[d]];
    return true;
}

ir_edge weft__ir_shown(weft_ir *ir, int n, int rank, const int64_t *stored, const int *order) {
    int back[WEFT_VIEW_RANK];
    weft_view view;
    for (int d = 0; d < rank; d++) back[order[d]] = d;
    weft__view_identity(&view, rank, stored);
    weft__view_permute(&view, back);
    return (ir_edge){n, weft__ir_view(ir, n, &view)};
}
