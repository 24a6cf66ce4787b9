/* The graph: a tensor is a node that records what to compute.
 * Must not know: what ops mean (the shape rules live in ops/), the values of tensors (the compiler computes
 * them). Ops are numbers with attributes here.
 * Read next: ops/ops.h for how ops record nodes, compiler/ for how a graph becomes a program. */
#ifndef WEFT_GRAPH_GRAPH_H
#define WEFT_GRAPH_GRAPH_H

#include <weft/tensor.h>
#include "base/base.h"
#include "graph/opcode.h"
#include "graph/variable.h"

/* What the program binds to an INPUT node at each run. */
typedef enum weft_leaf {
    WEFT_LEAF_NONE,    /* not an input: computed */
    WEFT_LEAF_STORAGE, /* device memory: data, variables, evaluated tensors */
    WEFT_LEAF_SCALAR,  /* one number held by the host */
    WEFT_LEAF_RANDOM   /* the eight words of a random key: seed, stream, step, first element */
} weft_leaf;

/* ---- attributes ---- */
typedef struct weft_attr_const {
    double f;
    int64_t i;
} weft_attr_const; /* CONST */
typedef struct weft_attr_random {
    uint64_t stream, first;
} weft_attr_random; /* of a random leaf */
typedef struct weft_attr_axes {
    uint32_t mask;
} weft_attr_axes; /* reductions, kept as extent 1 */
typedef struct weft_attr_permutation {
    int32_t order[WEFT_MAX_RANK];
} weft_attr_permutation; /* PERMUTE */
typedef struct weft_attr_pad {
    int64_t lo[WEFT_MAX_RANK], hi[WEFT_MAX_RANK];
} weft_attr_pad;
typedef struct weft_attr_slice {
    int64_t start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
} weft_attr_slice;
typedef struct weft_attr_axis {
    int64_t axis, extent;
    int64_t unique; /* no index occurs twice */
} weft_attr_axis;   /* GATHER, SCATTER_ADD, UPDATE */
typedef struct weft_attr_scan {
    int64_t axis, product, reverse;
} weft_attr_scan; /* SCAN */
typedef struct weft_attr_sorted {
    int64_t count, descending;
} weft_attr_sorted; /* ARGSORT (argsort or top-k), along the last dimension */
typedef struct weft_attr_exchange {
    int64_t exact;    /* adds in a binary tree */
    int64_t part;     /* elements of the sum that each process receives; 0: all */
} weft_attr_exchange; /* EXCHANGE */
typedef struct weft_attr_output {
    int64_t index;
} weft_attr_output; /* OUTPUT of a composite */

enum {
    WEFT_NODE_KEPT = 1,
    WEFT_NODE_VARIABLE = 2,
    WEFT_NODE_HELD = 4,  /* only its holds keep it alive */
    WEFT_NODE_DRAWN = 8, /* computed from random numbers, which differ from step to step */
    WEFT_NODE_FREED = 16 /* its user freed it; the last of its holds frees it, also in an open scope */
};

/* Ranges of the serials of the leaves that a node depends on: of variables, then of other leaves. Each is
 * WEFT_SERIALS - first, and last, so that a join takes the maxima, and zeros mean no leaf. They are doubles,
 * since processors have maxima of these. */
enum { WEFT_SOURCES = 4 };
#define WEFT_SERIALS 0x1p53

