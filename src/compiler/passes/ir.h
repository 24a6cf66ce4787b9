/* The compiler's own form of a graph (IR). Movement ops do not occur in it: each operand is an edge, that is
 * a node and a view of it. All memory of a compilation comes from one arena and is freed with it. Must not
 * know: layers, files. Read next: ir.c, build.c.
 *
 * The passes, in the order in which they run:
 *
 *     tensors
 *        |  build.c      tensors -> IR: views on edges, composites taken or expanded
 *        |  reduce.c     reductions; long ones are split into two stages
 *        |  heavy/       heavy tensors -> HEAVY nodes whose operands a device can address
 *        |  divided.c    which ops read parameters that several processes have divided
 *        |  layout.c     the order of dimensions in which values are stored
 *        |  parts.c      concatenations and gradients of slices, stored part by part
 *        |  sums.c       column sums that a matmul computes as a second result
 *        |  fuse.c       which nodes share a kernel
 *        |    store.c      which values are stored
 *        |    space.c      index spaces of kernels: which ones fit together
 *        |    order.c      which kernels run before which, while clusters form
 *        |  plan.c       order, phases, slots, commands
 *        |    lower.c         a fused cluster -> a kernel
 *        |    epilogue.c      kernels that become part of a matmul
 *        |    exchanges.c     when exchanges with other processes start and end
 *        |    plan_memory.c   lifetimes, one arena
 *        v
 *     weft_program
 *
 * All passes share ir.c (nodes and views) and index.c (finds entries of arrays by a hash). */
#ifndef WEFT_COMPILER_PASSES_IR_H
#define WEFT_COMPILER_PASSES_IR_H

#include "compiler/passes/index.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/view.h"

typedef enum ir_kind {
    IR_LEAF, /* bound at run time */
    IR_CONST,
    IR_IOTA,
    IR_RANDOM,    /* in: key */
    IR_CALC,      /* a row of the op table */
    IR_CAST,      /* a conversion; to the same dtype: a copy */
    IR_REDUCE,    /* over `reduce.axes` of `reduce.shape`; `shape` keeps them as 1 or drops them */
    IR_GATHER,    /* in: table (identity view), index */
    IR_HEAVY,     /* a heavy operation; its results are HEAVY_OUT nodes */
    IR_HEAVY_OUT, /* in: the HEAVY node. imm_i is the index of the result. Of a matmul: 0 the matrix, 1 the
                   * row sums */
    IR_PACK       /* in: parts that share one block, each from its `offsets` on; imm_i: how they lie there */
} ir_kind;

/* How the parts of a PACK lie in its block: one after the other, or apart. Apart means that each part has a
 * view `lies`. Pairs are the real and imaginary parts of complex numbers.
 *
 *     IN_TURN   a a a a b b b      PAIRS   r i r i r i      APART   a a a b b
 *                                                                   a a a b b */
enum { IR_PACK_IN_TURN, IR_PACK_APART, IR_PACK_PAIRS };

#define IR_CHUNK_OF_EXCHANGE UINT32_C(0x80000000) /* chunks of exchanges come after those of segments */

/* An operand: element i of the consumer's index space is element view(i) of `node`. view -1 is the row-major
 * identity. For a constant, view -1 fits any shape. */
typedef struct ir_edge {
    int node, view;
} ir_edge;

/* Where a stored value lies in memory. */
typedef struct ir_place {
    int slot;       /* slot of the program; 0: the arena, -1: not placed yet */
    int64_t offset; /* bytes */
} ir_place;

