/* Fusion: which nodes one kernel computes, and which values are stored (docs/design/008-greedy-fusion.md).
 * Fusion is greedy, in topological order. A node joins the newest cluster among those of its operands if
 * their index spaces fit and no cycle arises. A cluster is a map (one index space) or a row cluster
 * (reductions over some dimensions, with elementwise work before, between and after). Then each value that
 * another cluster reads is stored or, if it is cheap, recomputed there (store.c). Must not know: how a kernel
 * is lowered, what devices do with it. Read next: store.c, space.c, order.c, lower.c.
 *
 *     1 mark_live         which nodes the outputs and assignments need
 *     2 weft__ir_parts    concatenations part by part; weft__ir_sums, weft__ir_base_scatters
 *     3 assign_clusters   node -> cluster; then row values and siblings are merged
 *     4 weft__ir_choose_stored  which values get memory */
#include <stdlib.h>
#include <string.h>
#include "compiler/passes/ir.h"
#include "kernel/rows.h"

/* Passes and devices compare the members of a kernel with one another. Without a limit, compile time would
 * grow with the square of the number of nodes. No network of layers comes near this limit. */
enum { CLUSTER_MOST = 1024, BUFFERS_MOST = 64 };

/* ---- liveness ---- */

/* Marks the nodes that outputs and assignments need, and counts the users of each node. */
static void mark_live(weft_ir *ir) {
    for (size_t i = 0; i < ir->n_nodes; i++) {
        ir->nodes[i].live = false;
        ir->nodes[i].users = 0;
    }
    for (size_t i = 0; i < ir->outputs.count; i++) ir->nodes[ir->outputs.nodes[i]].live = true;
    for (size_t i = 0; i < ir->sinks.count; i++) ir->nodes[ir->sinks.list[i].node].live = true;
    for (size_t i = ir->n_nodes; i-- > 0;) { /* users before operands */
        const ir_node *node = &ir->nodes[i];
        for (int k = 0; node->live && k < node->n_in; k++) {
            ir->nodes[node->in[k].node].live = true;
            ir->nodes[node->in[k].node].users++;
        }
    }
    for (size_t i = 0; i < ir->n_nodes; i++) /* a heavy operation writes all its results, even those that
                                              * nothing reads */
        if (ir->nodes[i].kind == IR_HEAVY_OUT && ir->nodes[ir->nodes[i].in[0].node].live)
            ir->nodes[i].live = true;
    for (size_t i = 0; i < ir->n_nodes; i++) { /* a part of a dead pack is stored on its own */
        const int pack = ir->nodes[i].pack.node;
        if (pack >= 0 && !ir->nodes[pack].live) ir->nodes[i].pack.node = -1;
    }
}

/* ---- clusters ---- */

static int new_cluster(weft_ir *ir, int heavy) {
    ir_cluster *cluster = &ir->clusters[ir->n_clusters];
    memset(cluster, 0, sizeof *cluster);
    cluster->heavy = heavy;
    weft__order_new(ir, ir->n_clusters);
    return ir->n_clusters++;
}

static bool add_member(weft_ir *ir, int c, int n) {
    ir_cluster *cluster = &ir->clusters[c];
    if (cluster->n_members == cluster->capacity) {
        int capacity = cluster->capacity ? 2 * cluster->capacity : 8;
        int *members = weft__arena_alloc(&ir->arena, (size_t)capacity * sizeof *members);
        if (!members) return false;
        if (cluster->n_members)
            memcpy(members, cluster->members, (size_t)cluster->n_members * sizeof *members);
        cluster->members = members;
        cluster->capacity = capacity;
    }
    cluster->members[cluster->n_members++] = n;
    ir_node *node = &ir->nodes[n];
    node->cluster = c;
    cluster->recomputed = cluster->recomputed || node->from.recomputed;
    cluster->early = cluster->early || node->from.early;
    if (node->from.chunk) cluster->chunk = node->from.chunk;
    for (int k = 0; k < node->n_in; k++) {
        int first = ir->nodes[node->in[k].node].cluster;
        if (first >= 0 && first != c && !weft__order_after(ir, c, first)) return false;
    }
    return true;
}

