/* Builds reductions, and matmuls that are sums of few columns. A long reduction to few values is split into
 * two fixed stages. Must not know: which nodes share a kernel, how kernels run. Read next: build.c,
 * docs/design/009-column-reductions.md. */
#include <string.h>
#include "compiler/passes/ir.h"

/* The most blocks of a large card: several for each of its multiprocessors. All blocks of a column sum
 * together have at most PARTIAL_MOST results. A block has at least BLOCK_ROWS elements of the reduced extent.
 * If there are fewer than BUSY_BLOCKS of them, it may have ROWS_LEAST. It has at least BLOCK_ELEMENTS
 * elements. One group of work-items sums a vector of at most ONE_GROUP elements. */
enum { MANY_BLOCKS = 1024, BUSY_BLOCKS = 128, BLOCK_ROWS = 32, ROWS_LEAST = 8, BLOCK_ELEMENTS = 2048 };
enum { PARTIAL_MOST = 1 << 22, ONE_GROUP = 8192 };

/* Returns the number of blocks for a device with many_blocks. If possible, it divides the length into blocks
 * whose lengths are multiples of 8, so that accesses are wide. */
static int64_t many_blocks(int64_t rows, int64_t length) {
    int64_t target = weft__larger(length / BLOCK_ROWS, weft__smaller(BUSY_BLOCKS, length / ROWS_LEAST));
    target = weft__smaller(target, MANY_BLOCKS);
    target = weft__smaller(target, PARTIAL_MOST / weft__larger(rows, 1));
    target = weft__larger(1, weft__smaller(target, rows * length / BLOCK_ELEMENTS));
    for (int64_t multiple = 8; multiple > 0; multiple /= 8)
        for (int64_t blocks = target; 2 * blocks >= target && blocks > 1; blocks--)
            if (length % (blocks * multiple) == 0) return blocks;
    return target;
}

/* Returns the number of blocks into which a reduced extent is split, 1 for none. `rows` counts the results,
 * `length` is the reduced extent, and `inner` says that the reduced dimension is the last. The number depends
 * on the shape and the kind of device alone, so it never changes the bits. A column sum and the sum of a
 * whole vector of the same length have equal blocks, so one kernel can fold both. */
static int64_t reduction_blocks(const weft_ir *ir, int64_t rows, int64_t length, bool inner) {
    int64_t target = 1;
    if (ir->device->many_blocks && (inner ? rows == 1 : length >= 256 && rows <= 16384))
        return inner && length <= ONE_GROUP ? 1 : many_blocks(rows, length);
    if (inner && rows < 64 && length > 8192) target = length / 4096 > 256 ? 256 : length / 4096;
    if (inner ? rows == 1 && length >= 8192 : length >= 256) target = length / 32 > 64 ? 64 : length / 32;
    if (!inner && rows > 16384) target = 1; /* there are enough columns for all threads */
    for (int64_t blocks = target; 2 * blocks >= target && blocks > 1;
         blocks--) /* prefer equal blocks: they leave no remainder */
        if (length % blocks == 0) return blocks;
    for (int64_t blocks = target + 1; blocks <= 4 * target && target > 1 && length / blocks >= 32; blocks++)
        if (length % blocks == 0) return blocks;
    return target;
}

/* Finds the run first..last-1 of reduced dimensions. False if there are several runs. */
static bool one_run(int rank, uint32_t mask, int *first, int *last) {
    *first = 0;
    while (*first < rank && !(mask >> *first & 1u)) ++*first;
    *last = *first;
    while (*last < rank && (mask >> *last & 1u)) ++*last;
    return (mask >> *last) == 0;
}

/* Adds a REDUCE node of t, which is a reduction or a matmul that became one. `rows`: see imm_i of ir_node. */
static int reduce_node(weft_ir *ir, const weft_tensor *t, ir_edge in, int rank_in, const int64_t *shape_in,
                       int64_t rows, uint32_t mask, int rank, const int64_t *shape) {
    int n = weft__ir_node(ir, IR_REDUCE, (weft_dtype)t->dtype, rank, shape, 1, &in);
    if (n < 0) return n;
    ir_node *node = &ir->nodes[n];
    weft__ir_comes_from(node, t, t->op == WEFT_OP_MATMUL ? WEFT_OP_SUM : (weft_op)t->op);
    node->reduce.axes = mask;
    node->imm_i = rows;
    node->reduce.rank = rank_in;
    node->reduce.shape = weft__arena_alloc(&ir->arena, (size_t)(rank_in + 1) * sizeof *shape_in);
    if (!node->reduce.shape) return -1;
    memcpy(node->reduce.shape, shape_in, (size_t)rank_in * sizeof *shape_in);
    return weft__ir_unify(ir, n);
}