typedef struct ir_node {
    uint8_t kind, op, dtype;
    bool stored;  /* has memory: its own, or a place in a pack */
    bool claimed; /* its memory belongs to an output or a variable */
    bool live;
    bool copy; /* a CAST that only moves data; must stay a node of its own */
    int rank, n_in;
    int users;   /* number of edges that read it */
    int cluster; /* its fused kernel; -1: none, then it is recomputed in each kernel that uses it */
    int within;  /* LEAF: the gathered piece that it lies in, a node; -1: none */
    struct {
        int node; /* the PACK that it lies in, -1: none */
        int lies; /* its place there: view from its index to an element of the block, counted from its offset
                   * on; -1: contiguous */
    } pack;
    int sink;       /* the assignment (ir_sink) whose value it is, -1: none */
    int unit;       /* the scheduled unit that computes it, -1: none */
    int64_t *shape; /* rank extents */
    struct {
        uint32_t axes; /* mask over shape */
        int rank;      /* of the operand's index space */
        int64_t *shape;
        bool fold; /* over the rows of a block of its cluster's space */
    } reduce;
    int64_t numel;
    ir_edge *in;
    double imm_f;
    int64_t imm_i; /* CONST: value; LEAF that lies within a node: its first element there; HEAVY_OUT: index of
                    * the result; GATHER: axis; PACK: IR_PACK_...; REDUCE: the number of rows if the last
                    * block in reduce.shape is shorter than the others, else 0 */
    int64_t *offsets; /* of the parts of a PACK, or of the results in one HEAVY_OUT; in elements */
    int n_results;    /* HEAVY_OUT: it holds the results imm_i, imm_i + 1, ...; 0 counts as one */
    struct {
        const weft_tensor
            *tensor; /* LEAF: the tensor that is bound to it; else the tensor that it computes */
        const char *path;
        uint64_t serial; /* serial number of the tensor; units run in the order of these numbers */
        uint32_t
            chunk; /* its chunk, or its exchange; nodes of two chunks never share a kernel; 0: no chunk */
        bool recomputed; /* for the backward pass; never unified with the original */
        bool early;      /* of the forward pass; never in one kernel with recomputed nodes */
    } from;
    weft_heavy *heavy;
    ir_place place;
} ir_node;

/* An assignment: variable <- value. */
typedef struct ir_sink {
    weft_tensor *variable;
    weft_tensor *value;
    int node;      /* the stored node that holds the value */
    bool in_place; /* the node writes its result into the variable's memory */
} ir_sink;

/* A number and the key by which it is sorted. weft__by_key is a comparison for qsort; equal keys are sorted
 * by number. */
typedef struct ir_keyed {
    uint64_t key;
    int number;
} ir_keyed;
int weft__by_key(const void *x, const void *y);

/* A list of cluster numbers. */
typedef struct ir_links {
    int *at, count, capacity;
} ir_links;

/* The nodes that one kernel computes. Its index space has all dimensions that its members need. Three forms:
 *
 *     map   (d0, d1, ...)          no reductions; every member has one value for each index
 *     row   (d0, d1 | d2)          d2 is reduced (`axes`); members have full or row values
 *     fold  (block, row | column)  the rows of a block are summed as well (`folds`) */
typedef struct ir_cluster {
    bool row; /* row or fold: has reductions */
    bool gone;
    bool recomputed, early; /* some member is */
    uint32_t chunk;         /* chunk of its members, 0: none is of a chunk */
    int rank;               /* rank of its full index space */
    int64_t shape[WEFT_VIEW_RANK];
    uint32_t axes;      /* mask of the reduced dimensions */
    uint32_t folds;     /* mask of the dimension that counts the rows of a block, 0: none. Then the space is
                         * (block, row, column) with reduced columns, or (block, row). The last block is
                         * shorter if shape[0] * shape[1] > rows */
    int64_t full, rows; /* elements of the full space; of it without the reduced dimensions */
    int *members, n_members, capacity;
    ir_links earlier, later; /* clusters that must run before and after it; see order.c */
    int place;               /* its place in a topological order */
    int into;                /* the cluster that it was merged into, or itself */
    int mark;                /* stamp of the last search that visited it */
    int ahead;               /* the same for the search of weft__order_reaches */
    int heavy;               /* the HEAVY or PACK node; -1: the cluster is a kernel */
} ir_cluster;

/* The op with this serial number reads a piece of divided parameters. */
typedef struct ir_read {
    uint64_t serial;
    const weft_divided_piece *piece;
} ir_read;

typedef struct ir_map_entry {
    const void *key;
    ir_edge edge;
} ir_map_entry;

