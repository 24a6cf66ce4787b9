/* Index spaces of clusters: which ones fit together, and their joint space. A cluster that reduces rows and a
 * cluster that reduces the columns of blocks of these rows join over (block, row, column). The column sums
 * then become folds (docs/design/009-column-reductions.md). Must not know: why clusters should join. Read
 * next: fuse.c.
 *
 *     x reduces rows       (rows | columns)
 *     y reduces columns    (blocks, rows of a block, columns), summed over the rows of each block
 *     joint space          (block, row | column): one task walks the rows of a block in order
 *
 *                    column 0 1 2 3
 *          row 0          . . . .  -> row value       REDUCE
 *          row 1          . . . .  -> row value
 *                         v v v v
 *                    sums of the block                FOLD */
#include <string.h>
#include "compiler/passes/ir.h"

/* A fold has a task for each block instead of each row, so it needs enough blocks for the threads. A task
 * keeps a sum for each column, so rows must not be too long. */
enum { FEWEST_BLOCKS = 8, LONGEST_ROW = 1 << 14 };

/* For column sums beside stored results. So many tasks fill most of a card. The sums of all columns must fit
 * the registers of a group (kernel/render_team.c). */
enum { MANY_BLOCKS = 64, COLUMNS_MOST = 1 << 13, WORDS_MOST = 3 << 13 };

/* Writes the space in its shortest form and returns its rank. Adjacent dimensions that are both reduced, or
 * both not, are merged. Extents of 1 vanish. */
static int canonical(const ir_cluster *c, int64_t *out, uint32_t *out_axes) {
    int n = 0;
    *out_axes = 0;
    for (int i = 0; i < c->rank; i++) {
        uint32_t reduced = c->axes >> i & 1u;
        if (c->shape[i] == 1) continue;
        if (n && (*out_axes >> (n - 1) & 1u) == reduced) {
            out[n - 1] *= c->shape[i];
            continue;
        }
        out[n] = c->shape[i];
        *out_axes |= reduced << n++;
    }
    return n;
}

