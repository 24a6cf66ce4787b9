/* Random graphs as plain data. So one graph can be recorded on several contexts, printed and shrunk.
 * graph_make.c makes them at random, graph_record.c records them. */
#ifndef WEFT_TESTS_GRAPH_RANDOM_GRAPH_H
#define WEFT_TESTS_GRAPH_RANDOM_GRAPH_H

#include <stdio.h>
#include <weft/ops.h>

enum { GRAPH_RANK = 5, GRAPH_NODES = 96, GRAPH_INPUTS = 4, GRAPH_OUTPUTS = 40 };

/* clang-format off */
#define GRAPH_KINDS(X) \
    X(LEAF) X(INDEX) X(DIVISOR) X(SCALAR) X(FULL) X(IOTA) X(RANDOM) X(ROW1) X(SAFE) X(ROW2) X(WHERE) \
    X(ADDC) X(MULC) X(CLAMP) X(SHAPED) X(RESHAPE) X(PERMUTE) X(EXPAND) X(PAD) X(SLICE) X(REDUCE) X(CAST) \
    X(GATHER) X(SCATTER) X(UPDATE) X(MATMUL) X(CONCAT) X(STACK) X(SOFTMAX) X(NORM) X(CROSS_ENTROPY) \
    X(ATTENTION)
/* clang-format on */

typedef enum graph_kind {
#define GRAPH_ENUM_(name) GRAPH_##name,
    GRAPH_KINDS(GRAPH_ENUM_)
#undef GRAPH_ENUM_
} graph_kind;

typedef struct graph_node {
    graph_kind kind;
    int op; /* index of the row, reduction or function within its kind */
    int n_in, in[GRAPH_INPUTS];
    weft_dtype dtype; /* of the result, as are rank and shape */
    int rank;
    int64_t shape[GRAPH_RANK];
    int64_t p[3][GRAPH_RANK]; /* parameters: permutation, paddings, start/stop/step, axis, bound */
    double value;
    uint64_t salt; /* seed of a leaf's data */
} graph_node;

typedef struct graph {
    uint64_t seed;
    int n;
    graph_node node[GRAPH_NODES];
    int n_outputs, output[GRAPH_OUTPUTS];
    int loss;    /* node whose gradients with respect to all float leaves are outputs too; -1: none */
    bool halves; /* some values are f16 or bf16 */
} graph;

/* The tensors of a recorded graph. */
typedef struct graph_tensors {
    weft_tensor *node[GRAPH_NODES];
    weft_tensor *output[GRAPH_OUTPUTS + GRAPH_NODES];
    int n_outputs;
} graph_tensors;

typedef struct graph_options {
    bool integers; /* only integers and bools: all devices must agree exactly */
    bool no_f64;   /* the device under test has no f64 */
    bool backward;
    bool tall;    /* the graph uses a tensor of many rows, and reduces its rows and its columns */
    int size;     /* number of nodes */
    int64_t most; /* largest number of elements of a tensor */
} graph_options;

/* Makes a random graph. Evaluates it meanwhile, in a context that only records. This keeps all values in
 * range, and keeps the operands of discontinuous ops away from their steps, so that rounding cannot cross
 * one. */
bool graph_make(weft_context *record, uint64_t seed, const graph_options *options, graph *g);

/* Records node i, whose inputs are in made[]. */
weft_tensor *graph_record_node(weft_context *ctx, const graph *g, int i, weft_tensor *const *made);
/* Records all nodes, with gradients. Returns false if something was refused. */
bool graph_record(weft_context *ctx, const graph *g, graph_tensors *out);
void graph_print(const graph *g, FILE *to);

/* Turns node i into a leaf. */
void graph_cut(graph *g, int i);
/* Removes the nodes that no output needs. */
void graph_prune(graph *g);

/* The next number of a random stream. */
static inline uint64_t graph_draw(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
static inline int graph_below(uint64_t *state, int n) { return (int)(graph_draw(state) % (uint64_t)n); }

#endif