/* Writes the view of elements first..first+length-1 of the middle dimension of three. */
static bool part_of(const weft_ir *ir, ir_edge in, const int64_t flat[3], int64_t first, int64_t length,
                    weft_view *view) {
    const int64_t start[3] = {0, first, 0}, extent[3] = {flat[0], length, flat[2]}, step[3] = {1, 1, 1};
    return weft__ir_edge_view(ir, in, 3, flat, view) && weft__view_slice(view, start, extent, step);
}

static int join_sums(weft_ir *ir, const weft_tensor *t, const int64_t *shape, int a, int b) {
    if (a < 0 || b < 0) return -1;
    int n = weft__ir_shaped(ir, IR_CALC, t, shape, 2, (ir_edge[]){{a, -1}, {b, -1}});
    if (n < 0) return -1;
    ir->nodes[n].op = WEFT_OP_ADD;
    return weft__ir_unify(ir, n);
}

/* (rows, after) -> (blocks, block, after) -> sums of blocks -> sum of sums. The last block may be shorter. */
static int fold_rows(weft_ir *ir, const weft_tensor *t, const int64_t *shape, ir_edge in, int64_t rows,
                     int64_t after, int64_t blocks) {
    const int64_t block = (rows + blocks - 1) / blocks, count = (rows + block - 1) / block;
    const int64_t split[4] = {1, count, block, after}, partial[2] = {count, after};
    const int sum = reduce_node(ir, t, in, 4, split, rows, 1u << 2, 2, partial);
    if (sum < 0) return sum;
    return reduce_node(ir, t, (ir_edge){sum, -1}, 2, partial, 0, 1u << 0, t->rank, shape);
}

/* Splits a reduction over the middle dimension into two stages:
 *
 *     (before, length, after) -> (before, blocks, block, after)   the elements in equal blocks
 *                             -> (before, blocks, 1, after)       stage 1: the sum of each block
 *                             -> (before, 1, after)               stage 2: the sum of the sums
 *
 * A remainder of fewer than `blocks` elements is summed on its own and added. Only a sum may do this. A
 * shorter last block would need guards, which cost more. The exception is ir->ragged: then one pass computes
 * this sum together with others over the same rows, and the last block is shorter (fold_rows). Returns -2 if
 * a view is too long. */
static int split_reduction(weft_ir *ir, const weft_tensor *t, const int64_t *shape, ir_edge in,
                           const int64_t flat[3], int64_t blocks) {
    const int64_t block = flat[1] / blocks, even = blocks * block;
    const int64_t split[4] = {flat[0], blocks, block, flat[2]}, partial[4] = {flat[0], blocks, 1, flat[2]};
    const int64_t joined[3] = {flat[0], blocks, flat[2]}, rest[3] = {flat[0], flat[1] - even, flat[2]};
    weft_view view, after;
    if (flat[1] == ir->ragged && flat[0] == 1 && even < flat[1] && in.view < 0)
        return fold_rows(ir, t, shape, in, flat[1], flat[2], blocks);
    if (!part_of(ir, in, flat, 0, even, &view) || !weft__view_reshape(&view, 4, split)) return -2;
    if (rest[1] && !part_of(ir, in, flat, even, rest[1], &after)) return -2;
    ir_edge edge = {in.node, weft__ir_view(ir, in.node, &view)};
    if (edge.view == -2) return -1;
    int sum = reduce_node(ir, t, edge, 4, split, 0, 1u << 2, 4, partial);
    if (sum >= 0) sum = reduce_node(ir, t, (ir_edge){sum, -1}, 3, joined, 0, 1u << 1, t->rank, shape);
    if (sum < 0 || rest[1] == 0) return sum;
    edge.view = weft__ir_view(ir, in.node, &after);
    if (edge.view == -2) return -1;
    return join_sums(ir, t, shape, sum, reduce_node(ir, t, edge, 3, rest, 0, 1u << 1, t->rank, shape));
}

static uint32_t mask_in_order(uint32_t mask, int rank, const int *order) {
    uint32_t out = 0;
    for (int d = 0; d < rank; d++) out |= (mask >> order[d] & 1u) << d;
    return out;
}

weft_status weft__ir_reduce(weft_ir *ir, const weft_tensor *t, ir_edge in, ir_edge *out) {
    const weft_tensor *x = t->in[0];
    uint32_t mask = ((const weft_attr_axes *)t->attr)->mask;
    int64_t from[WEFT_MAX_RANK], to[WEFT_MAX_RANK];
    int first, last, n = -2, order[WEFT_MAX_RANK];
    const bool turned = weft__ir_in_order(ir, x->rank, x->shape, 1, &in, order, from);
    if (turned) mask = mask_in_order(mask, x->rank, order);
    for (int i = 0; i < x->rank; i++) {
        if (!turned) from[i] = x->shape[i];
        to[i] = mask >> i & 1u ? 1 : from[i];
    }
    if (ir->fuse && x->numel > 0 && one_run(x->rank, mask, &first, &last)) {
        int64_t flat[3] = {1, 1, 1};
        for (int i = 0; i < x->rank; i++) flat[i < first ? 0 : i < last ? 1 : 2] *= from[i];
        int64_t blocks = reduction_blocks(ir, flat[0] * flat[2], flat[1], flat[2] == 1);
        if (blocks > 1 && (t->op == WEFT_OP_SUM || flat[1] % blocks == 0))
            n = split_reduction(ir, t, to, in, flat, blocks);
    }
    if (n == -2) n = reduce_node(ir, t, in, x->rank, from, 0, mask, t->rank, to);
    *out = (ir_edge){n, -1};
    if (n >= 0 && turned) *out = weft__ir_shown(ir, n, t->rank, to, order);
    return n < 0 || out->view == -2 ? weft__ir_failed(ir) : WEFT_OK;
}

