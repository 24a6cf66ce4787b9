/* Which values of the clusters get memory: a value that another cluster reads is stored or, if it is cheap,
 * recomputed there (docs/design/008-greedy-fusion.md). Must not know: how clusters form. Read next: fuse.c.
 */
#include "compiler/passes/ir.h"

/* Limits up to which a value is recomputed in another kernel instead of stored. SINGLE: the value has one
 * reader. SHARED: it has several. */
enum { SHARED_OPS = 24, SHARED_LOADS = 3, SINGLE_OPS = 64, SINGLE_LOADS = 12 };

/* The cost of recomputing a value: everything between the value and memory.
 *
 *     stored   stored
 *        \      /
 *         add         2 loads, 1 op
 *          |
 *         tanh        2 loads, 2 ops: the cone of this value */
typedef struct cone {
    int ops, loads;
    int nodes;    /* ops and casts; IR_RECOMPUTED_MOST limits chains of casts */
    double bytes; /* of the loads */
    bool divides; /* divides integers: where a guard fails the divisor is 0, so recomputing behind a guard
                   * would fault */
} cone;

static void fuse_store(weft_ir *ir, int n) {
    ir_node *node = &ir->nodes[n];
    node->stored = true;
}

/* Stores the reductions that the recomputed value n needs, directly or through other recomputed values.
 * `done` marks values that were visited before. */
static void store_reductions(weft_ir *ir, int n, bool *done, int *stack) {
    int depth = 0;
    for (stack[depth++] = n; depth > 0;) {
        const ir_node *node = &ir->nodes[stack[--depth]];
        for (int k = 0; k < node->n_in; k++) {
            const int from = node->in[k].node;
            const ir_node *in = &ir->nodes[from];
            if (in->stored || done[from] || !ir_is_compute(in)) continue;
            if (in->kind == IR_REDUCE) {
                fuse_store(ir, from);
                continue;
            }
            done[from] = true;
            stack[depth++] = from;
        }
    }
}

static cone cone_of(const weft_ir *ir, const cone *cones, int n) {
    const ir_node *node = &ir->nodes[n];
    cone sum = {.ops = node->kind == IR_CAST ? 0 : 1, .nodes = 1, .divides = ir_divides_integers(node)};
    for (int k = 0; k < node->n_in; k++) {
        const ir_node *in = &ir->nodes[node->in[k].node];
        if (in->kind == IR_CONST || in->kind == IR_IOTA) continue;
        if (in->kind == IR_RANDOM) {
            sum.ops += 8;
        } else if (in->stored || !ir_is_compute(in) || in->kind == IR_REDUCE) {
            const int64_t most = in->numel < node->numel ? in->numel : node->numel;
            sum.loads++;
            sum.bytes += (double)most * (double)weft_dtype_size((weft_dtype)in->dtype);
        } else {
            sum.ops += cones[node->in[k].node].ops;
            sum.nodes += cones[node->in[k].node].nodes;
            sum.loads += cones[node->in[k].node].loads;
            sum.bytes += cones[node->in[k].node].bytes;
            sum.divides |= cones[node->in[k].node].divides;
        }
        if (sum.ops > 1000) sum.ops = 1000;
        if (sum.nodes > 1000) sum.nodes = 1000;
        if (sum.loads > 1000) sum.loads = 1000;
    }
    return sum;
}

/* Up to two other kernels that read a value, or that read what its own kernel computes elementwise from it
 * without storing. -1: none. */
typedef struct readers {
    int kernel[2];
    bool passed_on; /* only one node of its own kernel reads it, is not larger, and would be stored in its
                     * place */
} readers;

static void add_reader(readers *r, int kernel) {
    if (kernel < 0 || kernel == r->kernel[0]) return;
    if (r->kernel[0] < 0)
        r->kernel[0] = kernel;
    else
        r->kernel[1] = kernel;
}

static readers *find_readers(weft_ir *ir) {
    readers *all = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *all);
    if (!all) return NULL;
    for (size_t i = 0; i < ir->n_nodes; i++) all[i] = (readers){.kernel = {-1, -1}};
    for (size_t i = ir->n_nodes; i-- > 0;) { /* users before operands */
        const ir_node *node = &ir->nodes[i];
        for (int k = 0; node->live && k < node->n_in; k++) {
            const int from = node->in[k].node;
            if (ir->nodes[from].cluster != node->cluster) {
                add_reader(&all[from], node->cluster);
            } else if ((node->kind == IR_CALC || node->kind == IR_CAST) && !node->stored &&
                       node->numel == ir->nodes[from].numel) {
                add_reader(&all[from], all[i].kernel[0]);
                add_reader(&all[from], all[i].kernel[1]);
                all[from].passed_on =
                    ir->nodes[from].users == 1 && weft_dtype_size((weft_dtype)node->dtype) <=
                                                      weft_dtype_size((weft_dtype)ir->nodes[from].dtype);
            }
        }
    }
    return all;
}

