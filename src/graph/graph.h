/* The graph: tensors are nodes that record what to compute. Knows ops only by number and attributes; shape
 * rules live with the ops, values with the compiler. Read next: ops/ for what is recorded, compiler/ for what
 * becomes of it. */
#ifndef WEFT_GRAPH_GRAPH_H
#define WEFT_GRAPH_GRAPH_H

#include <weft/tensor.h>
#include "base/base.h"
#include "graph/opcode.h"
#include "graph/variable.h"

/* What an INPUT is bound to at each run. */
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
typedef struct weft_attr_order {
    int32_t order[WEFT_MAX_RANK];
} weft_attr_order; /* PERMUTE */
typedef struct weft_attr_pad {
    int64_t lo[WEFT_MAX_RANK], hi[WEFT_MAX_RANK];
} weft_attr_pad;
typedef struct weft_attr_slice {
    int64_t start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
} weft_attr_slice;
typedef struct weft_attr_axis {
    int64_t axis, extent;
    int64_t unique; /* no index comes twice */
} weft_attr_axis;   /* GATHER, SCATTER_ADD, UPDATE */
typedef struct weft_attr_scan {
    int64_t axis, product, reverse;
} weft_attr_scan; /* SCAN */
typedef struct weft_attr_sorted {
    int64_t count, descending;
} weft_attr_sorted; /* ORDER, along the last dimension */
typedef struct weft_attr_output {
    int64_t index;
} weft_attr_output; /* OUTPUT of a composite */

enum {
    WEFT_NODE_KEPT = 1,
    WEFT_NODE_VARIABLE = 2,
    WEFT_NODE_HELD = 4, /* kept by nothing but its holds */
    WEFT_NODE_MADE = 8  /* of variables, whether it still has its inputs or not */
};

struct weft_tensor {
    weft_context *ctx;
    const char *where, *path; /* the user's file and line; the layer: both interned */
    weft_scope *scope;        /* owner; NULL once kept */
    weft_tensor *next, *prev; /* in the scope's list, or the context's list of kept tensors */
    weft_tensor **in;
    void *attr; /* op's attributes: attr_bytes, no padding, part of the program's key */
    weft_storage *storage;
    weft_error *error; /* poisoned: why */
    const char *name;  /* of a variable */
    int64_t offset;    /* first element in storage */
    uint64_t epoch;    /* context epoch when recorded */
    uint64_t serial;   /* counts recorded nodes: the order of the program's units */
    uint64_t mark;     /* stamp of the last walk, and the number it gave */
    int number;
    uint32_t segment;  /* what was recorded together, in a way that matters: */
    uint8_t together;  /* weft_segment; 0 with segment 0 */
    uint32_t parts;    /* a product of logits: what reads it shall make it in so many parts; 0, 1: whole */
    bool again;        /* such a recomputation: never unified with the first one */
    weft_tensor *twin; /* its recomputation, of the gradient with stamp twin_mark */
    uint64_t twin_mark;
    uint32_t holds; /* programs and, once it is in no scope, nodes that need it, whoever else lets go of it */
    uint16_t n_in, attr_bytes;
    uint8_t op, dtype, leaf, flags;
    uint8_t stage; /* weft_stage: like the path no part of the program's key */
    int rank;
    int64_t shape[WEFT_MAX_RANK];
    int64_t numel;
    union {
        weft_attr_const number;  /* SCALAR leaf */
        weft_attr_random random; /* RANDOM leaf */
    } value;                     /* read anew at each run, not part of the key */
};

struct weft_scope {
    weft_context *ctx;
    weft_scope *parent;
    weft_tensor *nodes; /* doubly linked, newest first */
    weft_arena arena;   /* inputs and attributes of its nodes */
    size_t count;
    bool hinted;
};

/* Random nodes recorded in one layer since a step or micro-batch began. */
typedef struct weft_layer_draws {
    const char *path;
    uint64_t step, micro_batch, count;
} weft_layer_draws;

/* variable <- value, once `result` is computed: of a forward pass. */
typedef struct weft_assignment {
    weft_tensor *variable;       /* held */
    weft_tensor *value, *result; /* NULL until the pass has returned */
    weft_scope *scope;           /* with which it is forgotten */
    uint64_t id, mark;           /* stamp of the walk that found it due */
} weft_assignment;

/* A location that was given before, and its copy. */
typedef struct weft_location {
    const char *given, *copy;
} weft_location;
enum { WEFT_LOCATION_BITS = 6 };

/* State of recording that hangs on the context. */
typedef struct weft_graph {
    weft_tensor *free_nodes; /* recycled structs */
    weft_scope *free_scopes;
    weft_tensor *kept; /* list of kept tensors and variables */
    weft_arena nodes;  /* where structs come from */
    uint64_t serial;   /* nodes recorded */
    uint32_t segment;  /* segment being recorded, 0: none */
    uint32_t segments; /* given out */
    uint8_t together;  /* its kind */
    uint32_t wanted;   /* bits: of which inputs the gradient rule that runs shall find gradients */
    weft_location locations[1 << WEFT_LOCATION_BITS]; /* by the address that was given */
    weft_layer_draws *draws; /* one a layer that draws, in the order of the forward pass */
    size_t n_draws, draws_capacity, draws_at;
    weft_assignment *assignments; /* recorded and not yet made, oldest first */
    size_t n_assignments, assignments_capacity;
    uint64_t assignments_made; /* recorded so far */
    weft_tensor oom;           /* the preallocated poison: memory is gone */
    weft_error oom_error, freed_error;
} weft_graph;