typedef struct weft_ir {
    weft_context *ctx;
    weft_device *device;
    weft_arena arena;
    bool fuse;      /* false: each node is a kernel of its own */
    int64_t ragged; /* a sum over this many rows becomes a fold with a shorter last block; 0: no sum does */
    ir_node *nodes;
    size_t n_nodes, node_capacity;
    weft_view *views;
    size_t n_views, view_capacity;
    ir_index view_index;
    struct { /* hash table: tensor -> edge */
        ir_map_entry *entries;
        size_t count, capacity;
    } map;
    struct { /* hash table of node numbers, for weft__ir_unify */
        int *table;
        size_t count, capacity;
    } cse;
    struct { /* all reads of divided parameters */
        ir_read *list;
        size_t count, capacity;
    } reads;
    uint64_t expanded; /* serial number of the composite that is being expanded; 0: none */
    struct {
        weft_tensor *const *list;
        int *nodes;
        size_t count;
    } outputs;
    struct {
        ir_sink *list;
        size_t count;
    } sinks;
    ir_cluster *clusters;
    int n_clusters, cluster_capacity;
    struct { /* scratch memory of order.c */
        int *found, stamp;
        int64_t *places;
    } order;
    struct {                       /* the search of weft__order_reaches */
        int of, stamp, count, met; /* of -1: none is open */
        int64_t *places;
    } ahead;
} weft_ir;

/* ---- ir.c ---- */
/* Adds a node and returns its number, or -1 if memory is gone. `in` may be NULL; the caller then fills in the
 * operands later. */
int weft__ir_node(weft_ir *ir, ir_kind kind, weft_dtype dtype, int rank, const int64_t *shape, int n_in,
                  const ir_edge *in);
/* Returns the number of a view of node n: -1 for the identity over the whole node, -2 if memory is gone.
 * Equal views share a number. */
int weft__ir_view(weft_ir *ir, int n, const weft_view *view);
/* Writes the view of an edge over an index space of this shape, which has as many elements as the edge's own.
 * False if the list of maps would be too long. */
bool weft__ir_edge_view(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, weft_view *out);
/* Adds a node that stores the values that the edge sees over `shape`, row-major. -1 if memory is gone. */
int weft__ir_copy(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape);
weft_status weft__ir_failed(weft_ir *ir);

weft_status weft__ir_sort(weft_ir *ir); /* Renumbers the nodes so that operands come before their users. */

/* ---- build.c ---- */
/* Returns an earlier node that equals the newest one, and drops the newest; or returns the newest. -1 if
 * memory is gone, or if `newest` is negative. */
int weft__ir_unify(weft_ir *ir, int newest);
/* Notes that the node computes t, or a step on the way to t. */
void weft__ir_comes_from(ir_node *node, const weft_tensor *t, weft_op op);
/* Adds a node that computes t, or a step on the way to t, over `shape`, which has the rank of t. -1 if memory
 * is gone. */
int weft__ir_shaped(weft_ir *ir, ir_kind kind, const weft_tensor *t, const int64_t *shape, int n_in,
                    const ir_edge *in);
weft_status weft__ir_build(weft_ir *ir, weft_tensor *const *outputs, size_t n_outputs, ir_sink *sinks,
                           size_t n_sinks);

/* ---- reduce.c ---- */
/* Builds a reduction. It runs in the memory order of its operand, and in two stages if it reduces many
 * elements to few. */
weft_status weft__ir_reduce(weft_ir *ir, const weft_tensor *t, ir_edge in, ir_edge *out);
/* Builds a matmul: as a heavy operation, or as sums if a matrix has few columns. */
weft_status weft__ir_matmul(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);

/* ---- divided.c ---- */
/* Is the node a leaf of a storage that several processes have divided? */
bool weft__ir_divided(const ir_node *node);
/* Returns the piece in which such a leaf lies as a whole, or NULL. */
const weft_divided_piece *weft__ir_piece(const weft_tensor *t);
/* Fails if the leaf lies in several pieces. */
weft_status weft__ir_check_divided(weft_ir *ir, const weft_tensor *t);
/* Notes which of the operands of an op are such leaves. */
weft_status weft__ir_note_reads(weft_ir *ir, uint64_t serial, const ir_edge *in, int n_in);

/* ---- layout.c ---- */
/* If the largest operand is stored in another order of dimensions than `shape`: permutes the edges of all
 * operands into that order, sets stored[i] = shape[order[i]] and returns true. Else returns false. */
bool weft__ir_in_order(weft_ir *ir, int rank, const int64_t *shape, int n_in, ir_edge *in, int *order,
                       int64_t *stored);
/* The edge that shows node n, stored in that order, in the order of the shape. Its view is -2 if memory is
 * gone. */
ir_edge weft__ir_shown(weft_ir *ir, int n, int rank, const int64_t *stored, const int *order);

weft_status weft__ir_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);
/* Turns the sum of a scatter-add and another value into a scatter-add onto that value, its base. Needs the
 * counts of users. */
weft_status weft__ir_base_scatters(weft_ir *ir);