/* Should the value be stored to save memory traffic? Two kernels that recompute it may read more than storing
 * and loading would move. One kernel reads as much, but a value of 16 bits is then replaced by stored f32
 * values, which are larger. */
static bool saves_traffic(const weft_ir *ir, const ir_node *node, cone cost, readers by) {
    const double size = (double)weft_dtype_size((weft_dtype)node->dtype), bytes = size * (double)node->numel;
    if (by.passed_on || cost.ops == 0) return false; /* a conversion alone would become a kernel of its own */
    if (by.kernel[1] >= 0) return 2 * cost.bytes > 3 * bytes;
    return by.kernel[0] >= 0 && size == 2 && node->cluster >= 0 && ir->clusters[node->cluster].row &&
           cost.loads >= SHARED_LOADS && cost.bytes >= 2 * bytes;
}

/* Must the value be stored for readers outside its cluster? `widest` is the size of the largest such
 * reader. */
static bool must_store(const weft_ir *ir, const ir_node *node, cone cost, int64_t widest, bool crosses) {
    if (!crosses) return false;
    if (node->kind == IR_REDUCE || node->kind == IR_GATHER || node->copy || cost.divides) return true;
    if (!ir->fuse) return true;
    if (cost.nodes > IR_RECOMPUTED_MOST || (widest > 2 * node->numel && cost.ops > 1)) return true;
    bool single = node->users == 1;
    return cost.ops > (single ? SINGLE_OPS : SHARED_OPS) ||
           cost.loads > (single ? SINGLE_LOADS : SHARED_LOADS);
}

/* Stores the value at which recomputation begins: the values that it is computed from take more memory. Also
 * stores a value that one chunk hands to the next. Otherwise all that it is computed from would stay in
 * memory. */
static void keep(weft_ir *ir, int n) {
    const ir_node *node = &ir->nodes[n];
    if (ir_is_compute(node) && node->cluster >= 0 && !node->copy) fuse_store(ir, n);
}

/* Decides which values of the clusters get memory. */
weft_status weft__ir_choose_stored(weft_ir *ir) {
    size_t n = ir->n_nodes;
    cone *cones = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *cones);
    int64_t *widest = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *widest);
    bool *crosses = weft__arena_alloc(&ir->arena, n + 1);
    bool *done = weft__arena_alloc(&ir->arena, n + 1);
    int *stack = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *stack);
    const readers *read_by = find_readers(ir);
    if (!cones || !widest || !crosses || !done || !stack || !read_by) return weft__ir_failed(ir);
    for (size_t i = 0; i < n; i++) {
        const ir_node *node = &ir->nodes[i];
        for (int k = 0; node->live && k < node->n_in; k++) {
            int from = node->in[k].node;
            if (node->from.recomputed && ir->nodes[from].from.early) keep(ir, from);
            if (node->from.chunk && ir->nodes[from].from.chunk &&
                node->from.chunk != ir->nodes[from].from.chunk)
                keep(ir, from);
            if (node->cluster >= 0 && node->cluster == ir->nodes[from].cluster) continue;
            crosses[from] = true;
            if (node->numel > widest[from]) widest[from] = node->numel;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ir_node *node = &ir->nodes[i];
        if (!node->live) continue;
        if (node->kind == IR_HEAVY_OUT || node->kind == IR_PACK || node->pack.node >= 0) node->stored = true;
        if (!ir_is_compute(node)) continue;
        cones[i] = cone_of(ir, cones, (int)i);
        if (!node->stored && node->cluster >= 0 &&
            (must_store(ir, node, cones[i], widest[i], crosses[i]) ||
             saves_traffic(ir, node, cones[i], read_by[i])))
            fuse_store(ir, (int)i);
        if (!node->stored && crosses[i] && node->cluster >= 0) store_reductions(ir, (int)i, done, stack);
    }
    return WEFT_OK;
}
