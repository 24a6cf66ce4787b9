/* Records a random graph, prints it, and does the two steps of shrinking. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ops/ops.h"
#include "graph/random_graph.h"

static const char *const kind_names[] = {
#define GRAPH_NAME_(name) #name,
    GRAPH_KINDS(GRAPH_NAME_)
#undef GRAPH_NAME_
};

/* ---- leaves ---- */

/* Fills a leaf. Floats are eighths in -2..2, so that much of the arithmetic on them is exact. Integers are
 * small, except for a few of any size. */
static void fill(const graph_node *node, weft_dtype dtype, int64_t n, char *data) {
    uint64_t state = node->salt;
    size_t size = weft_dtype_size(dtype);
    for (int64_t k = 0; k < n; k++) {
        uint64_t bits = graph_draw(&state);
        double f = (double)((int64_t)(bits % 33) - 16) / 8.0;
        float f32 = (float)f;
        uint16_t half = dtype == WEFT_F16 ? weft_f32_to_f16(f32) : weft_f32_to_bf16(f32);
        int64_t i = bits >> 60 == 0 ? (int64_t)(bits << 4) : (int64_t)(bits % 19) - 9;
        if (node->kind == GRAPH_INDEX)
            i = (int64_t)(bits % (uint64_t)(node->p[0][0] > 0 ? node->p[0][0] : 1));
        if (node->kind == GRAPH_DIVISOR) i = (int64_t)(bits % 9) + 1;
        if (node->kind == GRAPH_DIVISOR && dtype != WEFT_U8 && (bits >> 40 & 1)) i = -i;
        if (dtype == WEFT_BOOL) i = (int64_t)(bits & 1);
        const void *from = dtype == WEFT_F32   ? (const void *)&f32
                           : dtype == WEFT_F64 ? (const void *)&f
                                               : (const void *)&i;
        if (dtype == WEFT_F16 || dtype == WEFT_BF16) from = &half;
        memcpy(data + (size_t)k * size, from, size);
    }
}

static weft_tensor *leaf(weft_context *ctx, const graph_node *node) {
    int64_t n = 1;
    for (int d = 0; d < node->rank; d++) n *= node->shape[d];
    char *data = calloc((size_t)n + 1, 8);
    fill(node, node->dtype, n, data);
    weft_tensor *t = weft_from(ctx, node->dtype, node->rank, node->shape, data);
    free(data);
    return t;
}

/* ---- functions of each kind ---- */

static weft_tensor *shaped(const graph_node *node, weft_tensor *x) {
    switch (node->op) {
    case 0: return weft_gelu(x);
    case 1: return weft_gelu_tanh(x);
    case 2: return weft_silu(x);
    case 3: return weft_softplus(x);
    case 4: return weft_elu(x, 0.75);
    case 5: return weft_leaky_relu(x, 0.125);
    case 6: return weft_square(x);
    default: return weft_detach(x);
    }
}

static weft_tensor *reduced(const graph_node *node, weft_tensor *x) {
    int axis = node->p[0][0] < 0 ? WEFT_ALL_AXES : (int)node->p[0][0];
    bool keep = node->p[0][1] != 0;
    switch (node->op) {
    case 0: return weft_sum(x, axis, keep);
    case 1: return weft_max(x, axis, keep);
    case 2: return weft_min(x, axis, keep);
    case 3: return weft_prod(x, axis, keep);
    case 4: return weft_mean(x, axis, keep);
    case 5: return weft_var(x, axis, 0, keep);
    case 6: return weft_argmax(x, axis, keep);
    case 7: return weft_argmin(x, axis, keep);
    default: return weft_logsumexp(x, axis, keep);
    }
}

static weft_tensor *softmax(const graph_node *node, weft_tensor *x) {
    return node->op ? weft_log_softmax(x, (int)node->p[0][0]) : weft_softmax(x, (int)node->p[0][0]);
}

static weft_tensor *join(const graph_node *node, weft_tensor *const *in) {
    return node->kind == GRAPH_CONCAT ? weft_concat(in, node->n_in, (int)node->p[0][0])
                                      : weft_stack(in, node->n_in, (int)node->p[0][0]);
}

