/* The compiler's own form of a graph: movement is gone, each operand is an edge (node, view). The passes:
 *   ir.c     nodes and views, what the passes share
 *   index.c  finds entries of arrays by a hash
 *   build.c  tensors -> IR: views folded into edges, composites taken or expanded, big reductions split
 *   layout.c in which order of dimensions values are stored
 *   parts.c  concatenations and gradients of slices, stored part by part
 *   sums.c   column sums that a product's device computes with it
 *   space.c  index spaces of kernels: which fit together
 *   order.c  which kernels run before which, while clusters form
 *   fuse.c   which nodes share a kernel, which values are stored
 *   lower.c  a fused cluster -> a kernel
 *   plan.c   order, lifetimes, one arena, commands
 * All memory of a compilation lies in one arena and goes with it. */
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
    IR_CALC,      /* row of the op table */
    IR_CAST,      /* conversion; of the same dtype: a copy */
    IR_REDUCE,    /* over axes of `shape_in`; extents of 1 stay */
    IR_GATHER,    /* in: table (identity view), index */
    IR_HEAVY,     /* one heavy operation; its results are HEAVY_OUT */
    IR_HEAVY_OUT, /* in: heavy; of a product: 0 the product, 1 sums */
    IR_PACK       /* parts in one block, from `offsets` on; imm: how they lie there */
} ir_kind;

/* How the parts of a PACK lie: one after the other, or side by side, each as its `lies` says; pairs are the
 * real and imaginary parts of complex numbers. */
enum { IR_PACK_IN_TURN, IR_PACK_APART, IR_PACK_PAIRS };

/* Operand: element i of the consumer's index space is element view(i) of node. view -1: row-major identity,
 * or all of a constant, whatever its shape. */
typedef struct ir_edge {
    int node, view;
} ir_edge;

/* Where a stored value lies. */
typedef struct ir_place {
    int slot;       /* of the program; 0 is the arena, -1 not placed yet */
    int64_t offset; /* bytes */
} ir_place;

typedef struct ir_node {
    uint8_t kind, op, dtype;
    bool stored;  /* has memory of its own, or lies in a pack */
    bool claimed; /* that memory is an output's or a variable's */
    bool live;
    bool again;     /* recomputed for the backward pass: not the node it equals */
    bool early;     /* of the forward pass: never in one kernel with what is recomputed */
    uint32_t chunk; /* never in one kernel with what is of another one; 0: of none */
    bool fold;      /* a REDUCE that adds up the rows of a block of its cluster's space */
    bool copy;      /* a CAST that only moves data: must stay a node of its own */
    int rank, n_in;
    int users;   /* edges that read it */
    int cluster; /* fused kernel it belongs to; -1: none, recomputed where used */
    int pack;    /* PACK that it lies in, -1 */
    int lies;    /* how: view from its index to an element of the block from its offset on; -1: in one run */
    int sink;    /* index of the assignment that it is the value of, -1 */
    int unit;    /* scheduled unit that makes it, -1 */
    uint32_t axes;  /* REDUCE: mask over shape_in */
    int rank_in;    /* REDUCE: the operand's index space */
    int64_t *shape; /* rank extents */
    int64_t *shape_in;
    int64_t numel;
    ir_edge *in;
    double imm_f;
    int64_t imm_i;    /* CONST value, HEAVY_OUT index, GATHER axis, PACK part offset, HEAVY axis; REDUCE: how
                       * many rows there are where the last of the blocks in shape_in is shorter, else 0 */
    int64_t *offsets; /* PACK: elements; HEAVY_OUT that holds several results: likewise */
    int n_results;    /* HEAVY_OUT: results imm_i.. lie in it */
    const weft_tensor *tensor; /* LEAF: what it is bound to; else where it comes from */
    const char *path;
    uint64_t serial; /* of the tensor: units run in the order in which they were recorded */
    weft_heavy *heavy;
    ir_place place;
} ir_node;

/* variable <- value */
typedef struct ir_sink {
    weft_tensor *variable;
    weft_tensor *value;
    int node;      /* stored node that holds the value */
    bool in_place; /* the node is computed straight into the variable */
} ir_sink;

