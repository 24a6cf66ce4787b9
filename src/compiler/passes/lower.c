/* Lowers a fused cluster to a kernel. It starts at the stored members and emits the values that they need.
 * Each value is remembered by (node, access), so members share what both need. An access says at which index
 * of the node the kernel reads it: at the cluster's own full or row index, or through a view. A chain of ops
 * can be as long as memory allows, so pending values lie on a stack of our own, not on C's. Must not know:
 * devices. Read next: kernel/kernel.h.
 *
 *     index of the kernel        (parallel dimensions | reduction dimensions)
 *     ACCESS_FULL                one value for each index
 *     ACCESS_ROW                 one value for each parallel index
 *     ACCESS_VIEW                the index goes through a view first, such as a slice or a pad */
#include <stdio.h>
#include <string.h>
#include "compiler/passes/index.h"
#include "compiler/passes/ir.h"

typedef enum access_kind { ACCESS_FULL, ACCESS_ROW, ACCESS_VIEW } access_kind;

typedef struct access {
    access_kind kind;
    int view; /* ACCESS_VIEW: index into the kernel's views */
} access;

typedef struct memo_entry {
    int node, value;
    access at;
} memo_entry;

/* A value that is being emitted. Its first n_in operands have their values in `in`. */
typedef struct frame {
    int node, view;
    access at;
    bool fold;
    int in[3], n_in;
} frame;

typedef struct lowering {
    weft_ir *ir;
    const ir_cluster *cluster;
    int c;
    weft_kernel kernel;
    struct {
        size_t code, views, args;
    } capacity; /* of the kernel's arrays */
    int *arg_nodes;
    struct {
        memo_entry *list;
        size_t count, capacity;
    } memo;
    struct {
        frame *list;
        size_t depth, capacity;
    } frames;
    ir_index views, args, viewed, memos; /* indices over kernel.views, arg_nodes, kernel.code and memo */
    int order[WEFT_VIEW_RANK];           /* kernel dimension -> dimension of the cluster's space */
    int64_t row_shape[WEFT_VIEW_RANK];   /* parallel extents */
    int full_view, row_view;             /* the identity over the full space, and over the rows */
    int column_view, block_view;         /* the identity over (block, column), and over blocks */
    int failed_node;                     /* the value must be stored, because its view does not compose; -1 */
    int failed_user;                     /* or a copy of what this node reads of that value is needed; -1 */
} lowering;

enum {
    OUT_OF_MEMORY = -1,
    TOO_MANY_MAPS = -2,
    PENDING = -3 /* what the value needs is on the stack and is emitted first */
};

/* ---- the kernel's parts ---- */

static int add_view(lowering *l, const weft_view *view) {
    weft_hash h;
    weft__hash_init(&h);
    weft__view_hash(&h, view);
    size_t probe = 0;
    for (int i; (i = weft__index_next(&l->views, h.a, &probe)) >= 0;)
        if (weft__view_equal(&l->kernel.views[i], view)) return i;
    if (!weft__grow(l->ir->ctx, &l->kernel.views, &l->capacity.views, (size_t)l->kernel.n_views,
                    sizeof *view) ||
        !weft__index_add(l->ir->ctx, &l->views, h.a, l->kernel.n_views))
        return OUT_OF_MEMORY;
    l->kernel.views[l->kernel.n_views] = *view;
    return l->kernel.n_views++;
}

/* Number of elements between the first and the last one that the node touches in memory, both included. */
static int64_t reach_of(const weft_ir *ir, const ir_node *node) {
    if (node->pack.lies < 0 || !node->numel) return node->numel;
    const weft_map *lies = &ir->views[node->pack.lies].map[0];
    int64_t last = 0;
    for (int d = 0; d < lies->rank; d++) last += (lies->extent[d] - 1) * lies->stride[d];
    return last + 1;
}