/* Do two spaces have the same pattern of parallel and reduced dimensions? */
static bool same_partition(const ir_cluster *x, const ir_cluster *y) {
    int64_t a[WEFT_VIEW_RANK], b[WEFT_VIEW_RANK];
    uint32_t axes_a, axes_b;
    int n = canonical(x, a, &axes_a);
    return n == canonical(y, b, &axes_b) && axes_a == axes_b && memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* The space of a reduction whose last block is shorter. Such a reduction is always a fold. */
static void space_of_blocks(const ir_node *reduce, ir_cluster *out) {
    const int64_t *shape = reduce->reduce.shape; /* (1, block, row, column) */
    *out = (ir_cluster){.row = true, .folds = 2, .heavy = -1, .rows = reduce->imm_i};
    out->rank = shape[3] > 1 ? 3 : 2;
    memcpy(out->shape, shape + 1, (size_t)out->rank * sizeof *shape);
    out->axes = out->rank == 3 ? 4 : 0;
    out->full = out->rows * shape[3];
}

void weft__space_of(const ir_node *reduce, ir_cluster *out) {
    if (reduce->imm_i) {
        space_of_blocks(reduce, out);
        return;
    }
    *out = (ir_cluster){.row = true, .rank = reduce->reduce.rank, .axes = reduce->reduce.axes, .heavy = -1};
    memcpy(out->shape, reduce->reduce.shape, (size_t)reduce->reduce.rank * sizeof *reduce->reduce.shape);
    out->full = out->rows = 1;
    for (int i = 0; i < out->rank; i++) {
        out->full *= out->shape[i];
        if (!(out->axes >> i & 1u)) out->rows *= out->shape[i];
    }
}

/* ---- blocks of rows ---- */

typedef struct blocks {
    int64_t count, rows, length;
    int64_t all; /* rows of all blocks together: count * rows, or less if the last block is shorter */
} blocks;

static blocks blocks_in(const ir_cluster *c) {
    return (blocks){c->shape[0], c->shape[1], c->rank == 3 ? c->shape[2] : 1, c->rows};
}

static bool are_rows(const ir_cluster *c, int64_t rows, int64_t length) {
    int64_t x[WEFT_VIEW_RANK];
    uint32_t axes;
    return canonical(c, x, &axes) == 2 && axes == 2 && x[0] == rows && x[1] == length;
}

/* Do the members only reduce? Then no member reads a reduction of the cluster. */
static bool only_reduces(const weft_ir *ir, const ir_cluster *c) {
    for (int i = 0; i < c->n_members; i++) {
        const ir_node *node = &ir->nodes[c->members[i]];
        if (node->kind != IR_REDUCE && node->numel == c->rows) return false;
        for (int k = 0; k < node->n_in; k++) {
            const ir_node *in = &ir->nodes[node->in[k].node];
            if (in->kind == IR_REDUCE && in->cluster == node->cluster) return false;
        }
    }
    return true;
}

/* Finds the blocks whose columns c reduces, or that it folds already. False if there are none. */
static bool blocks_of(const weft_ir *ir, const ir_cluster *c, blocks *out) {
    int64_t x[WEFT_VIEW_RANK];
    uint32_t axes;
    if (c->folds) {
        *out = blocks_in(c);
        return true;
    }
    if (canonical(c, x, &axes) != 3 || axes != 2) return false;
    *out = (blocks){x[0], x[1], x[2], x[0] * x[1]};
    return only_reduces(ir, c);
}

/* Finds the blocks where y reduces row values of x. Both have the same rows, and y gives the blocks. */
static bool blocks_of_rows(const ir_cluster *x, const ir_cluster *y, blocks *out) {
    int64_t a[WEFT_VIEW_RANK], b[WEFT_VIEW_RANK];
    uint32_t axes;
    if (y->folds)
        memcpy(b, y->shape, 2 * sizeof *b);
    else if (canonical(y, b, &axes) != 2 || axes != 2)
        return false;
    if (x->folds) {
        *out = blocks_in(x);
        return b[0] == out->count && b[1] == out->rows;
    }
    if (canonical(x, a, &axes) != 2 || axes != 2 || a[0] != y->full) return false;
    *out = (blocks){b[0], b[1], a[1], y->full};
    return true;
}

/* Can x and y share a space of blocks, in which one of them folds? Then finds the blocks. */
static bool folds(const weft_ir *ir, const ir_cluster *x, const ir_cluster *y, blocks *out) {
    blocks a, b;
    if (y->full == x->rows && x->full != x->rows) return blocks_of_rows(x, y, out);
    if (x->full != y->full) return false;
    const bool in_x = blocks_of(ir, x, &a), in_y = blocks_of(ir, y, &b);
    if (!in_x && !in_y) return false;
    *out = in_x ? a : b;
    if (in_x && in_y)
        return (x->folds || y->folds) && a.count == b.count && a.rows == b.rows && a.length == b.length;
    return are_rows(in_x ? y : x, out->all, out->length);
}

/* Turns x into the space of these blocks, if their number and size suit a fold. */
static bool set_blocks(ir_cluster *x, const blocks *b, int64_t fewest) {
    if (b->count < fewest || b->length > LONGEST_ROW) return false;
    x->rank = 3;
    x->shape[0] = b->count, x->shape[1] = b->rows, x->shape[2] = b->length;
    x->axes = 4;
    x->folds = 2;
    x->full = b->all * b->length;
    x->rows = b->all;
    return true;
}

bool weft__space_join(const weft_ir *ir, const ir_cluster *x, const ir_cluster *y, ir_cluster *out) {
    blocks b;
    *out = *x;
    if (x->full == y->full && x->folds == y->folds && same_partition(x, y)) return true;
    return folds(ir, x, y, &b) && set_blocks(out, &b, FEWEST_BLOCKS);
}

bool weft__space_of_columns(const weft_ir *ir, const ir_cluster *x, ir_cluster *out) {
    blocks b;
    int64_t words = 0; /* of the sums of a column */
    *out = *x;
    for (int i = 0; i < x->n_members; i++) {
        const ir_node *node = &ir->nodes[x->members[i]];
        if (node->kind == IR_REDUCE) words += weft_dtype_size((weft_dtype)node->dtype) > 4 ? 2 : 1;
    }
    return !x->folds && blocks_of(ir, x, &b) && b.length <= COLUMNS_MOST && words * b.length <= WORDS_MOST &&
           set_blocks(out, &b, MANY_BLOCKS);
}

bool weft__space_folds(const ir_cluster *cluster, const ir_node *reduce) {
    ir_cluster own;
    weft__space_of(reduce, &own);
    if (own.folds) return true;
    return cluster->folds && !are_rows(&own, cluster->rows, cluster->full / cluster->rows);
}

/* ---- views ---- */

/* Splits dimension 0, the rows, into (block, row). The last block may be shorter than the extent says. That
 * is safe, since no kernel computes an index beyond the rows. */
static bool cut_rows(weft_view *view, const int64_t *shape, int rank) {
    weft_map *m = &view->map[0];
    if (m->lo[0] > 0 || m->hi[0] < m->extent[0]) return false;
    const weft_map rows = *m;
    m->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        const int from = d ? d - 1 : 0;
        m->extent[d] = d < 2 ? shape[d] : rows.extent[from];
        m->stride[d] = d ? rows.stride[from] : rows.stride[0] * shape[1];
        m->lo[d] = d < 2 ? 0 : rows.lo[from];
        m->hi[d] = d < 2 ? shape[d] : rows.hi[from];
    }
    return true;
}

bool weft__space_view(const weft_ir *ir, const ir_cluster *space, ir_edge edge, const int64_t *shape,
                      weft_view *out) {
    const bool even = !space->folds || space->shape[0] * space->shape[1] == space->rows;
    if (even || edge.view < 0) return weft__ir_edge_view(ir, edge, space->rank, shape, out);
    const int64_t rows[2] = {space->rows, space->rank == 3 ? shape[2] : 1};
    return weft__ir_edge_view(ir, edge, space->rank - 1, rows, out) && cut_rows(out, shape, space->rank);
}

bool weft__space_suits(const weft_ir *ir, const ir_cluster *space, const ir_node *node) {
    int64_t numel = node->numel;
    if (node->kind == IR_GATHER) return false;
    if (node->kind == IR_REDUCE) {
        ir_cluster own;
        weft__space_of(node, &own);
        numel = own.full;
    }
    for (int k = 0; k < node->n_in; k++) {
        weft_view view;
        int64_t shape[3] = {space->shape[0], space->shape[1], 1}; /* a column extent of 1: a row value */
        if (node->in[k].view < 0) continue;
        if (space->rank == 3 && numel == space->full) shape[2] = space->shape[2];
        if (!weft__space_view(ir, space, node->in[k], shape, &view) ||
            view.count > ir->views[node->in[k].view].count)
            return false;
    }
    return true;
}
