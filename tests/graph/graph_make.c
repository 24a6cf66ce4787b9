/* Makes random graphs. Each candidate node is recorded, and the shadow evaluates it at once. A candidate is
 * dropped if it leaves the range where its error is known, or makes the graph too big. */
#include <math.h>
#include <string.h>
#include "graph/random_graph.h"
#include "graph/shadow.h"
#include "ops/ops.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

typedef struct maker {
    weft_context *ctx;
    const graph_options *options;
    graph *g;
    uint64_t state;
    bool halves;
    weft_tensor *made[GRAPH_NODES];
    bool used[GRAPH_NODES];
    shadow *shadow;
} maker;

enum { FLOATS = 1, INTEGERS = 2, BOOLS = 4 };

static int below(maker *m, int n) { return graph_below(&m->state, n); }
static bool chance(maker *m, int percent) { return below(m, 100) < percent; }
static bool is_float(const graph_node *node) { return weft_dtype_is_float(node->dtype); }

static int class_of(weft_dtype dtype) {
    return weft_dtype_is_float(dtype) ? FLOATS : dtype == WEFT_BOOL ? BOOLS : INTEGERS;
}

/* ---- which candidates are accepted ---- */

static bool in_range(const graph_node *node, const shadow_value *v) {
    bool half = node->dtype == WEFT_F16 || node->dtype == WEFT_BF16;
    double most = half ? 60.0 : 3000.0, loose = half ? 0.2 : 1e-3;
    for (int64_t k = 0; k < v->n; k++) {
        if (!isfinite(v->e[k])) return false;
        if (v->f && (!(fabs(v->f[k]) <= most) || v->e[k] > loose * (1.0 + fabs(v->f[k])))) return false;
    }
    return true;
}

/* Does its gradient jump where an operand crosses some value? */
static bool has_kinks(const graph_node *node) {
    switch (node->kind) {
    case GRAPH_ROW1: return node->op == WEFT_OP_RELU || node->op == WEFT_OP_ABS;
    case GRAPH_ROW2: return node->op == WEFT_OP_MAXIMUM || node->op == WEFT_OP_MINIMUM;
    case GRAPH_CLAMP: return true;
    case GRAPH_SHAPED: return node->op >= 3 && node->op <= 5;
    case GRAPH_REDUCE: return node->op >= 1 && node->op <= 3;
    default: return false;
    }
}

static bool exact(maker *m, int i) {
    const shadow_value *v = shadow_of(m->shadow, m->made[i]);
    for (int64_t k = 0; v && k < v->n; k++)
        if (v->e[k] != 0) return false;
    return v != NULL;
}

/* Adds the candidate to the graph. Returns its number, or -1 if it is not accepted. */
static int offer(maker *m, graph_node *node) {
    graph *g = m->g;
    if (g->n == GRAPH_NODES) return -1;
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] < 0) return -1;
    for (int k = 0; m->options->backward && has_kinks(node) && k < node->n_in; k++)
        if (!exact(m, node->in[k])) return -1;
    node->salt = graph_draw(&m->state);
    g->node[g->n] = *node;
    weft_tensor *t = graph_record_node(m->ctx, g, g->n, m->made);
    if (weft_tensor_status(t) != WEFT_OK || weft_rank(t) > GRAPH_RANK || weft_numel(t) > m->options->most)
        return -1;
    graph_node *own = &g->node[g->n];
    own->dtype = weft_dtype_of(t);
    own->rank = weft_rank(t);
    for (int d = 0; d < own->rank; d++) own->shape[d] = weft_dim(t, d);
    const shadow_value *v = shadow_of(m->shadow, t);
    if (!v || !in_range(own, v)) return -1;
    for (int k = 0; k < own->n_in; k++) m->used[own->in[k]] = true;
    m->made[g->n] = t;
    g->halves |= own->dtype == WEFT_F16 || own->dtype == WEFT_BF16;
    return g->n++;
}

/* ---- leaves ---- */