static int add_arg(lowering *l, int n, bool written) {
    const uint64_t hash = weft__index_hash(n, 0, 0, 0);
    size_t probe = 0;
    int at;
    do at = weft__index_next(&l->args, hash, &probe);
    while (at >= 0 && l->arg_nodes[at] != n);
    if (at < 0) {
        size_t capacity = l->capacity.args;
        at = l->kernel.n_args;
        if (!weft__grow(l->ir->ctx, &l->arg_nodes, &capacity, (size_t)at, sizeof *l->arg_nodes) ||
            !weft__grow(l->ir->ctx, &l->kernel.args, &l->capacity.args, (size_t)at, sizeof *l->kernel.args) ||
            !weft__index_add(l->ir->ctx, &l->args, hash, at))
            return OUT_OF_MEMORY;
        const ir_node *node = &l->ir->nodes[n];
        l->arg_nodes[at] = n;
        l->kernel.args[at] = (weft_kernel_arg){.dtype = node->dtype, .elements = reach_of(l->ir, node)};
        l->kernel.n_args++;
    }
    if (written)
        l->kernel.args[at].written = true;
    else
        l->kernel.args[at].read = true;
    return at;
}

static int add_instr(lowering *l, const weft_instr *instr) {
    if (!weft__grow(l->ir->ctx, &l->kernel.code, &l->capacity.code, (size_t)l->kernel.n_code, sizeof *instr))
        return OUT_OF_MEMORY;
    l->kernel.code[l->kernel.n_code] = *instr;
    return l->kernel.n_code++;
}

static weft_instr instr_of(weft_instr_kind kind, weft_dtype dtype) {
    return (weft_instr){
        .kind = (uint8_t)kind, .dtype = (uint8_t)dtype, .a = -1, .b = -1, .c = -1, .arg = -1, .view = -1};
}

/* A value read through a view is FULL if the view moves, or has a guard, along a reduction dimension. */
static uint8_t level_of(const lowering *l, int view) {
    const weft_map *map = &l->kernel.views[view].map[0];
    for (int d = l->kernel.n_parallel; d < map->rank; d++)
        if (map->extent[d] != 1 && (map->stride[d] || map->lo[d] > 0 || map->hi[d] < map->extent[d]))
            return WEFT_LEVEL_FULL;
    return WEFT_LEVEL_ROW;
}

/* ---- views in the kernel's index space ---- */

/* Writes the view of an edge over the cluster's full space, with the parallel dimensions first. */
static bool full_view(const lowering *l, ir_edge edge, weft_view *out) {
    return weft__space_view(l->ir, l->cluster, edge, l->cluster->shape, out) &&
           weft__view_permute(out, l->order);
}

/* Writes the view of an edge over the rows, repeated along the reduction dimensions. */
static bool row_view(const lowering *l, ir_edge edge, weft_view *out) {
    int p = l->kernel.n_parallel, r = l->kernel.n_reduce;
    int64_t ones[WEFT_VIEW_RANK];
    for (int i = 0; i < p + r; i++) ones[i] = i < p ? l->row_shape[i] : 1;
    return weft__space_view(l->ir, l->cluster, edge, ones, out) && weft__view_expand(out, l->kernel.extent);
}

static int view_at(lowering *l, ir_edge edge, const ir_node *user, access at) {
    weft_view view;
    bool fine;
    if (at.kind == ACCESS_VIEW) {
        weft_view inner;
        fine = weft__ir_edge_view(l->ir, edge, user->rank, user->shape, &inner) &&
               weft__view_compose(&l->kernel.views[at.view], &inner, &view);
    } else {
        fine = at.kind == ACCESS_FULL ? full_view(l, edge, &view) : row_view(l, edge, &view);
    }
    return fine ? add_view(l, &view) : TOO_MANY_MAPS;
}

/* ---- values ---- */

static uint64_t memo_hash(int n, access at) { return weft__index_hash(n, (int)at.kind, at.view, 0); }

/* Returns the remembered value, -1: none. */
static int recall(const lowering *l, int n, access at) {
    const uint64_t hash = memo_hash(n, at);
    size_t probe = 0;
    for (int i; (i = weft__index_next(&l->memos, hash, &probe)) >= 0;)
        if (l->memo.list[i].node == n && l->memo.list[i].at.kind == at.kind &&
            l->memo.list[i].at.view == at.view)
            return l->memo.list[i].value;
    return -1;
}

static int remember(lowering *l, int n, access at, int value) {
    if (value < 0) return value;
    if (!weft__grow(l->ir->ctx, &l->memo.list, &l->memo.capacity, l->memo.count, sizeof *l->memo.list) ||
        !weft__index_add(l->ir->ctx, &l->memos, memo_hash(n, at), (int)l->memo.count))
        return OUT_OF_MEMORY;
    l->memo.list[l->memo.count++] = (memo_entry){n, value, at};
    return value;
}