/* Applies the row to x * x + 1/2, where it is smooth. */
static weft_tensor *safe(const graph_node *node, weft_tensor *x) {
    weft_tensor *up = weft_add_scalar(weft_square(x), 0.5);
    return weft__elementwise(WEFT_HERE, (weft_op)node->op, 1, &up);
}

static weft_tensor *row(const graph_node *node, weft_tensor *const *in) {
    if (node->op == WEFT_OP_DIV && weft_dtype_is_float(node->dtype)) {
        weft_tensor *parts[2] = {in[0], weft_add_scalar(weft_square(in[1]), 1.0)};
        return weft__elementwise(WEFT_HERE, WEFT_OP_DIV, 2, parts);
    }
    return weft__elementwise(WEFT_HERE, (weft_op)node->op, node->n_in, in);
}

static weft_tensor *moved(const graph_node *node, weft_tensor *x) {
    int order[GRAPH_RANK];
    for (int d = 0; d < GRAPH_RANK; d++) order[d] = (int)node->p[0][d];
    switch (node->kind) {
    case GRAPH_RESHAPE: return weft_reshape(x, node->rank, node->shape);
    case GRAPH_PERMUTE: return weft_permute(x, order);
    case GRAPH_EXPAND: return weft_expand(x, node->rank, node->shape);
    case GRAPH_PAD: return weft_pad(x, node->p[0], node->p[1], node->value);
    default: return weft_slice(x, node->p[0], node->op ? NULL : node->p[1], node->p[2]);
    }
}

weft_tensor *graph_record_node(weft_context *ctx, const graph *g, int i, weft_tensor *const *made) {
    const graph_node *node = &g->node[i];
    weft_tensor *in[GRAPH_INPUTS] = {NULL};
    for (int k = 0; k < node->n_in; k++) in[k] = made[node->in[k]];
    switch (node->kind) {
    case GRAPH_LEAF:
    case GRAPH_INDEX:
    case GRAPH_DIVISOR: return leaf(ctx, node);
    case GRAPH_SCALAR: return weft_scalar_of(ctx, node->dtype, node->value);
    case GRAPH_FULL: return weft_full(ctx, node->dtype, node->rank, node->shape, node->value);
    case GRAPH_IOTA: return weft_iota(ctx, node->dtype, node->rank, node->shape);
    case GRAPH_RANDOM: return weft_random_bits(ctx, node->rank, node->shape);
    case GRAPH_SAFE: return safe(node, in[0]);
    case GRAPH_ROW1:
    case GRAPH_ROW2:
    case GRAPH_WHERE: return row(node, in);
    case GRAPH_ADDC: return weft_add_scalar(in[0], node->value);
    case GRAPH_MULC: return weft_mul_scalar(in[0], node->value);
    case GRAPH_CLAMP: return weft_clamp(in[0], -1.0, node->value);
    case GRAPH_SHAPED: return shaped(node, in[0]);
    case GRAPH_REDUCE: return reduced(node, in[0]);
    case GRAPH_CAST: return weft_cast(in[0], node->dtype);
    case GRAPH_GATHER: return weft_gather(in[0], in[1], (int)node->p[0][0]);
    case GRAPH_SCATTER: return weft_scatter_add(in[0], in[1], in[2], (int)node->p[0][0]);
    case GRAPH_UPDATE: return weft_update(in[0], in[1], in[2], (int)node->p[0][0]);
    case GRAPH_MATMUL: return weft_matmul(in[0], in[1]);
    case GRAPH_CONCAT:
    case GRAPH_STACK: return join(node, in);
    case GRAPH_SOFTMAX: return softmax(node, in[0]);
    case GRAPH_NORM:
        return node->n_in == 3 ? weft_layer_norm(in[0], in[1], in[2], 1e-2)
                               : weft_rms_norm(in[0], in[1], 1e-2);
    case GRAPH_CROSS_ENTROPY: return weft_cross_entropy(in[0], in[1], NULL);
    case GRAPH_ATTENTION:
        return weft_attention(in[0], in[1], in[2], &(weft_attention_options){.causal = node->op != 0});
    default: return moved(node, in[0]);
    }
}