weft_status weft__graph_open(weft_context *ctx);
void weft__graph_close(weft_context *ctx);

/* ---- recording ---- */

/* A new node of the innermost scope. attr (may be NULL) is copied. Inputs must not be poisoned. Never NULL.
 */
weft_tensor *weft__node(weft_context *ctx, const char *where, weft_op op, weft_dtype dtype, int rank,
                        const int64_t *shape, int n_in, weft_tensor *const *in, size_t attr_bytes,
                        const void *attr);

/* The first poisoned one of the inputs, or a new poison where one is NULL or of another context; else NULL.
 */
weft_tensor *weft__reject(const char *op, const char *where, weft_tensor *const *in, int count);

/* A tensor that carries an error; ctx may be NULL: then one that belongs to the thread. */
weft_tensor *weft__poison(weft_context *ctx, const char *where, weft_status status, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
/* The same where a public function was given NULL for an argument that it needs. */
weft_tensor *weft__poison_null(weft_context *ctx, const char *where, const char *function,
                               const char *argument);
/* Returns a poisoned tensor from a public function where an argument that it needs is NULL (base.h:
 * WEFT_NEED). */
#define WEFT_NEED_OR_POISON(ctx, where, argument)                                                            \
    do {                                                                                                     \
        if (!(argument)) return weft__poison_null(ctx, where, __func__, #argument);                          \
    } while (0)
static inline bool weft__poisoned(const weft_tensor *t) { return !t || t->error; }

/* Makes t carry storage: an evaluated node becomes a leaf and lets its inputs go. */
void weft__node_settle(weft_tensor *t, weft_storage *storage);

/* A program or a node needs t, also where its user lets go of it; and does so no longer. */
void weft__node_hold(weft_tensor *t);
void weft__node_let_go(weft_tensor *t);

/* What is recorded until the matching end belongs together; an inner pair belongs to the outer one. */
typedef enum weft_segment {
    WEFT_SEGMENT_NONE,
    WEFT_SEGMENT_BLOCK, /* recomputed in the backward pass instead of kept (Chen et al. 2016, "Training deep
                         * nets with sublinear memory cost"): only what it reads from outside is kept */
    WEFT_SEGMENT_CHEAP, /* the same, but what it reduces is kept, and so are values of the same few elements:
                         * the statistics of a norm */
    WEFT_SEGMENT_CHUNK  /* a part of much: not fused with another part, so that parts need not be there at
                         * once; what is recorded for its gradients belongs to it */
} weft_segment;
uint32_t weft__segment_begin(weft_context *ctx, weft_segment kind);
void weft__segment_end(weft_context *ctx, uint32_t outer);
static inline bool weft__segment_again(const weft_tensor *t) {
    return t->together == WEFT_SEGMENT_BLOCK || t->together == WEFT_SEGMENT_CHEAP;
}

/* ---- assignments of a forward pass: assignment.c ---- */
/* variable, of the same shape and dtype, becomes value when the pass being recorded is computed. */
weft_status weft__assignment_add(weft_tensor *variable, weft_tensor *value);
/* The pass that recorded those after number `since` returned result: poisoned, none is made. */
void weft__assignments_belong(weft_context *ctx, uint64_t since, weft_tensor *result);
/* What a variable is about to become; NULL: it stays. */
weft_tensor *weft__assignment_of(const weft_tensor *variable);
/* Those of variables in a storage were made, or something else was written there. */
void weft__assignments_forget(weft_context *ctx, const weft_storage *storage);
/* Nothing of a closing scope was asked for. */
void weft__assignments_close(const weft_scope *scope);

/* ---- storage ---- */
weft_storage *weft__storage_new(weft_context *ctx, size_t bytes);
void weft__storage_release(weft_context *ctx, weft_storage *storage);
/* Has it a place on the device? If not, gives it one, with its first values. */
weft_status weft__storage_place(weft_context *ctx, weft_storage *storage);
/* The same for what is about to be written as a whole: its values are anything. */
weft_status weft__storage_reserve(weft_context *ctx, weft_storage *storage);

/* ---- shapes: shape.c ---- */
/* NumPy's broadcast of two shapes; false when they do not fit. */
bool weft__broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank, int64_t *shape);
bool weft__shape_equal(const weft_tensor *a, const weft_tensor *b);
/* "f32 [2,3]" into buffer; returns buffer. */
#define WEFT_SHAPE_TEXT 200
const char *weft__shape_text(int rank, const int64_t *shape, char *buffer);
const char *weft__tensor_text(const weft_tensor *t, char *buffer);
/* Axis counted from the end when negative; false when out of range. */
bool weft__axis(int axis, int rank, int *out);
/* Name of an op, as in ops.def. */
const char *weft__op_name(int op);

#endif