static weft_dtype draw_dtype(maker *m, int classes) {
    static const weft_dtype ints[] = {WEFT_I32, WEFT_I32, WEFT_I32, WEFT_I64, WEFT_U8};
    if (classes & FLOATS) {
        if (m->halves && chance(m, 40)) return chance(m, 50) ? WEFT_F16 : WEFT_BF16;
        return chance(m, 15) && !m->options->no_f64 ? WEFT_F64 : WEFT_F32;
    }
    return classes & INTEGERS ? ints[below(m, COUNT(ints))] : WEFT_BOOL;
}

static int new_leaf(maker *m, graph_kind kind, weft_dtype dtype, int rank, const int64_t *shape,
                    int64_t bound) {
    graph_node node = {.kind = kind, .dtype = dtype, .rank = rank};
    if (rank > GRAPH_RANK) return -1;
    for (int d = 0; d < rank; d++) node.shape[d] = shape[d];
    node.p[0][0] = bound;
    return offer(m, &node);
}

static int64_t draw_extent(maker *m) {
    static const int64_t small[] = {1, 2, 3, 4, 5, 7, 8, 16, 17}, large[] = {1, 2, 3, 16, 31, 64, 129, 300};
    if (chance(m, 1)) return 0;
    return m->options->most > 2000 ? large[below(m, COUNT(large))] : small[below(m, COUNT(small))];
}

static int random_leaf(maker *m, int classes) {
    int64_t shape[GRAPH_RANK], numel = 1;
    int rank = below(m, 5);
    for (int d = 0; d < rank; d++) {
        shape[d] = draw_extent(m);
        if (numel * shape[d] > m->options->most) shape[d] = 1;
        numel *= shape[d];
    }
    weft_dtype dtype = draw_dtype(m, classes);
    graph_node node = {.kind = GRAPH_FULL, .dtype = dtype, .rank = rank, .value = (double)below(m, 3)};
    if (dtype == WEFT_BOOL) node.value = (double)below(m, 2);
    memcpy(node.shape, shape, sizeof shape);
    switch (below(m, 12)) {
    case 0: return offer(m, &node);
    case 1: node.kind = dtype == WEFT_BOOL ? GRAPH_FULL : GRAPH_IOTA; return offer(m, &node);
    case 2:
        node.kind = GRAPH_SCALAR;
        node.rank = 0;
        node.value = dtype == WEFT_BOOL ? 1 : 0.25 + (double)below(m, 4);
        if (!weft_dtype_is_float(dtype)) node.value = (double)below(m, 5);
        return offer(m, &node);
    case 3: node.kind = dtype == WEFT_I32 ? GRAPH_RANDOM : GRAPH_LEAF; return offer(m, &node);
    default: return new_leaf(m, GRAPH_LEAF, dtype, rank, shape, 0);
    }
}

/* Picks a node of one of the classes, preferring new nodes. If there is none, makes a leaf. */
static int pick(maker *m, int classes) {
    for (int k = 0; k < 24 && m->g->n; k++) {
        int n = m->g->n, window = n < 10 ? n : 10, i = chance(m, 70) ? n - 1 - below(m, window) : below(m, n);
        if (class_of(m->g->node[i].dtype) & classes) return i;
    }
    return random_leaf(m, classes & -classes);
}

static int pick_dtype(maker *m, weft_dtype dtype) {
    for (int k = 0; k < 12; k++) {
        int i = pick(m, class_of(dtype));
        if (i >= 0 && m->g->node[i].dtype == dtype) return i;
    }
    return -1;
}

static bool fits(const graph_node *a, const graph_node *b) {
    for (int d = 1; d <= a->rank && d <= b->rank; d++) {
        int64_t x = a->shape[a->rank - d], y = b->shape[b->rank - d];
        if (x != y && x != 1 && y != 1) return false;
    }
    return true;
}