/* If the node joined cluster c, would c read a value that is computed after c? */
static bool makes_cycle(weft_ir *ir, int c, const ir_node *node) {
    for (int k = 0; k < node->n_in; k++) {
        int other = ir->nodes[node->in[k].node].cluster;
        if (other >= 0 && other != c && weft__order_precedes(ir, c, other)) return true;
    }
    return false;
}

/* Must a node stay out of the cluster? A recomputed value that shares a kernel with the forward pass would
 * stay in memory from the forward pass on. Chunks that share a kernel would all be in memory at once. */
static bool apart(bool recomputed, bool early, uint32_t chunk, const ir_cluster *other) {
    return (recomputed && other->early) || (early && other->recomputed) ||
           (chunk && other->chunk && chunk != other->chunk);
}

/* ---- do index spaces fit ---- */

/* Does the edge broadcast a row value over the reduced dimensions of the cluster's space?
 *
 *     row value (rows)  ->  (rows | columns) with strides (1, 0) */
static bool repeats_rows(const weft_ir *ir, const ir_cluster *cluster, ir_edge edge) {
    weft_view view;
    if (edge.view < 0 || !weft__space_view(ir, cluster, edge, cluster->shape, &view) || view.count != 1 ||
        weft__view_guarded(&view) || view.map[0].offset)
        return false;
    int64_t step = 1;
    for (int i = cluster->rank - 1; i >= 0; i--) {
        bool reduced = cluster->axes >> i & 1u;
        if (cluster->shape[i] != 1 && view.map[0].stride[i] != (reduced ? 0 : step)) return false;
        if (!reduced) step *= cluster->shape[i];
    }
    return true;
}

/* Can the elementwise node read operand `edge`, a member of the cluster, at the index at which the cluster
 * computes it? A reduction of a whole vector, such as the norm of a gradient, must end its kernel. Its
 * readers then run in parallel in the next kernel, and can update variables in place. */
static bool reads_member(const weft_ir *ir, const ir_cluster *cluster, const ir_node *node, ir_edge edge) {
    const ir_node *member = &ir->nodes[edge.node];
    if (member->kind == IR_REDUCE && weft__space_folds(cluster, member)) return false;
    if (member->numel == node->numel) return edge.view < 0;
    return cluster->row && cluster->rank > 1 && node->numel == cluster->full &&
           member->numel == cluster->rows && repeats_rows(ir, cluster, edge);
}

/* Would the view of a member become a longer list of maps over the space? The kernel would then divide the
 * index for each element. This costs more than storing the values and reading them again. */
static bool lengthens(const weft_ir *ir, const ir_cluster *cluster, const ir_cluster *space) {
    for (int i = 0; i < cluster->n_members; i++) {
        const ir_node *node = &ir->nodes[cluster->members[i]];
        for (int k = 0; k < node->n_in; k++) {
            weft_view view;
            if (node->in[k].view < 0 || node->numel != space->full) continue;
            if (!weft__ir_edge_view(ir, node->in[k], space->rank, space->shape, &view) ||
                view.count > ir->views[node->in[k].view].count)
                return true;
        }
    }
    return false;
}

/* Do the views of all members suit the space, if it is a space of blocks? */
static bool all_suit(const weft_ir *ir, const ir_cluster *cluster, const ir_cluster *space) {
    for (int i = 0; space->folds && i < cluster->n_members; i++)
        if (!weft__space_suits(ir, space, &ir->nodes[cluster->members[i]])) return false;
    return true;
}

/* Can the reduction join the cluster? It must read its operand in place, over the whole space of the
 * reduction. */
static bool takes_reduction(const weft_ir *ir, const ir_cluster *cluster, const ir_node *node) {
    const ir_node *from = &ir->nodes[node->in[0].node];
    ir_cluster own, joint;
    weft__space_of(node, &own);
    if (node->in[0].view >= 0 || from->numel != own.full || from->reduce.fold) return false;
    if (!cluster->row)
        return from->numel == cluster->full && all_suit(ir, cluster, &own) && !lengthens(ir, cluster, &own);
    if (!weft__space_join(ir, cluster, &own, &joint)) return false;
    return cluster->folds || all_suit(ir, cluster, &joint);
}

/* Buffers of a kernel: sources, and results in memory of their own. */
typedef struct buffers {
    int nodes[BUFFERS_MOST], count;
} buffers;