/* Puts a value on the stack. It is emitted before everything below it. */
static int push(lowering *l, frame f) {
    if (!weft__grow(l->ir->ctx, &l->frames.list, &l->frames.capacity, l->frames.depth, sizeof f))
        return OUT_OF_MEMORY;
    l->frames.list[l->frames.depth++] = f;
    return PENDING;
}

static int emit_const(lowering *l, const ir_node *node, double f, int64_t i) {
    weft_instr instr = instr_of(WEFT_INSTR_CONST, (weft_dtype)node->dtype);
    instr.imm_f = f;
    instr.imm_i = i;
    return add_instr(l, &instr);
}

/* Emits a load, an index or a mask, or returns the one that exists: all members share it. */
static int emit_viewed(lowering *l, weft_instr_kind kind, weft_dtype dtype, int view, int arg) {
    const uint64_t hash = weft__index_hash((int)kind, view, arg, (int)dtype);
    size_t probe = 0;
    for (int i; (i = weft__index_next(&l->viewed, hash, &probe)) >= 0;) {
        const weft_instr *same = &l->kernel.code[i];
        if (same->kind == kind && same->view == view && same->arg == arg && same->dtype == dtype) return i;
    }
    weft_instr instr = instr_of(kind, dtype);
    instr.view = view;
    instr.arg = arg;
    instr.level = level_of(l, view);
    return weft__index_add(l->ir->ctx, &l->viewed, hash, l->kernel.n_code) ? add_instr(l, &instr)
                                                                           : OUT_OF_MEMORY;
}

static int emit_load(lowering *l, int n, int view) {
    int arg = add_arg(l, n, false);
    if (arg < 0) return arg;
    return emit_viewed(l, WEFT_INSTR_LOAD, (weft_dtype)l->ir->nodes[n].dtype, view, arg);
}

/* Is the value in memory when this kernel runs? */
static bool in_memory(const lowering *l, const ir_node *node) {
    return node->kind == IR_LEAF || (node->stored && node->cluster != l->c);
}

/* Returns the value of node n, or PENDING if it must be emitted first. A REDUCE fails if it is read through a
 * view, by another cluster or as a fold: then it must be stored. */
static int value_of(lowering *l, int n, access at, int view) {
    const ir_node *node = &l->ir->nodes[n];
    const int known = recall(l, n, at);
    if (known >= 0) return known;
    int key;
    switch ((ir_kind)node->kind) {
    case IR_CONST: return remember(l, n, at, emit_const(l, node, node->imm_f, node->imm_i));
    case IR_IOTA:
        return remember(l, n, at, emit_viewed(l, WEFT_INSTR_INDEX, (weft_dtype)node->dtype, view, -1));
    case IR_RANDOM:
        key = add_arg(l, node->in[0].node, false);
        return key < 0 ? key : remember(l, n, at, emit_viewed(l, WEFT_INSTR_RANDOM, WEFT_I32, view, key));
    case IR_REDUCE:
        if (at.kind == ACCESS_VIEW || node->cluster != l->c || node->reduce.fold) {
            l->failed_node = n;
            return TOO_MANY_MAPS;
        }
        return push(l, (frame){.node = n, .view = view, .at = at});
    case IR_CALC:
    case IR_CAST:
    case IR_GATHER: return push(l, (frame){.node = n, .view = view, .at = at});
    default: return emit_load(l, n, view);
    }
}

/* Do the guards of the view reject every index? */
static bool lets_nothing_through(const weft_view *view) {
    for (int d = 0; d < view->map[0].rank; d++)
        if (view->map[0].extent[d] == 0) return false; /* there is no index to reject */
    for (int i = 0; i < view->count; i++)
        for (int d = 0; d < view->map[i].rank; d++)
            if (view->map[i].lo[d] >= view->map[i].hi[d]) return true;
    return false;
}