/* Picks a node that broadcasts against a, or makes a leaf for it. */
static int partner(maker *m, int a, graph_kind kind) {
    const graph_node *node = &m->g->node[a];
    for (int k = 0; k < 6 && kind == GRAPH_LEAF; k++) {
        int i = pick_dtype(m, node->dtype);
        if (i >= 0 && fits(node, &m->g->node[i])) return i;
    }
    int64_t shape[GRAPH_RANK];
    int drop = node->rank ? below(m, node->rank + 1) : 0, rank = node->rank - drop;
    if (chance(m, 50)) drop = 0, rank = node->rank;
    for (int d = 0; d < rank; d++) shape[d] = chance(m, 20) ? 1 : node->shape[drop + d];
    return new_leaf(m, kind, node->dtype, rank, shape, 0);
}

/* ---- candidates ---- */

static int op_of(maker *m, const int *list, int n) { return list[below(m, n)]; }

static int draw_row1(maker *m, int a) {
    static const int floats[] = {WEFT_OP_NEG,  WEFT_OP_EXP,   WEFT_OP_SIN,  WEFT_OP_COS,   WEFT_OP_TANH,
                                 WEFT_OP_ERF,  WEFT_OP_ABS,   WEFT_OP_RELU, WEFT_OP_EXPM1, WEFT_OP_SIGMOID,
                                 WEFT_OP_EXP2, WEFT_OP_FLOOR, WEFT_OP_CEIL, WEFT_OP_ROUND, WEFT_OP_TRUNC,
                                 WEFT_OP_SIGN, WEFT_OP_ISNAN};
    static const int safe[] = {WEFT_OP_LOG,  WEFT_OP_LOG2,  WEFT_OP_LOG1P,
                               WEFT_OP_SQRT, WEFT_OP_RSQRT, WEFT_OP_RECIP};
    static const int ints[] = {WEFT_OP_NEG, WEFT_OP_ABS, WEFT_OP_SIGN, WEFT_OP_RELU, WEFT_OP_NOT};
    graph_node node = {.kind = GRAPH_ROW1, .n_in = 1, .in = {a}};
    if (a < 0) return -1;
    if (!is_float(&m->g->node[a])) {
        node.op = m->g->node[a].dtype == WEFT_BOOL ? WEFT_OP_NOT : op_of(m, ints, COUNT(ints));
    } else if (chance(m, 30)) {
        node.kind = GRAPH_SAFE;
        node.op = op_of(m, safe, COUNT(safe));
    } else {
        node.op = op_of(m, floats, COUNT(floats));
        if (m->options->backward && node.op == WEFT_OP_ISNAN) node.op = WEFT_OP_NEG;
    }
    return offer(m, &node);
}

static int draw_row2(maker *m, int a) {
    static const int floats[] = {WEFT_OP_ADD, WEFT_OP_SUB,     WEFT_OP_MUL,    WEFT_OP_MUL,
                                 WEFT_OP_DIV, WEFT_OP_MAXIMUM, WEFT_OP_MINIMUM};
    static const int ints[] = {WEFT_OP_ADD,     WEFT_OP_SUB, WEFT_OP_MUL, WEFT_OP_MAXIMUM,
                               WEFT_OP_MINIMUM, WEFT_OP_AND, WEFT_OP_OR,  WEFT_OP_XOR,
                               WEFT_OP_SHL,     WEFT_OP_SHR, WEFT_OP_DIV, WEFT_OP_MOD};
    static const int bools[] = {WEFT_OP_AND, WEFT_OP_OR, WEFT_OP_XOR, WEFT_OP_EQ, WEFT_OP_NE};
    graph_node node = {.kind = GRAPH_ROW2, .n_in = 2, .in = {a}};
    if (a < 0) return -1;
    int class = class_of(m->g->node[a].dtype);
    node.op = class == FLOATS  ? op_of(m, floats, COUNT(floats))
              : class == BOOLS ? op_of(m, bools, COUNT(bools))
                               : op_of(m, ints, COUNT(ints));
    if (class != BOOLS && chance(m, 12)) node.op = WEFT_OP_EQ + below(m, 6);
    bool divides = class == INTEGERS && (node.op == WEFT_OP_DIV || node.op == WEFT_OP_MOD);
    node.in[1] = partner(m, a, divides ? GRAPH_DIVISOR : GRAPH_LEAF);
    if (!divides && chance(m, 30)) {
        int first = node.in[0];
        node.in[0] = node.in[1];
        node.in[1] = first;
    }
    return offer(m, &node);
}