static void add_buffer(buffers *to, int n) {
    for (int i = 0; i < to->count; i++)
        if (to->nodes[i] == n) return;
    if (to->count < BUFFERS_MOST) to->nodes[to->count++] = n;
}

static void add_buffers(const weft_ir *ir, buffers *to, int n) {
    const ir_node *node = &ir->nodes[n];
    if (node->claimed) add_buffer(to, n);
    for (int k = 0; k < node->n_in; k++)
        if (ir->nodes[node->in[k].node].kind == IR_LEAF) add_buffer(to, node->in[k].node);
}

/* Does the device allow a kernel of all members of cluster a, those of cluster b, and node n? b and n may be
 * -1. A kernel also needs the arena and the fault record. */
static bool buffers_fit(const weft_ir *ir, int a, int b, int n) {
    const int most = ir->device->buffers_most;
    const int clusters[2] = {a, b};
    buffers all = {.count = 0};
    if (most == 0 || most > BUFFERS_MOST) return true;
    for (int c = 0; c < 2 && clusters[c] >= 0; c++)
        for (int i = 0; i < ir->clusters[clusters[c]].n_members; i++)
            add_buffers(ir, &all, ir->clusters[clusters[c]].members[i]);
    if (n >= 0) add_buffers(ir, &all, n);
    return all.count + 2 <= most;
}

/* Can the node join cluster c? */
static bool joinable(weft_ir *ir, int c, const ir_node *node) {
    const ir_cluster *cluster = &ir->clusters[c];
    if (cluster->heavy >= 0 || cluster->full == 0 || cluster->n_members >= CLUSTER_MOST) return false;
    if (makes_cycle(ir, c, node)) return false;
    if (apart(node->from.recomputed, node->from.early, node->from.chunk, cluster)) return false;
    if (!buffers_fit(ir, c, -1, (int)(node - ir->nodes))) return false;
    if (node->kind == IR_REDUCE) return takes_reduction(ir, cluster, node);
    if (node->numel != cluster->full && !(cluster->row && node->numel == cluster->rows)) return false;
    if (cluster->folds && !weft__space_suits(ir, cluster, node)) return false;
    for (int k = 0; k < node->n_in; k++) {
        ir_edge edge = node->in[k];
        if (ir->nodes[edge.node].cluster != c) continue;
        if (node->kind == IR_GATHER || !reads_member(ir, cluster, node, edge)) return false;
    }
    return true;
}

/* Gives the cluster an index space, and decides for each of its reductions whether it folds. */
static void set_space(weft_ir *ir, ir_cluster *cluster, const ir_cluster *space) {
    cluster->row = space->row;
    cluster->rank = space->rank;
    memcpy(cluster->shape, space->shape, sizeof cluster->shape);
    cluster->axes = space->axes;
    cluster->folds = space->folds;
    cluster->full = space->full;
    cluster->rows = space->rows;
    for (int i = 0; i < cluster->n_members; i++) {
        ir_node *node = &ir->nodes[cluster->members[i]];
        if (node->kind == IR_REDUCE) node->reduce.fold = weft__space_folds(cluster, node);
    }
}

/* Gives the cluster a space that includes the reduction. Call it before the reduction becomes a member. */
static void become_row(weft_ir *ir, ir_cluster *cluster, ir_node *reduce) {
    ir_cluster own, joint;
    weft__space_of(reduce, &own);
    if (!cluster->row)
        set_space(ir, cluster, &own);
    else if (weft__space_join(ir, cluster, &own, &joint))
        set_space(ir, cluster, &joint);
    reduce->reduce.fold = weft__space_folds(cluster, reduce);
}

static void become_map(ir_cluster *cluster, const ir_node *node) {
    if (cluster->n_members && node->rank <= cluster->rank) return; /* the finest shape describes the space */
    cluster->rank = node->rank;
    memcpy(cluster->shape, node->shape, (size_t)node->rank * sizeof *node->shape);
    cluster->full = cluster->rows = node->numel;
}

/* ---- joining clusters ---- */

