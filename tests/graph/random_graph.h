/* Random graphs as plain data, so that one can be recorded on several contexts, printed and shrunk.
 * graph_make.c draws them, graph_record.c replays them. */
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
    int op; /* which row, reduction or function of its kind */
    int n_in, in[GRAPH_INPUTS];
    weft_dtype dtype; /* of the result, as are rank and shape */
    int rank;
    int64_t shape[GRAPH_RANK];
    int64_t p[3][GRAPH_RANK]; /* parameters: order, paddings, start/stop/step, axis, bound */
    double value;
    uint64_t salt; /* of a leaf's data */
} graph_node;

typedef struct graph {
    uint64_t seed;
    int n;
    graph_node node[GRAPH_NODES];
    int n_outputs, output[GRAPH_OUTPUTS];
    int loss;    /* whose gradient by every float leaf is an output too; -1: none */
    bool halves; /* some value is f16 or bf16 */
} graph;

/* What recording a graph gives. */
typedef struct graph_tensors {
    weft_tensor *node[GRAPH_NODES];
    weft_tensor *output[GRAPH_OUTPUTS + GRAPH_NODES];
    int n_outputs;
} graph_tensors;

typedef struct graph_options {
    bool integers; /* only integers and bools: every device agrees exactly */
    bool backward;
    bool tall;    /* around a tensor of many rows, whose columns are reduced as well as its rows */
    int size;     /* nodes */
    int64_t most; /* elements of a tensor */
} graph_options;

/* Draws a graph, evaluating it along the way (in a context that only records) so that values stay in range
 * and no discontinuous op gets a value that rounding could move over its step. */
bool graph_make(weft_context *record, uint64_t seed, const graph_options *options, graph *g);

/* Records node i, whose inputs are in made[]. */
weft_tensor *graph_record_node(weft_context *ctx, const graph *g, int i, weft_tensor *const *made);
/* Records all, with gradients; false when something was refused. */
bool graph_record(weft_context *ctx, const graph *g, graph_tensors *out);
void graph_print(const graph *g, FILE *to);

/* Makes node i a leaf. */
void graph_cut(graph *g, int i);
/* Drops what no output needs. */
void graph_prune(graph *g);

/* A stream of random numbers. */
static inline uint64_t graph_draw(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
static inline int graph_below(uint64_t *state, int n) { return (int)(graph_draw(state) % (uint64_t)n); }

#endif