static int draw_where(maker *m, int a) {
    graph_node node = {.kind = GRAPH_WHERE, .op = WEFT_OP_WHERE, .n_in = 3, .in = {-1, a, -1}};
    if (a < 0) return -1;
    for (int k = 0; k < 8 && node.in[0] < 0; k++) {
        int i = pick(m, BOOLS);
        if (i >= 0 && fits(&m->g->node[i], &m->g->node[a])) node.in[0] = i;
    }
    if (node.in[0] < 0) {
        const graph_node *like = &m->g->node[a];
        node.in[0] = new_leaf(m, GRAPH_LEAF, WEFT_BOOL, like->rank, like->shape, 0);
    }
    node.in[2] = partner(m, a, GRAPH_LEAF);
    return offer(m, &node);
}

static int draw_number(maker *m, int a) {
    static const double values[] = {0.5, -1.0, 0.25, 2.0, 1.0, 1.5};
    graph_node node = {.kind = chance(m, 45)   ? GRAPH_MULC
                               : chance(m, 70) ? GRAPH_ADDC
                                               : GRAPH_CLAMP,
                       .n_in = 1,
                       .in = {a}};
    if (a < 0 || m->g->node[a].dtype == WEFT_BOOL) return -1;
    node.value = is_float(&m->g->node[a]) ? values[below(m, COUNT(values))] : (double)(1 + below(m, 5));
    if (node.kind == GRAPH_CLAMP && m->g->node[a].dtype == WEFT_U8) return -1;
    return offer(m, &node);
}

static int draw_shaped(maker *m, int a) {
    graph_node node = {.kind = GRAPH_SHAPED, .op = below(m, 8), .n_in = 1, .in = {a}};
    return offer(m, &node);
}

/* ---- movement ---- */

static int draw_reshape(maker *m, int a) {
    const graph_node *x = &m->g->node[a];
    graph_node node = {.kind = GRAPH_RESHAPE, .n_in = 1, .in = {a}};
    int64_t left = 1;
    for (int d = 0; d < x->rank; d++) left *= x->shape[d];
    if (left == 0) return -1;
    static const int64_t factors[] = {2, 3, 4, 5, 7, 8, 16};
    node.rank = 0;
    while (left > 1 && node.rank < 3) {
        int64_t f = chance(m, 20) ? 1 : factors[below(m, COUNT(factors))];
        node.shape[node.rank++] = left % f == 0 ? f : 1;
        left /= node.shape[node.rank - 1];
    }
    node.shape[node.rank++] = left;
    return offer(m, &node);
}

static int draw_permute(maker *m, int a) {
    graph_node node = {.kind = GRAPH_PERMUTE, .n_in = 1, .in = {a}};
    int rank = m->g->node[a].rank;
    for (int d = 0; d < rank; d++) node.p[0][d] = d;
    for (int d = rank - 1; d > 0; d--) {
        int other = below(m, d + 1);
        int64_t keep = node.p[0][d];
        node.p[0][d] = node.p[0][other];
        node.p[0][other] = keep;
    }
    return offer(m, &node);
}

static int draw_expand(maker *m, int a) {
    const graph_node *x = &m->g->node[a];
    graph_node node = {.kind = GRAPH_EXPAND, .n_in = 1, .in = {a}};
    int more = x->rank < 4 ? below(m, 2) : 0;
    node.rank = x->rank + more;
    for (int d = 0; d < node.rank; d++) {
        int64_t own = d < more ? 1 : x->shape[d - more];
        node.shape[d] = own == 1 ? draw_extent(m) : own;
    }
    return offer(m, &node);
}