/* Do the two clusters have a joint space? Then writes it. */
static bool same_space(const weft_ir *ir, const ir_cluster *a, const ir_cluster *b, ir_cluster *joint) {
    if (a->heavy >= 0 || b->heavy >= 0 || a->full == 0 || b->full == 0) return false;
    if (apart(a->recomputed, a->early, a->chunk, b)) return false;
    if (a->row && b->row) return a->full == b->full && weft__space_join(ir, a, b, joint);
    const ir_cluster *row = a->row ? a : b, *map = a->row ? b : a;
    *joint = row->row || row->rank > map->rank ? *row : *map; /* the finest shape describes the space */
    return map->full == row->full || (row->row && map->full == row->rows);
}

/* Do the members of a read members of b only at the index at which b computes them, in the space of `row`? */
static bool reads_well(const weft_ir *ir, const ir_cluster *a, int b, const ir_cluster *row) {
    for (int i = 0; i < a->n_members; i++) {
        const ir_node *node = &ir->nodes[a->members[i]];
        for (int k = 0; k < node->n_in; k++) {
            ir_edge edge = node->in[k];
            const ir_node *member = &ir->nodes[edge.node];
            if (member->cluster != b) continue;
            bool fine = node->kind == IR_REDUCE
                            ? edge.view < 0 && member->numel == row->full
                            : node->kind != IR_GATHER && reads_member(ir, row, node, edge);
            if (!fine) return false;
        }
    }
    return true;
}

/* Can clusters a and b become one? */
static bool mergeable(weft_ir *ir, int a, int b) {
    const ir_cluster *x = &ir->clusters[a], *y = &ir->clusters[b];
    ir_cluster joint;
    if (x->n_members + y->n_members > CLUSTER_MOST || !same_space(ir, x, y, &joint)) return false;
    if (x->row != y->row && lengthens(ir, x->row ? y : x, &joint)) return false;
    return reads_well(ir, x, b, &joint) && reads_well(ir, y, a, &joint) && all_suit(ir, x, &joint) &&
           all_suit(ir, y, &joint) && buffers_fit(ir, a, b, -1) && !weft__order_between(ir, a, b) &&
           !weft__order_between(ir, b, a);
}

/* Moves all members of cluster `from` into `to`. False if memory is gone. */
static bool merge_clusters(weft_ir *ir, int to, int from) {
    ir_cluster *x = &ir->clusters[to], *y = &ir->clusters[from], joint;
    same_space(ir, x, y, &joint);
    int n = x->n_members + y->n_members,
        *members = weft__arena_alloc(&ir->arena, (size_t)n * sizeof *members);
    if (!members) return false;
    for (int i = 0, j = 0, k = 0; k < n; k++) { /* both lists are in topological order */
        bool left = j == y->n_members || (i < x->n_members && x->members[i] < y->members[j]);
        members[k] = left ? x->members[i++] : y->members[j++];
        ir->nodes[members[k]].cluster = to;
    }
    x->members = members;
    x->n_members = x->capacity = n;
    x->recomputed = x->recomputed || y->recomputed;
    x->early = x->early || y->early;
    if (y->chunk) x->chunk = y->chunk;
    set_space(ir, x, &joint);
    y->n_members = 0;
    y->gone = true;
    return weft__order_merge(ir, to, from);
}

/* Merges the clusters of node n's operands with its own where they fit. So, for example, all updates of an
 * optimizer become one kernel. False if memory is gone. */
static bool merge_operands(weft_ir *ir, int n) {
    const ir_node *node = &ir->nodes[n];
    for (int k = 0; k < node->n_in; k++) {
        int other = ir->nodes[node->in[k].node].cluster;
        if (other < 0 || other == node->cluster || ir->clusters[other].heavy >= 0) continue;
        if (mergeable(ir, node->cluster, other) && !merge_clusters(ir, node->cluster, other)) return false;
    }
    return true;
}

/* Merges a map over the rows into the row kernel that reads it, if the kernel reads it only at its own row.
 * False if memory is gone. */
static bool absorb_rows(weft_ir *ir) {
    for (size_t i = 0; i < ir->n_nodes; i++) {
        const ir_node *node = &ir->nodes[i];
        for (int k = 0; node->live && k < node->n_in; k++) {
            int c = node->cluster, other = ir->nodes[node->in[k].node].cluster;
            if (c < 0 || other < 0 || c == other || !ir->clusters[c].row || ir->clusters[other].row) continue;
            if (ir->clusters[other].full != ir->clusters[c].rows) continue;
            if (mergeable(ir, c, other) && !merge_clusters(ir, c, other)) return false;
        }
    }
    return true;
}