/* Returns the value of node n as a view sees it: 0 where a guard fails. */
static int emit_seen(lowering *l, int n, int view) {
    const ir_node *node = &l->ir->nodes[n];
    if (lets_nothing_through(&l->kernel.views[view])) return emit_const(l, node, 0, 0);
    if (in_memory(l, node)) return emit_load(l, n, view);
    access through = {ACCESS_VIEW, view};
    bool guarded = weft__view_guarded(&l->kernel.views[view]);
    if (!guarded) return value_of(l, n, through, view);
    int mask = emit_viewed(l, WEFT_INSTR_MASK, WEFT_BOOL, view, -1);
    if (node->kind == IR_CONST && node->dtype == WEFT_BOOL && node->imm_i) return mask;
    if (mask < 0) return mask;
    int value = value_of(l, n, through, view);
    if (value < 0) return value;
    int none = emit_const(l, node, 0, 0);
    if (none < 0) return none;
    weft_instr choose = instr_of(WEFT_INSTR_CALC, (weft_dtype)node->dtype);
    choose.op = WEFT_OP_WHERE;
    choose.a = mask;
    choose.b = value;
    choose.c = none;
    choose.level = l->kernel.code[mask].level > l->kernel.code[value].level ? l->kernel.code[mask].level
                                                                            : l->kernel.code[value].level;
    return add_instr(l, &choose);
}

/* Returns the value of the operand that node `user` sees through the edge. `user` itself is read at `at`. */
static int emit_operand(lowering *l, const ir_node *user, ir_edge edge, access at) {
    const ir_node *node = &l->ir->nodes[edge.node];
    const ir_cluster *cluster = l->cluster;
    if (!in_memory(l, node) && at.kind != ACCESS_VIEW) { /* the operand may be at the cluster's own index */
        if (edge.view < 0)
            return value_of(l, edge.node, at, at.kind == ACCESS_FULL ? l->full_view : l->row_view);
        if (node->cluster == l->c && node->numel == cluster->rows && cluster->row)
            return value_of(l, edge.node, (access){ACCESS_ROW, 0}, l->row_view);
    }
    int view = view_at(l, edge, user, at);
    if (view == TOO_MANY_MAPS) { /* A node that is read through a view must be stored: this ends the chain of
                                  * views. */
        int reader = (int)(user - l->ir->nodes);
        l->failed_node = at.kind == ACCESS_VIEW ? reader : edge.node;
        l->failed_user = at.kind == ACCESS_VIEW ? -1 : reader;
    }
    return view < 0 ? view : emit_seen(l, edge.node, view);
}

/* Emits the frame on top of the stack. Its operands may be pushed above it, so it is found by its index. */
static int emit_calc(lowering *l, const ir_node *node) {
    const size_t f = l->frames.depth - 1;
    const access at = l->frames.list[f].at;
    weft_instr instr =
        instr_of(node->kind == IR_CAST ? WEFT_INSTR_CAST : WEFT_INSTR_CALC, (weft_dtype)node->dtype);
    for (int k; (k = l->frames.list[f].n_in) < node->n_in; l->frames.list[f].n_in++) {
        const int value = emit_operand(l, node, node->in[k], at);
        if (value < 0) return value;
        l->frames.list[f].in[k] = value;
    }
    const int *in = l->frames.list[f].in;
    for (int k = 0; k < node->n_in; k++)
        if (l->kernel.code[in[k]].level > instr.level) instr.level = l->kernel.code[in[k]].level;
    if (node->kind == IR_CAST && l->kernel.code[in[0]].dtype == node->dtype) return in[0];
    if (node->kind == IR_CALC) instr.op = node->op;
    instr.a = node->n_in > 0 ? in[0] : -1;
    instr.b = node->n_in > 1 ? in[1] : -1;
    instr.c = node->n_in > 2 ? in[2] : -1;
    return add_instr(l, &instr);
}

/* Broadcasts a row value over the reduction dimensions. */
static int lift(lowering *l, int value) {
    weft_instr instr = instr_of(WEFT_INSTR_CAST, (weft_dtype)l->kernel.code[value].dtype);
    instr.a = value;
    instr.level = WEFT_LEVEL_FULL;
    return add_instr(l, &instr);
}

static int emit_reduce(lowering *l, const ir_node *node) {
    int a = emit_operand(l, node, node->in[0], (access){ACCESS_FULL, 0});
    if (a >= 0 && l->kernel.code[a].level == WEFT_LEVEL_ROW) a = lift(l, a); /* summed for each index */
    if (a < 0) return a;
    weft_instr instr = instr_of(WEFT_INSTR_REDUCE, (weft_dtype)node->dtype);
    instr.op = node->op;
    instr.a = a;
    return add_instr(l, &instr);
}