struct weft_tensor {
    weft_context *ctx;
    const char *where, *path; /* the user's file and line; the layer's path. Both are interned */
    weft_scope *scope;        /* owner; NULL once kept */
    weft_tensor *next, *prev; /* in the scope's list, or the context's list of kept tensors */
    weft_tensor **in;
    void *attr; /* attributes of the op: attr_bytes bytes without padding, part of the program's key */
    weft_storage *storage;
    weft_error *error; /* poisoned: the cause */
    const char *name;  /* of a variable */
    int64_t offset;    /* first element within storage */
    uint64_t epoch;    /* ctx->epoch when the node was recorded */
    uint64_t serial;   /* number of the node in recording order: the compiler keeps units of a program in this
                        * order */
    uint64_t mark;     /* stamp of the last walk over the graph, and the number that this walk gave */
    int number;
    uint32_t segment;     /* nodes that were recorded in one segment have the same number; 0: none */
    uint8_t segment_kind; /* the segment's kind, a weft_segment; 0 where segment is 0 */
    uint32_t parts;       /* a matmul that makes logits: its readers compute it in so many parts; 0 and 1:
                           * whole */
    bool recomputed;      /* recomputed copy: never merged with the node that it copies */
    weft_tensor *recomputed_copy; /* the recomputed copy of this node, made for the gradient with stamp
                                     recomputed_mark */
    uint64_t recomputed_mark;
    uint32_t holds;   /* count of the nodes, programs and assignments that need its value. The node stays
                       * while the count is not 0, whoever frees it */
    uint32_t recipes; /* count of the settled nodes that it is an input of: its struct stays, not its value */
    double sources[WEFT_SOURCES];
    uint64_t draws; /* settled: seed and step of its random numbers */
    uint16_t n_in, attr_bytes;
    uint16_t recipe_in; /* inputs of the recipe. A settled node has no inputs, but `in` and `attr` stay; the
                         * inputs may be freed */
    uint8_t op, dtype, leaf, flags;
    uint8_t
        recipe; /* of a settled node: the op that made it, plus 1. 0: not settled, or the recipe was let go */
    uint8_t stage; /* weft_stage; like path, not part of the program's key */
    int rank;
    int64_t shape[WEFT_MAX_RANK];
    int64_t numel;
    union {
        weft_attr_const number;  /* SCALAR leaf */
        weft_attr_random random; /* RANDOM leaf */
    } value;                     /* read again at each run, not part of the program's key */
};

struct weft_scope {
    weft_context *ctx;
    weft_scope *parent;
    weft_tensor *nodes; /* doubly linked, newest first */
    weft_arena arena;   /* memory of the inputs and attributes of its nodes */
    size_t count;
    bool hinted;
};

/* Counts the random nodes that a layer has recorded since the step or micro-batch began. */
typedef struct weft_layer_draws {
    const char *path;
    uint64_t step, micro_batch, count;
} weft_layer_draws;

/* A forward pass assigns value to variable. The program that computes `result` also performs the
 * assignment. */
typedef struct weft_assignment {
    weft_tensor *variable;       /* held */
    weft_tensor *value, *result; /* result is NULL until the pass has returned */
    weft_scope *scope;           /* the assignment is forgotten when this scope closes */
    uint64_t id, mark;           /* mark: stamp of the walk that found the assignment due */
} weft_assignment;

/* A location that a caller gave before, and the context's own copy of it. */
typedef struct weft_location {
    const char *given, *copy;
} weft_location;
enum { WEFT_LOCATION_BITS = 6 };

/* State of recording. The context owns it. */
typedef struct weft_graph {
    weft_tensor *free_nodes, *free_last; /* freed structs, in the order in which they are reused */
    size_t n_free;
    weft_tensor *dying; /* nodes that lost their last hold, to be released */
    weft_scope *free_scopes;
    weft_tensor *kept;    /* list of kept tensors and variables, which belong to no scope */
    weft_arena nodes;     /* memory of the structs */
    uint64_t serial;      /* number of nodes recorded so far */
    uint32_t segment;     /* segment that is being recorded; 0: none */
    uint32_t segments;    /* number of segments so far */
    uint8_t segment_kind; /* kind of the segment that is being recorded */
    uint32_t wanted;      /* bit i: the gradient rule that runs now must return a gradient for input i */
    weft_location locations[1 << WEFT_LOCATION_BITS]; /* hash table by the address of the given string */
    weft_layer_draws *draws; /* one entry for each layer that records random nodes, in the order of the
                              * forward pass */
    size_t n_draws, draws_capacity, draws_at;
    weft_assignment *assignments; /* recorded and not performed yet, oldest first */
    size_t n_assignments, assignments_capacity;
    uint64_t assignments_made; /* number recorded so far */
    weft_tensor oom;           /* preallocated poisoned tensor for failed allocations */
    weft_error oom_error, freed_error;
} weft_graph;