/* Siblings are row clusters that do not need each other. They become one kernel if they reduce the same rows
 * and read the same value, or if they are small and have the same form. The second stages of sums are small,
 * also on a device with many blocks. There, kernels that read much would have too few blocks together. */
enum { SMALL_SPACE = 1 << 18, SMALL_BLOCKS = 1 << 21, MOST_MEMBERS = 48, MOST_ARGUMENTS = 48 };
enum { TOGETHER_BLOCKS = 1 << 22 /* elements that all reductions of such a kernel read */ };
/* Each cluster is compared with at most so many others of its size, so large graphs compile in linear
 * time. */
enum { SIBLINGS_MOST = 1024 };

/* Upper bound of the number of arguments that the members need. OpenCL promises 1,024 bytes for all arguments
 * of a kernel. */
static int arguments_of(const weft_ir *ir, const ir_cluster *c) {
    int count = 0;
    for (int i = 0; i < c->n_members; i++) {
        const ir_node *node = &ir->nodes[c->members[i]];
        count += node->kind == IR_REDUCE || node->stored;
        for (int k = 0; k < node->n_in; k++) {
            const ir_node *in = &ir->nodes[node->in[k].node];
            count += in->kind != IR_CONST && in->cluster != node->cluster;
        }
    }
    return count;
}

static int64_t reductions_of(const weft_ir *ir, const ir_cluster *c) {
    int64_t count = 0;
    for (int i = 0; i < c->n_members; i++) count += ir->nodes[c->members[i]].kind == IR_REDUCE;
    return count;
}

/* Would two clusters with different inputs read too much for one kernel? */
static bool read_much(const weft_ir *ir, const ir_cluster *a, const ir_cluster *b) {
    if (!ir->device->many_blocks) return a->full > SMALL_SPACE;
    return a->full > SMALL_BLOCKS ||
           (reductions_of(ir, a) + reductions_of(ir, b)) * a->full > TOGETHER_BLOCKS;
}

/* Do two clusters read the same large value? */
static bool share_input(const weft_ir *ir, const ir_cluster *a, const ir_cluster *b) {
    for (int i = 0; i < a->n_members; i++)
        for (int k = 0; k < ir->nodes[a->members[i]].n_in; k++) {
            int from = ir->nodes[a->members[i]].in[k].node;
            if (ir_is_source(&ir->nodes[from]) || ir->nodes[from].numel < a->full) continue;
            for (int j = 0; j < b->n_members; j++)
                for (int l = 0; l < ir->nodes[b->members[j]].n_in; l++)
                    if (ir->nodes[b->members[j]].in[l].node == from) return true;
        }
    return false;
}

/* Returns a list by cluster: the next row cluster with as many elements, -1: none. NULL if memory is gone. */
static int *chain_siblings(weft_ir *ir) {
    const size_t most = (size_t)ir->n_clusters + 1;
    ir_keyed *list = weft__arena_alloc(&ir->arena, most * sizeof *list);
    int *next = weft__arena_alloc(&ir->arena, most * sizeof *next), count = 0;
    if (!list || !next) return NULL;
    for (int c = 0; c < ir->n_clusters; c++) {
        next[c] = -1;
        if (ir->clusters[c].row && !ir->clusters[c].gone)
            list[count++] = (ir_keyed){(uint64_t)ir->clusters[c].full, c};
    }
    qsort(list, (size_t)count, sizeof *list, weft__by_key);
    for (int i = 0; i + 1 < count; i++)
        if (list[i].key == list[i + 1].key) next[list[i].number] = list[i + 1].number;
    return next;
}

/* Merges the kernels of parts of a block that read the same values. Real and imaginary parts mostly do. False
 * if memory is gone. */
static bool merge_parts(weft_ir *ir, const ir_node *pack) {
    for (int i = 0; i < pack->n_in && pack->imm_i != IR_PACK_IN_TURN; i++)
        for (int j = 0; j < i; j++) {
            const int a = ir->nodes[pack->in[i].node].cluster, b = ir->nodes[pack->in[j].node].cluster;
            if (a < 0 || b < 0 || a == b) continue;
            if (pack->imm_i != IR_PACK_PAIRS && !share_input(ir, &ir->clusters[a], &ir->clusters[b]))
                continue;
            if (mergeable(ir, a, b) && !merge_clusters(ir, a, b)) return false;
        }
    return true;
}