/* Sums the rows of a block. A value that is constant along the row is broadcast first if the sum has
 * columns. */
static int emit_fold(lowering *l, const ir_node *node) {
    const bool column = l->kernel.n_reduce && l->ir->nodes[node->in[0].node].numel == l->cluster->full;
    int a = emit_operand(l, node, node->in[0], (access){column ? ACCESS_FULL : ACCESS_ROW, 0});
    if (a >= 0 && column && l->kernel.code[a].level == WEFT_LEVEL_ROW) a = lift(l, a);
    if (a < 0) return a;
    weft_instr instr = instr_of(WEFT_INSTR_FOLD, (weft_dtype)node->dtype);
    instr.op = node->op;
    instr.a = a;
    instr.level = column ? WEFT_LEVEL_COLUMN : WEFT_LEVEL_BLOCK;
    return add_instr(l, &instr);
}

/* Adds the view of a gather's table or index: a stride for each dimension of the node's shape. */
static int strided_view(lowering *l, const ir_node *node, access at, const int64_t *stride,
                        const weft_view *inner) {
    weft_view view, all;
    weft__view_identity(&view, node->rank, node->shape);
    for (int i = 0; i < node->rank; i++) view.map[0].stride[i] = stride[i];
    all = view;
    if (inner && !weft__view_compose(&view, inner, &all)) return TOO_MANY_MAPS;
    if (at.kind == ACCESS_VIEW) {
        if (!weft__view_compose(&l->kernel.views[at.view], &all, &view)) return TOO_MANY_MAPS;
        return add_view(l, &view);
    }
    if (at.kind == ACCESS_FULL) {
        if (!weft__view_reshape(&all, l->cluster->rank, l->cluster->shape) ||
            !weft__view_permute(&all, l->order))
            return TOO_MANY_MAPS;
        return add_view(l, &all);
    }
    int64_t ones[WEFT_VIEW_RANK];
    int rank = l->kernel.n_parallel + l->kernel.n_reduce;
    for (int i = 0; i < rank; i++) ones[i] = i < l->kernel.n_parallel ? l->row_shape[i] : 1;
    if (!weft__view_reshape(&all, rank, ones) || !weft__view_expand(&all, l->kernel.extent))
        return TOO_MANY_MAPS;
    return add_view(l, &all);
}

/* y (A, I, B) = x (A, n, B) at index (I). The view of the table has stride 0 over I: the instruction adds the
 * index times the stride of n. */
static int emit_gather(lowering *l, int n, const ir_node *node, access at) {
    const weft_tensor *index_tensor = node->from.tensor->in[1];
    int axis = (int)node->imm_i, index_rank = index_tensor->rank;
    int64_t table_stride[WEFT_VIEW_RANK], index_stride[WEFT_VIEW_RANK], inner = 1, step = 1;
    for (int i = node->rank - 1; i >= axis + index_rank; i--) {
        table_stride[i] = inner;
        index_stride[i] = 0;
        inner *= node->shape[i];
    }
    int64_t extent = node->from.tensor->in[0]->shape[axis], outer = inner * extent;
    for (int i = axis + index_rank - 1; i >= axis; i--) {
        table_stride[i] = 0;
        index_stride[i] = step;
        step *= node->shape[i];
    }
    for (int i = axis - 1; i >= 0; i--) {
        table_stride[i] = outer;
        index_stride[i] = 0;
        outer *= node->shape[i];
    }
    ir_edge index_edge = node->in[1];
    weft_view inner_view;
    if (!weft__ir_edge_view(l->ir, index_edge, index_rank, index_tensor->shape, &inner_view))
        return TOO_MANY_MAPS;
    int where = strided_view(l, node, at, index_stride, &inner_view);
    int view = strided_view(l, node, at, table_stride, NULL);
    if (where < 0 || view < 0) {
        l->failed_node = where < 0 && at.kind != ACCESS_VIEW ? index_edge.node : n;
        return where < view ? where : view;
    }
    int value = emit_seen(l, index_edge.node, where);
    int arg = value < 0 ? value : add_arg(l, node->in[0].node, false);
    if (arg < 0) return arg;
    weft_instr instr = instr_of(WEFT_INSTR_GATHER, (weft_dtype)node->dtype);
    instr.a = value;
    instr.view = view;
    instr.arg = arg;
    instr.imm_i = inner;
    instr.bound = extent;
    instr.level = level_of(l, view);
    if (l->kernel.code[value].level > instr.level) instr.level = l->kernel.code[value].level;
    return add_instr(l, &instr);
}