/* ---- parts.c ---- */
/* Turns stored values that are assembled from parts into PACKs of these parts. Needs the counts of users. If
 * it sets *taken, the counts are out of date. */
weft_status weft__ir_parts(weft_ir *ir, bool *taken);

/* ---- sums.c ---- */
/* Turns the column sums of a matmul's left operand into a second result of the matmul, if the device takes
 * that. Needs the counts of users. If it sets *taken, the counts are out of date. */
weft_status weft__ir_sums(weft_ir *ir, bool *taken);

/* ---- space.c ---- */
/* Writes the index space of a cluster that holds only this reduction. */
void weft__space_of(const ir_node *reduce, ir_cluster *out);
/* Can two clusters with reductions share an index space? Writes a copy of x with that space. y may also be
 * one reduction over row values of x. */
bool weft__space_join(const weft_ir *ir, const ir_cluster *x, const ir_cluster *y, ir_cluster *out);
/* Writes x with the space in which it folds the columns that it only reduces now. False if that does not pay.
 */
bool weft__space_of_columns(const weft_ir *ir, const ir_cluster *x, ir_cluster *out);
/* Does the reduction sum the rows of blocks, in a cluster of that space? */
bool weft__space_folds(const ir_cluster *cluster, const ir_node *reduce);
/* Writes the view of an edge over the cluster's space. `shape` is the shape of the space; reduced extents may
 * be 1. False if the list of maps would be too long. */
bool weft__space_view(const weft_ir *ir, const ir_cluster *space, ir_edge edge, const int64_t *shape,
                      weft_view *out);
/* Can the views of the node's operands be taken over a space of blocks without becoming longer lists of
 * maps? */
bool weft__space_suits(const weft_ir *ir, const ir_cluster *space, const ir_node *node);

/* ---- order.c ---- */
/* Call it before the first of at most `most` clusters. This and the functions below return false if memory is
 * gone. */
bool weft__order_open(weft_ir *ir, int most);
/* Puts the newest cluster last in the order. */
void weft__order_new(weft_ir *ir, int c);
/* Records that cluster c runs after `first`. c must not precede `first`. */
bool weft__order_after(weft_ir *ir, int c, int first);
/* Does b need a, directly or indirectly? Also true if the search gives up, as it may in large graphs. */
bool weft__order_precedes(weft_ir *ir, int a, int b);
/* The same for one a and many b in turn: each search continues where the last one ended. */
bool weft__order_reaches(weft_ir *ir, int a, int b);
/* Is there a third cluster that needs a and that b needs? Also true if the search gives up. */
bool weft__order_between(weft_ir *ir, int a, int b);
/* Records that cluster `from` was merged into `to`. No third cluster may be between the two. */
bool weft__order_merge(weft_ir *ir, int to, int from);

/* ---- fuse.c ---- */
weft_status weft__ir_fuse(weft_ir *ir);

/* ---- store.c ---- */
/* A value that needs more ops and casts than these is never recomputed in another kernel. */
enum { IR_RECOMPUTED_MOST = 256 };
/* Decides which values of the clusters get memory. */
weft_status weft__ir_choose_stored(weft_ir *ir);

/* ---- lower.c ---- */
/* Makes the kernel of cluster c, in memory of `keep`. arg_nodes[i] is the node of argument i: a stored node
 * or a leaf.
 *
 * A chain of views may be too long to compose. Then there is no kernel: *failed_node is the value that must
 * be stored instead. If *failed_user is not -1, a copy of what this user reads of the value is needed
 * instead. Without a failure both are -1. */
weft_status weft__ir_lower(weft_ir *ir, int c, weft_arena *keep, weft_kernel **kernel, int **arg_nodes,
                           int *failed_node, int *failed_user);

static inline bool ir_is_compute(const ir_node *node) {
    return node->kind == IR_CALC || node->kind == IR_CAST || node->kind == IR_REDUCE ||
           node->kind == IR_GATHER;
}
/* Has no operands that need memory, so each kernel can compute it again. */
static inline bool ir_is_source(const ir_node *node) {
    return node->kind == IR_CONST || node->kind == IR_IOTA || node->kind == IR_RANDOM;
}
static inline bool ir_divides_integers(const ir_node *node) {
    return node->kind == IR_CALC && (node->op == WEFT_OP_DIV || node->op == WEFT_OP_MOD) &&
           !weft_dtype_is_float((weft_dtype)node->dtype);
}

#endif