enum { THIN_MOST = 64, THIN_LONG = 8192 }; /* at most so many columns; at least so many rows */

/* Writes the view of operand `in` over (rows, columns) in one map. With `turned` the operand is transposed.
 * With repeat 0 or 1 the operand is a vector, which is repeated along this dimension. False if one map cannot
 * express the view. */
static bool thin_view(const weft_ir *ir, ir_edge in, const weft_tensor *x, const int64_t *shape, bool turned,
                      int repeat, weft_view *view) {
    const int64_t vector[2] = {repeat == 0 ? 1 : shape[0], repeat == 1 ? 1 : shape[1]};
    if (!weft__ir_edge_view(ir, in, 2, x->shape, view)) return false;
    if (repeat >= 0) {
        if (!weft__view_reshape(view, 2, vector) || !weft__view_expand(view, shape)) return false;
    } else if (turned && !weft__view_permute(view, (int[]){1, 0}))
        return false;
    return view->count == 1 && !weft__view_guarded(view);
}

/* X w and X^T r, where X has many rows and few columns, become the elementwise product over X and its sums.
 * So one kernel computes both, and what lies between them, in one pass over X
 * (docs/design/009-column-reductions.md). Returns -2 for any other matmul. */
static int build_thin(weft_ir *ir, const weft_tensor *t, const ir_edge *in) {
    const weft_tensor *a = t->in[0], *b = t->in[1];
    if (!ir->fuse || t->rank != 2 || (a->dtype != WEFT_F32 && a->dtype != WEFT_F64)) return -2;
    const int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
    const bool right = m == 1; /* a is the vector */
    if (m != 1 && n != 1) return -2;
    /* sum_rows: X^T r, a sum over the long dimension for each column. sum_columns: X w, a short sum for each
     * of the many rows. */
    const int64_t across = right ? n : m; /* the dimension of the matrix that is not summed */
    const bool sum_rows = k >= THIN_LONG && across <= THIN_MOST && across > 1;
    const bool sum_columns = across >= THIN_LONG && k <= THIN_MOST && k > 1;
    if (!sum_rows && !sum_columns) return -2;
    const int64_t shape[2] = {sum_rows ? k : across, sum_rows ? across : k};
    const int64_t blocks = reduction_blocks(ir, shape[1], shape[0], false);
    const bool turned = right != sum_rows;
    weft_view matrix, vector;
    if (!thin_view(ir, in[right], right ? b : a, shape, turned, -1, &matrix) ||
        matrix.map[0].stride[1] != 1 ||
        !thin_view(ir, in[!right], right ? a : b, shape, false, sum_rows ? 1 : 0, &vector))
        return -2;
    const ir_edge edges[2] = {{in[right].node, weft__ir_view(ir, in[right].node, &matrix)},
                              {in[!right].node, weft__ir_view(ir, in[!right].node, &vector)}};
    if (edges[0].view == -2 || edges[1].view == -2) return -1;
    int product = weft__ir_node(ir, IR_CALC, (weft_dtype)t->dtype, 2, shape, 2, edges);
    if (product < 0) return -1;
    weft__ir_comes_from(&ir->nodes[product], t, WEFT_OP_MUL);
    product = weft__ir_unify(ir, product);
    if (product < 0) return -1;
    const int64_t flat[3] = {1, shape[0], shape[1]};
    /* Both matmuls of a linear model read the rows of X: X w, then X^T r. If the rows do not divide into
     * equal blocks, the second one becomes a fold with a shorter last block. Then one kernel can still
     * compute both. */
    if (shape[0] % blocks) ir->ragged = shape[0];
    if (sum_rows) return split_reduction(ir, t, t->shape, (ir_edge){product, -1}, flat, blocks);
    return reduce_node(ir, t, (ir_edge){product, -1}, 2, shape, 0, 1u << 1, t->rank, t->shape);
}

weft_status weft__ir_matmul(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const int n = build_thin(ir, t, in);
    *out = (ir_edge){n, -1};
    return n == -2 ? weft__ir_heavy(ir, t, in, out) : n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