/* Emits the value on top of the stack, or pushes an operand and returns PENDING. */
static int emit_top(lowering *l) {
    const frame f = l->frames.list[l->frames.depth - 1];
    const ir_node *node = &l->ir->nodes[f.node];
    if (f.fold) return emit_fold(l, node);
    const int value = node->kind == IR_REDUCE   ? emit_reduce(l, node)
                      : node->kind == IR_GATHER ? emit_gather(l, f.node, node, f.at)
                                                : emit_calc(l, node);
    return remember(l, f.node, f.at, value);
}

/* Emits a stored node and everything that it needs, and returns its value. */
static int emit(lowering *l, int n, access at, int view) {
    const bool fold = l->ir->nodes[n].reduce.fold;
    int value = fold ? push(l, (frame){.node = n, .fold = true}) : value_of(l, n, at, view);
    while (l->frames.depth && (value >= 0 || value == PENDING)) {
        value = emit_top(l);
        if (value != PENDING) l->frames.depth--;
    }
    return value;
}

/* Returns the view of the place where the node is stored, over the rows or the full space. */
static int place_view(lowering *l, int n, bool full) {
    const ir_edge place = {n, l->ir->nodes[n].pack.lies};
    weft_view view;
    if (place.view < 0) return full ? l->full_view : l->row_view;
    return (full ? full_view(l, place, &view) : row_view(l, place, &view)) ? add_view(l, &view)
                                                                           : TOO_MANY_MAPS;
}

static int emit_store(lowering *l, int n) {
    const ir_node *node = &l->ir->nodes[n];
    bool full = node->kind != IR_REDUCE && node->numel == l->cluster->full;
    access at = {full ? ACCESS_FULL : ACCESS_ROW, 0};
    int view = full ? l->full_view : l->row_view;
    int value = emit(l, n, at, view);
    int arg = value < 0 ? value : add_arg(l, n, true);
    if (arg >= 0) view = place_view(l, n, full);
    if (arg < 0 || view < 0) return arg < 0 ? arg : view;
    weft_instr instr = instr_of(WEFT_INSTR_STORE, (weft_dtype)node->dtype);
    instr.a = value;
    instr.arg = arg;
    instr.view = view;
    instr.level = full && l->kernel.n_reduce ? WEFT_LEVEL_FULL : WEFT_LEVEL_ROW;
    if (node->reduce.fold) {
        instr.level = l->kernel.code[value].level;
        instr.view = instr.level == WEFT_LEVEL_COLUMN ? l->column_view : l->block_view;
    }
    return add_instr(l, &instr);
}

/* Names the kernel after its form and its first ops, such as "map_mul_add_gelu". */
static const char *kernel_name(lowering *l) {
    char text[96];
    const char *form = l->kernel.n_fold ? "fold" : l->kernel.n_reduce ? "row" : "map";
    int n = snprintf(text, sizeof text, "%s", form), last = -1, shown = 0;
    for (int i = 0; i < l->kernel.n_code && shown < 5; i++) {
        const weft_instr *instr = &l->kernel.code[i];
        const char *part = instr->kind == WEFT_INSTR_GATHER   ? "gather"
                           : instr->kind == WEFT_INSTR_RANDOM ? "random"
                           : instr->kind == WEFT_INSTR_CALC || instr->kind == WEFT_INSTR_REDUCE ||
                                   instr->kind == WEFT_INSTR_FOLD
                               ? weft__op_name(instr->op)
                               : NULL;
        if (!part || (instr->kind == WEFT_INSTR_CALC && instr->op == last)) continue;
        last = instr->kind == WEFT_INSTR_CALC ? instr->op : -1;
        n += snprintf(text + n, sizeof text - (size_t)n, "_%s", part);
        shown++;
    }
    return weft__intern(l->ir->ctx, shown ? text : "copy");
}