static int draw_pad(maker *m, int a) {
    graph_node node = {.kind = GRAPH_PAD, .n_in = 1, .in = {a}};
    for (int d = 0; d < m->g->node[a].rank; d++) {
        node.p[0][d] = chance(m, 60) ? 0 : below(m, 4);
        node.p[1][d] = chance(m, 60) ? 0 : below(m, 4);
    }
    node.value = chance(m, 70) ? 0 : 1;
    return offer(m, &node);
}

static int draw_slice(maker *m, int a) {
    const graph_node *x = &m->g->node[a];
    graph_node node = {.kind = GRAPH_SLICE, .n_in = 1, .in = {a}};
    bool flip = chance(m, 30);
    node.op = flip; /* no stop: backwards to the first element */
    for (int d = 0; d < x->rank; d++) {
        int64_t n = x->shape[d], start = n > 1 ? below(m, (int)(n < 4 ? n : 4)) : 0;
        int64_t step = chance(m, 60) ? 1 : 1 + below(m, 3);
        bool back = flip && chance(m, 60);
        node.p[0][d] = back ? -1 : chance(m, 40) ? 0 : start;
        node.p[1][d] = chance(m, 50) ? n : start + 1 + below(m, (int)(n - start > 0 ? n - start : 1));
        node.p[2][d] = back ? -step : step;
    }
    return offer(m, &node);
}

static int draw_movement(maker *m, int a) {
    if (a < 0) return -1;
    switch (below(m, 6)) {
    case 0: return draw_reshape(m, a);
    case 1: return draw_permute(m, a);
    case 2: return draw_expand(m, a);
    case 3: return draw_pad(m, a);
    default: return draw_slice(m, a);
    }
}

/* ---- other candidates ---- */

static int draw_reduce(maker *m, int a) {
    static const int ints[] = {0, 0, 1, 2, 3, 6, 7}, bools[] = {1, 2};
    graph_node node = {.kind = GRAPH_REDUCE, .n_in = 1, .in = {a}};
    if (a < 0) return -1;
    const graph_node *x = &m->g->node[a];
    int class = class_of(x->dtype);
    node.op = class == FLOATS  ? below(m, 9)
              : class == BOOLS ? op_of(m, bools, 2)
                               : op_of(m, ints, COUNT(ints));
    if (class == FLOATS && chance(m, 30)) node.op = 0;
    node.p[0][0] = x->rank && chance(m, 75) ? below(m, x->rank) : -1;
    node.p[0][1] = chance(m, 40);
    return offer(m, &node);
}

static int draw_cast(maker *m, int a) {
    graph_node node = {.kind = GRAPH_CAST, .n_in = 1, .in = {a}};
    if (a < 0) return -1;
    bool whole = m->options->integers || chance(m, 20);
    node.dtype = draw_dtype(m, whole ? (chance(m, 80) ? INTEGERS : BOOLS) : FLOATS);
    return offer(m, &node);
}

static int draw_gather(maker *m, int a) {
    if (a < 0 || !m->g->node[a].rank) return -1;
    const graph_node *x = &m->g->node[a];
    int axis = below(m, x->rank), rank = 1 + below(m, 2);
    int64_t shape[2] = {1 + below(m, 6), 1 + below(m, 4)};
    if (x->shape[axis] == 0) return -1;
    int index = new_leaf(m, GRAPH_INDEX, chance(m, 70) ? WEFT_I32 : WEFT_I64, rank, shape, x->shape[axis]);
    graph_node node = {.kind = GRAPH_GATHER, .n_in = 2, .in = {a, index}};
    node.p[0][0] = axis;
    return offer(m, &node);
}