bool graph_record(weft_context *ctx, const graph *g, graph_tensors *out) {
    memset(out, 0, sizeof *out);
    weft_seed(ctx, 77, 3); /* random nodes then give the same numbers at each recording */
    for (int i = 0; i < g->n; i++) {
        out->node[i] = graph_record_node(ctx, g, i, out->node);
        if (weft_tensor_status(out->node[i]) != WEFT_OK) return false;
    }
    for (int k = 0; k < g->n_outputs; k++) out->output[out->n_outputs++] = out->node[g->output[k]];
    if (g->loss < 0) return true;
    weft_tensor *wrt[GRAPH_NODES], *grads[GRAPH_NODES];
    size_t n = 0;
    for (int i = 0; i < g->n; i++)
        if (g->node[i].kind == GRAPH_LEAF && weft_dtype_is_float(g->node[i].dtype)) wrt[n++] = out->node[i];
    if (weft_gradient(out->node[g->loss], wrt, n, grads) != WEFT_OK) return false;
    for (size_t k = 0; k < n; k++) out->output[out->n_outputs++] = grads[k];
    return true;
}

/* ---- printing ---- */

static void print_numbers(FILE *to, const int64_t *v, int n) {
    fputc('[', to);
    for (int d = 0; d < n; d++) fprintf(to, "%s%lld", d ? "," : "", (long long)v[d]);
    fputc(']', to);
}

void graph_print(const graph *g, FILE *to) {
    fprintf(to, "graph of seed %llu, %d nodes:\n", (unsigned long long)g->seed, g->n);
    for (int i = 0; i < g->n; i++) {
        const graph_node *node = &g->node[i];
        bool row_op = node->kind == GRAPH_ROW1 || node->kind == GRAPH_ROW2 || node->kind == GRAPH_SAFE;
        fprintf(to, "  %%%d = %s", i, kind_names[node->kind]);
        if (row_op)
            fprintf(to, " %s", weft__op_name(node->op));
        else if (node->op)
            fprintf(to, " #%d", node->op);
        for (int k = 0; k < node->n_in; k++) fprintf(to, " %%%d", node->in[k]);
        fprintf(to, " -> %s ", weft_dtype_name(node->dtype));
        print_numbers(to, node->shape, node->rank);
        for (int k = 0; k < 3; k++) {
            bool any = false;
            for (int d = 0; d < GRAPH_RANK; d++) any |= node->p[k][d] != 0;
            if (any) fprintf(to, " p%d=", k), print_numbers(to, node->p[k], GRAPH_RANK);
        }
        if (node->value != 0) fprintf(to, " value=%g", node->value);
        fputc('\n', to);
    }
    fprintf(to, "  outputs:");
    for (int k = 0; k < g->n_outputs; k++) fprintf(to, " %%%d", g->output[k]);
    if (g->loss >= 0) fprintf(to, "; gradients of %%%d", g->loss);
    fputc('\n', to);
}

/* ---- shrinking ---- */

void graph_cut(graph *g, int i) {
    graph_node *node = &g->node[i];
    node->kind = GRAPH_LEAF;
    node->op = node->n_in = 0;
    node->value = 0;
    memset(node->p, 0, sizeof node->p);
    node->salt = g->seed * 1000 + (uint64_t)i;
}

void graph_prune(graph *g) {
    bool used[GRAPH_NODES] = {false};
    int number[GRAPH_NODES], n = 0;
    for (int k = 0; k < g->n_outputs; k++) used[g->output[k]] = true;
    if (g->loss >= 0) used[g->loss] = true;
    for (int i = g->n - 1; i >= 0; i--)
        for (int k = 0; used[i] && k < g->node[i].n_in; k++) used[g->node[i].in[k]] = true;
    for (int i = 0; i < g->n; i++) {
        if (!used[i]) continue;
        number[i] = n;
        g->node[n] = g->node[i];
        for (int k = 0; k < g->node[n].n_in; k++) g->node[n].in[k] = number[g->node[n].in[k]];
        n++;
    }
    for (int k = 0; k < g->n_outputs; k++) g->output[k] = number[g->output[k]];
    if (g->loss >= 0) g->loss = number[g->loss];
    g->n = n;
}