/* A number to be sorted by a key of its own: weft__by_key, for qsort, which takes equal keys by number. */
typedef struct ir_keyed {
    uint64_t key;
    int number;
} ir_keyed;
int weft__by_key(const void *x, const void *y);

/* Numbers of clusters. */
typedef struct ir_links {
    int *at, count, capacity;
} ir_links;

/* A set of nodes computed by one kernel. */
typedef struct ir_cluster {
    bool row; /* has reductions */
    bool gone;
    bool again, early; /* some member is */
    uint32_t chunk;    /* of the members that are of one */
    int rank;          /* of its full index space */
    int64_t shape[WEFT_VIEW_RANK];
    uint32_t axes;      /* reduced dimensions of it */
    uint32_t folds;     /* rows of a block: then it is (block, row, column), and columns are reduced, or
                         * (block, row); the last block is shorter where shape[0] * shape[1] > rows */
    int64_t full, rows; /* elements of the full space, and of the space without the reduced dimensions */
    int *members, n_members, capacity;
    ir_links earlier, later; /* clusters that must run before and after it: order.c */
    int place;               /* in an order that they allow */
    int into;                /* the cluster that it was merged into, itself */
    int mark;                /* stamp of the last search that met it */
    int ahead;               /* stamp of the last search ahead that met it */
    int heavy;               /* the HEAVY node, -1 for a kernel */
} ir_cluster;

typedef struct ir_map_entry {
    const void *key;
    ir_edge edge;
} ir_map_entry;

typedef struct weft_ir {
    weft_context *ctx;
    weft_device *device;
    weft_arena arena;
    bool fuse;      /* false: every node is a kernel of its own */
    int64_t ragged; /* sums of so many rows are folds, the last block shorter; 0: none are */
    ir_node *nodes;
    size_t n_nodes, node_capacity;
    weft_view *views;
    size_t n_views, view_capacity;
    ir_index view_index;
    ir_map_entry *map; /* tensor -> edge */
    size_t map_count, map_capacity;
    int *cse; /* hash table of node numbers */
    size_t cse_count, cse_capacity;
    weft_tensor *const *outputs;
    int *output_nodes;
    size_t n_outputs;
    ir_sink *sinks;
    size_t n_sinks;
    ir_cluster *clusters;
    int n_clusters, cluster_capacity;
    int *order_found, order_stamp; /* of searches in order.c */
    int64_t *order_places;
    int ahead_of, ahead_stamp, ahead_count, ahead_met; /* the search ahead of order.c; ahead_of is -1: none */
    int64_t *ahead_places;
} weft_ir;

/* ---- ir.c ---- */
/* A new node; in may be NULL and filled in later. -1 when memory is gone. */
int weft__ir_node(weft_ir *ir, ir_kind kind, weft_dtype dtype, int rank, const int64_t *shape, int n_in,
                  const ir_edge *in);
/* Number of a view of node n, -1 for the identity over all of it, -2 when memory is gone. */
int weft__ir_view(weft_ir *ir, int n, const weft_view *view);
/* The view of an edge over an index space of that shape (as many elements as the edge's own). */
bool weft__ir_edge_view(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, weft_view *out);
/* A node that holds the values that edge sees over `shape`, row-major. */
int weft__ir_copy(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape);
weft_status weft__ir_failed(weft_ir *ir); /* out of memory */

weft_status weft__ir_sort(weft_ir *ir); /* operands come before their users again */

/* ---- build.c ---- */
/* The earlier node equal to the newest one, which is then dropped; or the newest. */
int weft__ir_unify(weft_ir *ir, int newest);
weft_status weft__ir_build(weft_ir *ir, weft_tensor *const *outputs, size_t n_outputs, ir_sink *sinks,
                           size_t n_sinks);

/* ---- layout.c ---- */
/* Where the largest operand is stored in another order of dimensions than the shape's: turns all operands
 * into that order, with stored[i] = shape[order[i]]. Else false. */