static int draw_scatter(maker *m, int a) {
    if (a < 0 || !m->g->node[a].rank || m->g->node[a].dtype == WEFT_BOOL || m->g->node[a].dtype == WEFT_U8)
        return -1;
    const graph_node *x = &m->g->node[a];
    int axis = below(m, x->rank);
    int64_t count = 1 + below(m, 9), shape[GRAPH_RANK];
    if (x->shape[axis] == 0) return -1;
    for (int d = 0; d < x->rank; d++) shape[d] = d == axis ? count : x->shape[d];
    int index = new_leaf(m, GRAPH_INDEX, chance(m, 70) ? WEFT_I32 : WEFT_I64, 1, &count, x->shape[axis]);
    graph_node node = {.kind = GRAPH_SCATTER, .n_in = 3, .in = {a, index, -1}};
    node.in[2] = new_leaf(m, GRAPH_LEAF, x->dtype, x->rank, shape, 0);
    node.p[0][0] = axis;
    return offer(m, &node);
}

static int draw_update(maker *m, int a) {
    if (a < 0 || !m->g->node[a].rank) return -1;
    const graph_node *x = &m->g->node[a];
    int axis = below(m, x->rank);
    int64_t shape[GRAPH_RANK], room;
    if (x->shape[axis] == 0) return -1;
    for (int d = 0; d < x->rank; d++) shape[d] = x->shape[d];
    shape[axis] = 1 + below(m, (int)x->shape[axis]);
    room = x->shape[axis] - shape[axis] + 1;
    graph_node node = {.kind = GRAPH_UPDATE, .n_in = 3, .in = {a, -1, -1}};
    node.in[1] = new_leaf(m, GRAPH_LEAF, x->dtype, x->rank, shape, 0);
    node.in[2] = new_leaf(m, GRAPH_INDEX, WEFT_I32, 0, NULL, room);
    node.p[0][0] = axis;
    return offer(m, &node);
}

static int draw_matmul(maker *m, int a) {
    if (a < 0 || !m->g->node[a].rank || m->g->node[a].dtype == WEFT_BOOL || m->g->node[a].dtype == WEFT_U8)
        return -1;
    const graph_node *x = &m->g->node[a];
    graph_node node = {.kind = GRAPH_MATMUL, .n_in = 2, .in = {a, pick_dtype(m, x->dtype)}};
    int known = offer(m, &node); /* if an existing node happens to fit */
    if (known >= 0) return known;
    int64_t shape[GRAPH_RANK], n = draw_extent(m);
    int rank = x->rank > 2 && chance(m, 40) ? x->rank : 2;
    for (int d = 0; d + 2 < rank; d++) shape[d] = chance(m, 30) ? 1 : x->shape[d];
    shape[rank - 2] = x->shape[x->rank - 1];
    shape[rank - 1] = n;
    node.in[1] = new_leaf(m, GRAPH_LEAF, x->dtype, rank, shape, 0);
    return offer(m, &node);
}

static int draw_join(maker *m, int a) {
    if (a < 0) return -1;
    graph_node node = {.kind = chance(m, 70) && m->g->node[a].rank ? GRAPH_CONCAT : GRAPH_STACK,
                       .n_in = 2 + below(m, 2),
                       .in = {a}};
    int rank = m->g->node[a].rank;
    int64_t shape[GRAPH_RANK];
    node.p[0][0] = node.kind == GRAPH_CONCAT ? below(m, rank) : below(m, rank + 1);
    for (int k = 1; k < node.n_in; k++) {
        memcpy(shape, m->g->node[a].shape, sizeof shape);
        if (node.kind == GRAPH_CONCAT) shape[node.p[0][0]] = 1 + below(m, 5);
        node.in[k] = chance(m, 30) ? a : new_leaf(m, GRAPH_LEAF, m->g->node[a].dtype, rank, shape, 0);
    }
    return offer(m, &node);
}

static int draw_softmax(maker *m, int a) {
    graph_node node = {.kind = GRAPH_SOFTMAX, .op = below(m, 2), .n_in = 1, .in = {a}};
    if (a < 0 || !m->g->node[a].rank) return -1;
    node.p[0][0] = chance(m, 70) ? m->g->node[a].rank - 1 : below(m, m->g->node[a].rank);
    return offer(m, &node);
}