weft_status weft__graph_open(weft_context *ctx);
void weft__graph_close(weft_context *ctx);

/* ---- recording ---- */

/* Records a new node in the innermost scope and returns it, never NULL; it is poisoned on an error. attr may
 * be NULL; the node gets a copy. Inputs must not be poisoned. */
weft_tensor *weft__node(weft_context *ctx, const char *where, weft_op op, weft_dtype dtype, int rank,
                        const int64_t *shape, int n_in, weft_tensor *const *in, size_t attr_bytes,
                        const void *attr);

/* Checks inputs. Returns the first poisoned input, or a new poisoned tensor if an input is NULL or belongs to
 * another context. Returns NULL if all inputs are good. */
weft_tensor *weft__reject(const char *op, const char *where, weft_tensor *const *in, int count);

/* Returns a tensor that carries an error. If ctx is NULL, the tensor belongs to the thread. */
weft_tensor *weft__poison(weft_context *ctx, const char *where, weft_status status, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
/* The same error as weft__fail_null, as a poisoned tensor. */
weft_tensor *weft__poison_null(weft_context *ctx, const char *where, const char *function,
                               const char *argument);
/* Returns a poisoned tensor from a public function if a required argument is NULL (see WEFT_NEED in
 * base.h). */
#define WEFT_NEED_OR_POISON(ctx, where, argument)                                                            \
    do {                                                                                                     \
        if (!(argument)) return weft__poison_null(ctx, where, __func__, #argument);                          \
    } while (0)
static inline bool weft__poisoned(const weft_tensor *t) { return !t || t->error; }

/* Attaches storage with the computed values to t. t becomes a leaf and lets go of its inputs, so they can be
 * freed, but keeps its recipe: gradients flow through it while its scope is open. */
void weft__node_settle(weft_tensor *t, weft_storage *storage);
/* Whether t is settled and its recipe still tells how its value came about. */
bool weft__recipe_lives(const weft_tensor *t);
/* Makes t the op of its recipe, until it is shut. Returns false if t has no recipe that lives. */
bool weft__recipe_open(weft_tensor *t);
void weft__recipe_shut(weft_tensor *t);
/* t is another value from now on than its recipe tells. */
void weft__recipe_forget(weft_tensor *t);
/* t has got a value from outside: it is data, and depends on nothing that was recorded before. */
void weft__node_is_data(weft_tensor *t);
/* Whether t is a leaf that was computed, and its recipe is gone. */
bool weft__recipe_lost(const weft_tensor *t);
/* Whether t, whose recipe is gone, may depend on another tensor. Never false if it does. */
bool weft__may_depend(const weft_tensor *t, const weft_tensor *on);

/* Whether t is to be evaluated when its scope closes. */
static inline bool weft__node_pending(const weft_tensor *t) {
    return (t->flags & (WEFT_NODE_KEPT | WEFT_NODE_FREED)) == WEFT_NODE_KEPT && !t->leaf && !t->error;
}

/* Fails with WEFT_ERR_STALE: t reads `in`, which was written after t was recorded. */
weft_status weft__stale(const weft_tensor *t, const weft_tensor *in);

/* Fails if an input of t was written after t was recorded. */
static inline weft_status weft__check_fresh(const weft_tensor *t) {
    for (int i = 0; i < t->n_in; i++) {
        const weft_tensor *in = t->in[i];
        const uint64_t written = in->leaf == WEFT_LEAF_STORAGE && in->storage ? in->storage->write_epoch
                                 : in->leaf == WEFT_LEAF_SCALAR               ? in->epoch
                                                                              : 0;
        if (written > t->epoch) return weft__stale(t, in);
    }
    return WEFT_OK;
}

/* use: a node or an assignment needs the value of t, even if the user frees it. hold: a program needs it,
 * also beyond its scope. let_go takes one of either back. */
static inline void weft__node_use(weft_tensor *t) { t->holds++; }
void weft__node_hold(weft_tensor *t);
void weft__node_let_go(weft_tensor *t);

/* Nodes recorded between begin and end form a segment. A segment within another one joins the outer one. */
typedef enum weft_segment {
    WEFT_SEGMENT_NONE,
    WEFT_SEGMENT_BLOCK, /* checkpoint region: recomputed in the backward pass, so that only its inputs are
                         * kept (Chen et al. 2016, "Training deep nets with sublinear memory cost") */
    WEFT_SEGMENT_CHEAP, /* the same, but results of reductions and other values of the same few elements are
                         * kept: the statistics of a norm */
    WEFT_SEGMENT_CHUNK  /* one of many equal parts: never fused with another part, so that the parts need not
                         * be in memory at the same time. Nodes recorded for its gradients belong to it too */
} weft_segment;
uint32_t weft__segment_begin(weft_context *ctx, weft_segment kind);
void weft__segment_end(weft_context *ctx, uint32_t outer);
static inline bool weft__segment_recomputed(const weft_tensor *t) {
    return t->segment_kind == WEFT_SEGMENT_BLOCK || t->segment_kind == WEFT_SEGMENT_CHEAP;
}

/* ---- assignments of a forward pass: assignment.c ---- */
/* variable becomes value when the pass that is being recorded is computed. Both have the same shape and
 * dtype. Takes a hold on variable. */
weft_status weft__assignment_add(weft_tensor *variable, weft_tensor *value);
/* The forward pass returned result. All assignments with a number above `since` now belong to result. If
 * result is poisoned, they are dropped. */
void weft__assignments_belong(weft_context *ctx, uint64_t since, weft_tensor *result);
/* The value that a pending assignment gives the variable; NULL: none is pending. */
weft_tensor *weft__assignment_of(const weft_tensor *variable);
/* Drops the pending assignments to variables in a storage: they were performed, or the storage was
 * written. */
void weft__assignments_forget(weft_context *ctx, const weft_storage *storage);
/* Drops the assignments recorded in a closing scope: nobody asked for their results. */
void weft__assignments_close(const weft_scope *scope);

/* ---- storage ---- */
weft_storage *weft__storage_new(weft_context *ctx, size_t bytes);
void weft__storage_release(weft_context *ctx, weft_storage *storage);
/* Gives a storage memory on the device and fills in its first values, unless it has memory already. */
weft_status weft__storage_place(weft_context *ctx, weft_storage *storage);
/* The same without first values, for storage that is about to be overwritten as a whole. */
weft_status weft__storage_reserve(weft_context *ctx, weft_storage *storage);

/* ---- shapes: shape.c ---- */
/* Broadcasts two shapes as NumPy does; false if they do not fit. */
bool weft__broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape);
bool weft__shape_equal(const weft_tensor *a, const weft_tensor *b);
/* The text of a shape ("[2,3]") or tensor ("f32 [2,3]") in buffer, of WEFT_SHAPE_TEXT bytes. Returns
 * buffer. */
#define WEFT_SHAPE_TEXT 200
const char *weft__shape_text(int rank, const int64_t *shape, char *buffer);
const char *weft__tensor_text(const weft_tensor *t, char *buffer);
/* Resolves an axis, which counts from the end if negative; false if it is out of range. */
bool weft__axis(int axis, int rank, int *out);
/* The name of an op, as in ops.def. */
const char *weft__op_name(int op);

#endif