/* Does dimension d + 1 continue dimension d in all views? Then the two are one dimension. */
static bool mergeable(const weft_kernel *kernel, int d) {
    for (int v = 0; v < kernel->n_views; v++) {
        const weft_map *map = &kernel->views[v].map[0];
        if (map->lo[d] > 0 || map->hi[d] < map->extent[d] || map->lo[d + 1] > 0 ||
            map->hi[d + 1] < map->extent[d + 1])
            return false;
        if (map->extent[d] != 1 && map->extent[d + 1] != 1 &&
            map->stride[d] != map->stride[d + 1] * map->extent[d + 1])
            return false;
    }
    return true;
}

static void merge(weft_kernel *kernel, int d) {
    int rank = kernel->n_parallel + kernel->n_reduce;
    for (int v = 0; v < kernel->n_views; v++) {
        weft_map *map = &kernel->views[v].map[0];
        if (map->extent[d + 1] == 1) map->stride[d + 1] = map->stride[d];
        map->extent[d + 1] *= map->extent[d];
        map->hi[d + 1] = map->extent[d + 1];
        for (int i = d; i + 1 < rank; i++) {
            map->extent[i] = map->extent[i + 1];
            map->stride[i] = map->stride[i + 1];
            map->lo[i] = map->lo[i + 1];
            map->hi[i] = map->hi[i + 1];
        }
        map->rank--;
    }
    kernel->extent[d + 1] *= kernel->extent[d];
    for (int i = d; i + 1 < rank; i++) kernel->extent[i] = kernel->extent[i + 1];
    if (d >= kernel->n_parallel - kernel->n_fold && d < kernel->n_parallel) kernel->n_fold--;
    if (d < kernel->n_parallel)
        kernel->n_parallel--;
    else
        kernel->n_reduce--;
}

/* Merges dimensions where all views allow it, so devices see few long dimensions. Parallel, folded and
 * reduced dimensions stay apart. */
static void collapse(weft_kernel *kernel) {
    for (int d = 0; d + 1 < kernel->n_parallel + kernel->n_reduce;) {
        const bool apart = d + 1 == kernel->n_parallel || d + 1 == kernel->n_parallel - kernel->n_fold;
        if (!apart && mergeable(kernel, d))
            merge(kernel, d);
        else
            d++;
    }
}

/* Puts the parallel dimensions of the cluster's space first, the reduced ones last, and makes the identity
 * views. */
static bool open_space(lowering *l) {
    const ir_cluster *cluster = l->cluster;
    int rank = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < cluster->rank; i++) {
            bool reduced = cluster->row && (cluster->axes >> i & 1u);
            if (reduced != (pass == 1)) continue;
            l->order[rank] = i;
            l->kernel.extent[rank] = cluster->shape[i];
            if (!reduced)
                l->row_shape[l->kernel.n_parallel++] = cluster->shape[i];
            else
                l->kernel.n_reduce++;
            rank++;
        }
    l->kernel.n_fold = cluster->folds ? 1 : 0;
    weft_view view;
    ir_edge self = {0, -1};
    bool fine = full_view(l, self, &view) && (l->full_view = add_view(l, &view)) >= 0;
    fine = fine && row_view(l, self, &view) && (l->row_view = add_view(l, &view)) >= 0;
    if (cluster->folds && cluster->shape[0] * cluster->shape[1] > cluster->rows)
        l->kernel.last_rows = cluster->rows - (cluster->shape[0] - 1) * cluster->shape[1];
    for (int i = 0; fine && cluster->folds && i < 2; i++) {
        int64_t shape[3] = {cluster->shape[0], 1, i == 0 ? cluster->shape[2] : 1};
        weft__view_identity(&view, cluster->rank, shape);
        fine = weft__view_expand(&view, cluster->shape);
        int at = fine ? add_view(l, &view) : -1;
        fine = at >= 0;
        *(i == 0 ? &l->column_view : &l->block_view) = at;
    }
    return fine;
}