static int draw_norm(maker *m, int a) {
    if (a < 0 || !m->g->node[a].rank) return -1;
    const graph_node *x = &m->g->node[a];
    const int64_t *last = &x->shape[x->rank - 1];
    graph_node node = {.kind = GRAPH_NORM, .n_in = 2 + below(m, 2), .in = {a}};
    node.in[1] = new_leaf(m, GRAPH_LEAF, x->dtype, 1, last, 0);
    if (node.n_in == 3) node.in[2] = new_leaf(m, GRAPH_LEAF, x->dtype, 1, last, 0);
    return offer(m, &node);
}

/* The newest tensor that has as many rows as the first one. */
static int pick_tall(maker *m) {
    for (int i = m->g->n - 1; i > 0; i--)
        if (m->g->node[i].rank == m->g->node[0].rank && m->g->node[i].dtype == m->g->node[0].dtype &&
            memcmp(m->g->node[i].shape, m->g->node[0].shape, sizeof m->g->node[i].shape) == 0 &&
            chance(m, 60))
            return i;
    return 0;
}

/* Adds reductions along rows, whose results are used along the rows again, and reductions along columns. */
static int draw_tall(maker *m) {
    const int a = pick_tall(m), rank = m->g->node[a].rank;
    graph_node node = {.kind = GRAPH_REDUCE, .n_in = 1, .in = {a}};
    node.p[0][0] = chance(m, 50) ? rank - 1 : 0;
    node.p[0][1] = 1;
    if (chance(m, 20) && !m->options->integers) return chance(m, 50) ? draw_norm(m, a) : draw_softmax(m, a);
    const int made = offer(m, &node);
    graph_node both = {.kind = GRAPH_ROW2, .op = WEFT_OP_SUB, .n_in = 2, .in = {pick_tall(m), made}};
    return chance(m, 70) ? offer(m, &both) : made;
}

static int tall_leaf(maker *m) {
    static const int64_t rows[] = {256, 288, 320, 512, 269}; /* the last number is prime */
    int64_t shape[3] = {rows[below(m, 5)], 1 + below(m, 7), 0};
    const bool cube = shape[0] % 16 == 0 && chance(m, 30);
    if (cube) shape[2] = shape[1], shape[1] = shape[0] / 16, shape[0] = 16;
    return new_leaf(m, GRAPH_LEAF, m->options->integers ? WEFT_I32 : draw_dtype(m, FLOATS), cube ? 3 : 2,
                    shape, 0);
}

static int draw_loss(maker *m, int a) {
    if (a < 0 || m->g->node[a].rank < 1) return -1;
    const graph_node *x = &m->g->node[a];
    graph_node node = {.kind = GRAPH_CROSS_ENTROPY, .n_in = 2, .in = {a}};
    node.in[1] = new_leaf(m, GRAPH_INDEX, WEFT_I32, x->rank - 1, x->shape, x->shape[x->rank - 1]);
    return offer(m, &node);
}

static int draw_attention(maker *m, int a) {
    int64_t q[4] = {1 + below(m, 2), 1 + below(m, 2), 1 + below(m, 5), 1 + below(m, 8)}, k[4];
    weft_dtype dtype = draw_dtype(m, FLOATS);
    graph_node node = {.kind = GRAPH_ATTENTION, .op = below(m, 2), .n_in = 3, .in = {a, -1, -1}};
    if (a >= 0 && m->g->node[a].rank == 4) {
        dtype = m->g->node[a].dtype;
        memcpy(q, m->g->node[a].shape, sizeof q);
    } else {
        node.in[0] = new_leaf(m, GRAPH_LEAF, dtype, 4, q, 0);
    }
    memcpy(k, q, sizeof k);
    k[2] += below(m, 3);
    node.in[1] = new_leaf(m, GRAPH_LEAF, dtype, 4, k, 0);
    node.in[2] = new_leaf(m, GRAPH_LEAF, dtype, 4, k, 0);
    return offer(m, &node);
}