static bool are_siblings(weft_ir *ir, int a, int b) {
    const ir_cluster *x = &ir->clusters[a], *y = &ir->clusters[b];
    ir_cluster joint;
    if (y->gone || x->n_members + y->n_members > MOST_MEMBERS || !same_space(ir, x, y, &joint)) return false;
    if (weft__order_reaches(ir, a, b)) return false;
    if (arguments_of(ir, x) + arguments_of(ir, y) > MOST_ARGUMENTS) return false;
    if ((read_much(ir, x, y) || joint.folds) && !share_input(ir, x, y)) return false;
    return !weft__order_precedes(ir, b, a) && mergeable(ir, a, b);
}

static bool merge_siblings(weft_ir *ir) {
    const int *next = chain_siblings(ir);
    for (int a = 0; next && a < ir->n_clusters; a++) {
        int left = SIBLINGS_MOST;
        for (int b = next[a]; b >= 0 && left-- && !ir->clusters[a].gone; b = next[b])
            if (are_siblings(ir, a, b) && !merge_clusters(ir, a, b)) return false;
    }
    return next != NULL;
}

/* ---- assignment ---- */

/* Puts node n into the newest cluster that it can join, or into a new one. */
static weft_status assign(weft_ir *ir, int n) {
    ir_node *node = &ir->nodes[n];
    int best = -1;
    for (int k = 0; ir->fuse && k < node->n_in; k++) {
        int c = ir->nodes[node->in[k].node].cluster;
        if (c > best && joinable(ir, c, node)) best = c;
    }
    if (best < 0) best = new_cluster(ir, -1);
    if (best < 0) return weft__ir_failed(ir);
    ir_cluster *cluster = &ir->clusters[best];
    if (node->kind == IR_REDUCE) {
        become_row(ir, cluster, node);
    } else if (!cluster->row) {
        become_map(cluster, node);
    }
    bool fine = add_member(ir, best, n) && (!ir->fuse || merge_operands(ir, n));
    return fine ? WEFT_OK : weft__ir_failed(ir);
}

/* A value that depends only on constants and counters may float: it has no kernel of its own, and each kernel
 * that uses it computes it. */
typedef struct floating {
    int *sizes;      /* number of nodes that each floating value needs */
    int64_t *widest; /* elements of the largest value whose kernel would recompute it */
} floating;

/* Finds `widest`. A value is recomputed for each element of its largest reader. If this reader floats as
 * well, its own largest reader counts. False if memory is gone. */
static bool find_widest(weft_ir *ir, floating *f) {
    const size_t n = ir->n_nodes;
    bool *free_of_leaves = weft__arena_alloc(&ir->arena, n + 1);
    f->sizes = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *f->sizes);
    f->widest = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *f->widest);
    if (!free_of_leaves || !f->sizes || !f->widest) return false;
    for (size_t i = 0; i < n; i++) {
        const ir_node *node = &ir->nodes[i];
        free_of_leaves[i] = ir_is_source(node) || node->kind == IR_CALC || node->kind == IR_CAST;
        for (int k = 0; k < node->n_in; k++)
            free_of_leaves[i] = free_of_leaves[i] && free_of_leaves[node->in[k].node];
    }
    for (size_t i = n; i-- > 0;) { /* readers come later */
        const ir_node *node = &ir->nodes[i];
        int64_t most = node->numel;
        if (free_of_leaves[i] && f->widest[i] > most) most = f->widest[i];
        for (int k = 0; node->live && k < node->n_in; k++)
            if (f->widest[node->in[k].node] < most) f->widest[node->in[k].node] = most;
    }
    return true;
}

/* May node n float? Not if it needs many nodes, or if an expensive function would be repeated. For example,
 * the sines of positions would be computed again in each head. */