/* Moves all stores to the end. A kernel that updates a variable in place has then read all that it needs. */
static bool stores_last(lowering *l) {
    weft_kernel *k = &l->kernel;
    weft_instr *code = weft__arena_alloc(&l->ir->arena, (size_t)(k->n_code + 1) * sizeof *code);
    int *number = weft__arena_alloc(&l->ir->arena, (size_t)(k->n_code + 1) * sizeof *number), n = 0;
    if (!code || !number) return false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < k->n_code; i++)
            if ((k->code[i].kind == WEFT_INSTR_STORE) == (pass == 1)) {
                number[i] = n;
                code[n++] = k->code[i];
            }
    for (int i = 0; i < n; i++) {
        int *operand[3] = {&code[i].a, &code[i].b, &code[i].c};
        for (int j = 0; j < 3; j++)
            if (*operand[j] >= 0) *operand[j] = number[*operand[j]];
        k->code[i] = code[i];
    }
    return true;
}

/* Removes unused views, and moves the kernel into memory that lives as long as the program. */
static weft_status lower_finish(lowering *l, weft_arena *keep, weft_kernel **out) {
    weft_kernel *kernel = weft__arena_alloc(keep, sizeof *kernel);
    weft_kernel *k = &l->kernel;
    int *used = weft__arena_alloc(&l->ir->arena, (size_t)(k->n_views + 1) * sizeof *used), n = 0;
    if (!kernel || !used || !stores_last(l)) return weft__ir_failed(l->ir);
    for (int i = 0; i < k->n_code; i++)
        if (k->code[i].view >= 0) used[k->code[i].view] = 1;
    for (int i = 0; i < k->n_views; i++) {
        if (!used[i]) continue;
        k->views[n] = k->views[i];
        used[i] = n++;
    }
    k->n_views = n;
    for (int i = 0; i < k->n_code; i++)
        if (k->code[i].view >= 0) k->code[i].view = used[k->code[i].view];
    collapse(k);
    k->name = kernel_name(l);
    *kernel = *k;
    kernel->code = weft__arena_alloc(keep, (size_t)k->n_code * sizeof *k->code + 1);
    kernel->views = weft__arena_alloc(keep, (size_t)k->n_views * sizeof *k->views + 1);
    kernel->args = weft__arena_alloc(keep, (size_t)k->n_args * sizeof *k->args + 1);
    if (!k->name || !kernel->code || !kernel->views || !kernel->args) return weft__ir_failed(l->ir);
    memcpy(kernel->code, k->code, (size_t)k->n_code * sizeof *k->code);
    memcpy(kernel->views, k->views, (size_t)k->n_views * sizeof *k->views);
    memcpy(kernel->args, k->args, (size_t)k->n_args * sizeof *k->args);
    *out = kernel;
    return WEFT_OK;
}

weft_status weft__ir_lower(weft_ir *ir, int c, weft_arena *keep, weft_kernel **kernel, int **arg_nodes,
                           int *failed_node, int *failed_user) {
    lowering l = {.ir = ir, .cluster = &ir->clusters[c], .c = c, .failed_node = -1, .failed_user = -1};
    weft_status status = WEFT_OK;
    int value = open_space(&l) ? 0 : OUT_OF_MEMORY;
    for (int i = 0; value >= 0 && i < l.cluster->n_members; i++) {
        int n = l.cluster->members[i];
        if (!ir->nodes[n].stored) continue;
        value = emit_store(&l, n);
        l.kernel.path = ir->nodes[n].from.path;
    }
    *failed_node = value == TOO_MANY_MAPS ? l.failed_node : -1;
    *failed_user = value == TOO_MANY_MAPS ? l.failed_user : -1;
    if (value == OUT_OF_MEMORY) status = weft__ir_failed(ir);
    if (value >= 0) {
        status = lower_finish(&l, keep, kernel);
        *arg_nodes = weft__arena_alloc(&ir->arena, (size_t)(l.kernel.n_args + 1) * sizeof(int));
        if (!*arg_nodes)
            status = weft__ir_failed(ir);
        else if (l.kernel.n_args)
            memcpy(*arg_nodes, l.arg_nodes, (size_t)l.kernel.n_args * sizeof(int));
    }
    weft__free(ir->ctx, l.kernel.code);
    weft__free(ir->ctx, l.kernel.views);
    weft__free(ir->ctx, l.kernel.args);
    weft__free(ir->ctx, l.arg_nodes);
    weft__free(ir->ctx, l.memo.list);
    weft__free(ir->ctx, l.frames.list);
    weft__index_free(ir->ctx, &l.views);
    weft__index_free(ir->ctx, &l.args);
    weft__index_free(ir->ctx, &l.viewed);
    weft__index_free(ir->ctx, &l.memos);
    return status;
}