bool weft__ir_in_order(weft_ir *ir, int rank, const int64_t *shape, int n_in, ir_edge *in, int *order,
                       int64_t *stored);
/* Node n, stored in that order, seen over the shape. View -2: memory is gone. */
ir_edge weft__ir_shown(weft_ir *ir, int n, int rank, const int64_t *stored, const int *order);

/* ---- heavy.c: heavy tensors -> HEAVY nodes whose operands a device can address ---- */
weft_status weft__ir_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);
/* Sums of a scatter-add and another value become scatter-adds to that base. Users are counted. */
weft_status weft__ir_base_scatters(weft_ir *ir);

/* ---- parts.c ---- */
/* Stored values that are assembled from parts become blocks of them. Users are counted before; where *taken,
 * they have to be counted again. */
weft_status weft__ir_parts(weft_ir *ir, bool *taken);

/* ---- sums.c ---- */
/* Column sums of what a product reads as its left operand become a result of the product, where the device
 * takes that. Users are counted; *taken: anew. */
weft_status weft__ir_sums(weft_ir *ir, bool *taken);

/* ---- space.c ---- */
/* The space of a cluster that holds just this reduction. */
void weft__space_of(const ir_node *reduce, ir_cluster *out);
/* The space in which the members of two clusters with reductions can be together, in a copy of x; y may also
 * be one reduction over row values of x. */
bool weft__space_join(const weft_ir *ir, const ir_cluster *x, const ir_cluster *y, ir_cluster *out);
/* Does the reduction add up the rows of blocks, in a cluster of that space? */
bool weft__space_folds(const ir_cluster *cluster, const ir_node *reduce);
/* The view of an edge over the cluster's space, whose shape that is (reduced extents may be 1). */
bool weft__space_view(const weft_ir *ir, const ir_cluster *space, ir_edge edge, const int64_t *shape,
                      weft_view *out);
/* Can the node's views be cut into a space of blocks without becoming longer lists? */
bool weft__space_suits(const weft_ir *ir, const ir_cluster *space, const ir_node *node);

/* ---- order.c ---- */
/* Before the first of `most` clusters. False when memory is gone, here and below. */
bool weft__order_open(weft_ir *ir, int most);
/* The newest cluster comes last. */
void weft__order_new(weft_ir *ir, int c);
/* Cluster c runs after `first`. It must not precede it. */
bool weft__order_after(weft_ir *ir, int c, int first);
/* Does b need a, directly or not? In large graphs also where that is too far to say. */
bool weft__order_precedes(weft_ir *ir, int a, int b);
/* The same, for one a and many b in turn: each search goes on where the last one ended. */
bool weft__order_reaches(weft_ir *ir, int a, int b);
/* Is there a third cluster that needs a and that b needs? Likewise. */
bool weft__order_between(weft_ir *ir, int a, int b);
/* All of cluster `from` is now in `to`. Nothing may be between the two. */
bool weft__order_merge(weft_ir *ir, int to, int from);

/* ---- fuse.c ---- */
weft_status weft__ir_fuse(weft_ir *ir);

/* ---- lower.c ---- */
/* The kernel of cluster c, in memory of `keep`. Its arguments are nodes: arg_nodes[i], a stored node or a
 * leaf. When a chain of views cannot be composed, *failed_node (-1 otherwise) is the value that must be
 * stored instead; when *failed_user is not -1, a copy of what that node reads of it. */
weft_status weft__ir_lower(weft_ir *ir, int c, weft_arena *keep, weft_kernel **kernel, int **arg_nodes,
                           int *failed_node, int *failed_user);

static inline bool ir_is_compute(const ir_node *node) {
    return node->kind == IR_CALC || node->kind == IR_CAST || node->kind == IR_REDUCE ||
           node->kind == IR_GATHER;
}
/* Has no operands that need memory: recomputed anywhere. */
static inline bool ir_is_source(const ir_node *node) {
    return node->kind == IR_CONST || node->kind == IR_IOTA || node->kind == IR_RANDOM;
}

#endif