static bool floats(const weft_ir *ir, int n, const floating *f) {
    const ir_node *node = &ir->nodes[n];
    int *sizes = f->sizes;
    if (node->kind != IR_CALC && node->kind != IR_CAST) return false;
    if (node->stored || node->copy || ir_divides_integers(node)) return false;
    const bool repeated = node->numel > 1 && f->widest[n] > 2 * node->numel;
    if (repeated && node->kind == IR_CALC && weft__row_expensive(node->op)) return false;
    for (int k = 0; k < node->n_in; k++) {
        const ir_node *in = &ir->nodes[node->in[k].node];
        if (!ir_is_source(in) && (!ir_is_compute(in) || in->cluster >= 0)) return false;
        sizes[n] += sizes[node->in[k].node];
    }
    return ++sizes[n] <= IR_RECOMPUTED_MOST;
}

static weft_status assign_clusters(weft_ir *ir) {
    size_t count = 0;
    for (size_t i = 0; i < ir->n_nodes; i++) count += ir->nodes[i].live;
    ir->cluster_capacity = (int)count + 1;
    ir->clusters = weft__arena_alloc(&ir->arena, (count + 1) * sizeof *ir->clusters);
    floating f;
    if (!find_widest(ir, &f) || !ir->clusters || !weft__order_open(ir, (int)count))
        return weft__ir_failed(ir);
    for (size_t i = 0; i < ir->n_nodes; i++) {
        ir_node *node = &ir->nodes[i];
        if (!node->live) continue;
        if (node->kind == IR_PACK && ir->fuse && !merge_parts(ir, node)) return weft__ir_failed(ir);
        if (node->kind == IR_HEAVY || node->kind == IR_PACK) {
            int c = new_cluster(ir, (int)i);
            if (c < 0 || !add_member(ir, c, (int)i)) return weft__ir_failed(ir);
        } else if (node->kind == IR_HEAVY_OUT) {
            node->cluster = ir->nodes[node->in[0].node].cluster;
        } else if (ir_is_compute(node) && !(ir->fuse && floats(ir, (int)i, &f))) {
            WEFT_TRY(assign(ir, (int)i));
        }
    }
    return !ir->fuse || (absorb_rows(ir) && merge_siblings(ir)) ? WEFT_OK : weft__ir_failed(ir);
}

/* ---- column sums beside results ---- */

static bool stores_elements(const weft_ir *ir, const ir_cluster *cluster) {
    for (int i = 0; i < cluster->n_members; i++) {
        const ir_node *node = &ir->nodes[cluster->members[i]];
        if (node->stored && node->kind != IR_REDUCE && node->numel == cluster->full) return true;
    }
    return false;
}

/* A kernel that stores elements and sums their columns, as the gradient of an activation and of the bias
 * before it, has a work-item for each column. On a card its accesses are narrow, and it waits for each
 * element. As a fold it reads several elements of a row at once. */
static void fold_columns(weft_ir *ir) {
    ir_cluster space;
    for (int c = 0; ir->device->many_blocks && c < ir->n_clusters; c++) {
        ir_cluster *cluster = &ir->clusters[c];
        if (cluster->row && cluster->heavy < 0 && cluster->n_members && stores_elements(ir, cluster) &&
            weft__space_of_columns(ir, cluster, &space) && all_suit(ir, cluster, &space))
            set_space(ir, cluster, &space);
    }
}

weft_status weft__ir_fuse(weft_ir *ir) {
    bool apart = false, taken = false;
    mark_live(ir);
    if (ir->fuse) WEFT_TRY(weft__ir_parts(ir, &apart));
    if (apart) mark_live(ir);
    if (ir->fuse) WEFT_TRY(weft__ir_sums(ir, &taken));
    if (taken) mark_live(ir);
    WEFT_TRY(weft__ir_base_scatters(ir));
    for (size_t i = 0; i < ir->n_nodes; i++) { /* marked before clusters form, so that none of these values
                                                * floats */
        ir_node *node = &ir->nodes[i];
        if (node->live && node->kind == IR_GATHER && ir->nodes[node->in[0].node].kind != IR_LEAF)
            ir->nodes[node->in[0].node].stored = true;
        if (node->live && node->pack.node >= 0) node->stored = true;
    }
    WEFT_TRY(assign_clusters(ir));
    WEFT_TRY(weft__ir_choose_stored(ir));
    fold_columns(ir);
    return WEFT_OK;
}