static int draw_node(maker *m) {
    if (m->options->tall && chance(m, 40)) return draw_tall(m);
    int classes = m->options->integers ? INTEGERS : chance(m, 88) ? FLOATS : INTEGERS;
    if (m->options->integers && chance(m, 15)) classes = BOOLS;
    int a = pick(m, classes), what = below(m, 100);
    if (what < 20) return draw_row1(m, a);
    if (what < 42) return draw_row2(m, a);
    if (what < 47) return draw_where(m, a);
    if (what < 52) return draw_number(m, a);
    if (what < 68) return draw_movement(m, a);
    if (what < 78) return draw_reduce(m, a);
    if (what < 82) return draw_cast(m, a);
    if (what < 85) return draw_gather(m, a);
    if (what < 87) return draw_scatter(m, a);
    if (what < 88) return draw_update(m, a);
    if (what < 91) return draw_matmul(m, a);
    if (what < 93) return draw_join(m, a);
    if (m->options->integers) return draw_row2(m, a);
    a = pick(m, FLOATS);
    if (what < 95) return draw_softmax(m, a);
    if (what < 97) return draw_norm(m, a);
    if (what < 98) return draw_loss(m, a);
    if (what < 99) return draw_attention(m, a);
    return draw_shaped(m, a);
}

/* ---- whole graphs ---- */

static bool computes(const graph_node *node) { return node->kind >= GRAPH_ROW1; }

/* Adds a loss: a weighted sum of all nodes that nothing else uses. Its gradient reaches every float leaf that
 * affects a result. */
static void add_loss(maker *m) {
    graph *g = m->g;
    int total = -1, n = g->n;
    for (int i = 0; i < n; i++) {
        if (m->used[i] || !is_float(&g->node[i]) || !computes(&g->node[i])) continue;
        graph_node scaled = {.kind = GRAPH_ROW2, .op = WEFT_OP_MUL, .n_in = 2, .in = {i, -1}};
        scaled.in[1] = new_leaf(m, GRAPH_LEAF, g->node[i].dtype, g->node[i].rank, g->node[i].shape, 0);
        graph_node wide = {.kind = GRAPH_CAST, .n_in = 1, .in = {offer(m, &scaled)}, .dtype = WEFT_F32};
        graph_node sum = {.kind = GRAPH_REDUCE, .op = 0, .n_in = 1, .in = {offer(m, &wide)}};
        sum.p[0][0] = -1;
        int one = offer(m, &sum);
        graph_node both = {.kind = GRAPH_ROW2, .op = WEFT_OP_ADD, .n_in = 2, .in = {total, one}};
        int next = total < 0 ? one : offer(m, &both);
        if (next >= 0) total = next;
    }
    g->loss = total;
}

static void choose_outputs(maker *m) {
    graph *g = m->g;
    for (int i = 0; i < g->n && g->n_outputs < GRAPH_OUTPUTS; i++) {
        const graph_node *node = &g->node[i];
        bool any = computes(node) || node->kind == GRAPH_IOTA || node->kind == GRAPH_RANDOM ||
                   node->kind == GRAPH_FULL;
        if (any && (!m->used[i] || i == g->loss || (computes(node) && chance(m, 6))))
            g->output[g->n_outputs++] = i;
    }
}

bool graph_make(weft_context *record, uint64_t seed, const graph_options *options, graph *g) {
    maker m = {.ctx = record, .options = options, .g = g, .state = seed, .shadow = shadow_new()};
    memset(g, 0, sizeof *g);
    g->seed = seed;
    g->loss = -1;
    m.halves = !options->integers && chance(&m, 20);
    weft_scope *scope = weft_scope_open(record);
    weft_seed(record, 77, 3);
    if (options->tall)
        tall_leaf(&m);
    else
        random_leaf(&m, options->integers ? INTEGERS : FLOATS);
    for (int tries = 0; g->n < options->size && tries < 20 * options->size; tries++) draw_node(&m);
    if (options->backward) add_loss(&m);
    choose_outputs(&m);
    graph_prune(g);
    shadow_free(m.shadow);
    weft_scope_close(scope);
    return g->n_outputs > 0;
}
