/* Attention (Vaswani et al. 2017, eq. 1) and its gradients (Dao et al. 2022, algorithm 4) as operations on
 * whole matrices of scores. cuDNN recognises these and computes them block by block. This file also knows
 * which cases cuDNN can compute.
 * Must not know: plans, memory. Read next: dnn_graph.c; dnn_heavy.c, which calls it. */
#include "device/cuda/dnn/dnn_attention.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ROW_ALIGNMENT = 8 /* elements: 16 bytes */ };

/* ---- what cuDNN can compute ---- */

/* Returns whether rows begin at multiples of 16 bytes. Strides of dimensions of extent 1 do not matter. */
static bool dnn_attention_aligned(const weft_heavy_attention *at, const int64_t strides[3], int64_t t) {
    const int64_t extents[3] = {at->batch, at->heads, t};
    for (int i = 0; i < 3; i++)
        if (extents[i] > 1 && (strides[i] <= 0 || strides[i] % ROW_ALIGNMENT != 0)) return false;
    return true;
}

static bool all_aligned(const weft_heavy_attention *at) {
    bool yes = dnn_attention_aligned(at, at->q, at->t_q) && dnn_attention_aligned(at, at->k, at->t_k) &&
               dnn_attention_aligned(at, at->v, at->t_k) && dnn_attention_aligned(at, at->out, at->t_q);
    if (at->backward)
        yes = yes && dnn_attention_aligned(at, at->dout, at->t_q) &&
              dnn_attention_aligned(at, at->dq, at->t_q) && dnn_attention_aligned(at, at->dk, at->t_k) &&
              dnn_attention_aligned(at, at->dv, at->t_k);
    return yes;
}

/* Returns why cuDNN cannot compute this attention, or NULL if it may try. */
static const char *dnn_attention_refuse(const weft_heavy_attention *at, int capability, int version) {
    if (at->dtype != WEFT_F16 && at->dtype != WEFT_BF16) return "it computes in f16 and bf16 only";
    if (capability < 80) return "its attention needs compute capability 8.0";
    if (at->cached) return "the keys are in a cache";
    if (at->masked) return "there is a mask";
    if (weft__query_group(at) > 1) return "query heads share KV heads";
    if (at->dropout > 0) return "Weft's own random numbers decide what dropout drops";
    if (at->d % 8 != 0) return "the channels of a head are not a multiple of 8";
    if (at->d > (capability / 10 == 9 ? 256 : 128)) return "a head has too many channels";
    if (at->t_q < 1 || at->t_k < 1 || at->batch < 1 || at->heads < 1 || at->d < 1) return "it is empty";
    if (at->causal && at->t_q != at->t_k) return "a causal mask needs as many keys as queries";
    if (version < 91501 && at->t_k % 128 != 0)
        return "before cuDNN 9.15.1 the number of keys must be a multiple of 128";
    if (!all_aligned(at)) return "rows do not begin at multiples of 16 bytes";
    return NULL;
}

/* Returns the largest divisor of n that is at most `most`, at least 1. */
static int64_t divisor(int64_t n, int64_t most) {
    int64_t best = most < n ? most : n;
    while (best > 1 && n % best != 0) best--;
    return best > 1 ? best : 1;
}

bool weft__dnn_attention_part(const weft_heavy_attention *whole, int capability, int version, bool fast,
                              int64_t memory, weft_dnn_attention *part, char message[WEFT_DNN_MESSAGE]) {
    const char *why = dnn_attention_refuse(whole, capability, version);
    *part = (weft_dnn_attention){.at = *whole, .fast = fast && whole->backward, .batches = 1, .heads = 1};
    if (why) {
        snprintf(message, WEFT_DNN_MESSAGE, "%s", why);
        return false;
    }
    if (!whole->backward) return true;
    weft_heavy_attention *at = &part->at;
    const int64_t row = 4 * at->t_q, sums = row * at->d, scores = 2 * at->t_q * at->t_k;
    const int64_t pair = row + (part->fast ? sums : scores); /* bytes for one head of one batch item */
    if (pair > memory) {
        snprintf(message, WEFT_DNN_MESSAGE, "one head's gradient of scores takes %lld bytes",
                 (long long)pair);
        return false;
    }
    at->heads = divisor(whole->heads, memory / pair);
    at->batch = at->heads < whole->heads ? 1 : divisor(whole->batch, memory / (pair * at->heads));
    part->heads = whole->heads / at->heads;
    part->batches = whole->batch / at->batch;
    part->dots = row * at->heads * at->batch;
    part->gathered = part->fast ? sums * at->heads * at->batch : 0;
    return true;
}

void weft__dnn_attention_hash(const weft_dnn_attention *part, weft_hash *hash) {
    const weft_heavy_attention *at = &part->at;
    const int64_t *strides[] = {at->q, at->k, at->v, at->out, at->dout, at->dq, at->dk, at->dv};
    const int64_t numbers[] = {at->dtype, at->causal, at->backward, part->fast, at->batch,
                               at->heads, at->t_q,    at->t_k,      at->d};
    weft__hash_str(hash, "cuDNN attention 1"); /* version of the graphs below */
    weft__hash_bytes(hash, numbers, sizeof numbers);
    for (int i = 0; i < (at->backward ? 8 : 4); i++) weft__hash_bytes(hash, strides[i], 3 * sizeof **strides);
}

/* ---- tensors ---- */

typedef cudnnBackendDescriptor_t tensor;

typedef struct maker {
    weft_dnn_graph *graph;
    const weft_heavy_attention *at;
    unsigned type; /* of the elements */
    int64_t t_q, t_k, d;
} maker;

/* Returns a contiguous tensor (batch, heads, rows, columns). It has memory if id is not 0. */
static tensor whole(const maker *m, int64_t id, unsigned type, int64_t rows, int64_t columns) {
    const int64_t heads = m->at->heads;
    const weft_dnn_tensor t = {.id = id,
                               .type = type,
                               .dims = {m->at->batch, heads, rows, columns},
                               .strides = {heads * rows * columns, rows * columns, columns, 1}};
    return weft__dnn_tensor(m->graph, &t);
}

static tensor scores(const maker *m, unsigned type) { return whole(m, 0, type, m->t_q, m->t_k); }

/* Returns scores stored as the transposed matrix. */
static tensor turned(const maker *m) {
    const int64_t n = m->t_q * m->t_k;
    const weft_dnn_tensor t = {.type = m->type,
                               .dims = {m->at->batch, m->at->heads, m->t_k, m->t_q},
                               .strides = {m->at->heads * n, n, 1, m->t_k}};
    return weft__dnn_tensor(m->graph, &t);
}

/* Returns an operand (batch, heads, t, d) with its strides, or (batch, heads, d, t) if `turn` is set. For a
 * dimension of extent 1, cuDNN requires the stride that a larger extent would have. */
static tensor operand(const maker *m, int64_t id, const int64_t given[3], int64_t t, bool turn) {
    int64_t strides[3] = {given[0], given[1], given[2]};
    if (t == 1) strides[2] = m->d;
    if (m->at->heads == 1) strides[1] = t * strides[2];
    if (m->at->batch == 1) strides[0] = weft__larger(m->at->heads * strides[1], t * strides[2]);
    const weft_dnn_tensor to = {
        .id = id,
        .type = m->type,
        .dims = {m->at->batch, m->at->heads, turn ? m->d : t, turn ? t : m->d},
        .strides = {strides[0], strides[1], turn ? 1 : strides[2], turn ? strides[2] : 1}};
    return weft__dnn_tensor(m->graph, &to);
}

static tensor dnn_attention_number(const maker *m, int64_t id) {
    const weft_dnn_tensor t = {
        .id = id, .type = CUDNN_DATA_FLOAT, .dims = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .by_value = true};
    return weft__dnn_tensor(m->graph, &t);
}

/* ---- operations, each with a new tensor for its result ---- */

static tensor map(const maker *m, unsigned mode, tensor x, tensor b) {
    tensor y = scores(m, CUDNN_DATA_FLOAT);
    weft__dnn_map(m->graph, mode, x, b, NULL, y);
    return y;
}

static tensor map_rows(const maker *m, unsigned mode, tensor x, tensor b) {
    tensor y = whole(m, 0, CUDNN_DATA_FLOAT, m->t_q, 1);
    weft__dnn_map(m->graph, mode, x, b, NULL, y);
    return y;
}

static tensor reduce_rows(const maker *m, unsigned mode, tensor x) {
    tensor y = whole(m, 0, CUDNN_DATA_FLOAT, m->t_q, 1);
    weft__dnn_reduce(m->graph, mode, x, y);
    return y;
}

static tensor dnn_attention_product(const maker *m, tensor a, tensor b) {
    tensor c = scores(m, CUDNN_DATA_FLOAT);
    weft__dnn_matmul(m->graph, a, b, c);
    return c;
}

/* Returns the scores with a causal mask: a query sees the keys up to its own position. */
static tensor masked(const maker *m, tensor x) {
    if (!m->at->causal) return x;
    tensor hidden = dnn_attention_number(m, WEFT_DNN_HIDDEN), row = scores(m, CUDNN_DATA_INT32),
           column = scores(m, CUDNN_DATA_INT32), seen = scores(m, CUDNN_DATA_BOOLEAN),
           y = scores(m, CUDNN_DATA_FLOAT);
    weft__dnn_index(m->graph, 2, x, row);
    weft__dnn_index(m->graph, 3, x, column);
    weft__dnn_compare(m->graph, CUDNN_POINTWISE_CMP_GE, row, column, seen);
    weft__dnn_map(m->graph, CUDNN_POINTWISE_BINARY_SELECT, x, hidden, seen, y);
    return y;
}

/* ---- graphs ---- */

static void forward(const maker *m) {
    const weft_heavy_attention *at = m->at;
    tensor q = operand(m, WEFT_DNN_Q, at->q, m->t_q, false), k = operand(m, WEFT_DNN_K, at->k, m->t_k, true),
           v = operand(m, WEFT_DNN_V, at->v, m->t_k, false),
           out = operand(m, WEFT_DNN_OUT, at->out, m->t_q, false),
           lse = whole(m, WEFT_DNN_LSE, CUDNN_DATA_FLOAT, m->t_q, 1), weights = scores(m, m->type);
    tensor s = masked(m, map(m, CUDNN_POINTWISE_MUL, dnn_attention_product(m, q, k),
                             dnn_attention_number(m, WEFT_DNN_SCALE)));
    tensor most = reduce_rows(m, CUDNN_REDUCE_TENSOR_MAX, s);
    tensor e = map(m, CUDNN_POINTWISE_EXP, map(m, CUDNN_POINTWISE_SUB, s, most), NULL);
    tensor sum = reduce_rows(m, CUDNN_REDUCE_TENSOR_ADD, e);
    weft__dnn_map(m->graph, CUDNN_POINTWISE_ADD, most, map_rows(m, CUDNN_POINTWISE_LOG, sum, NULL), NULL,
                  lse);
    weft__dnn_map(m->graph, CUDNN_POINTWISE_DIV, e, sum, NULL, weights);
    weft__dnn_matmul(m->graph, weights, v, out);
}

/* Adds the operations for dq, from the gradient ds of the scores. */
static void backward_dq(const maker *m, bool fast, tensor ds, tensor k_turned) {
    const weft_heavy_attention *at = m->at;
    tensor k = operand(m, 0, at->k, m->t_k, false), dq = operand(m, WEFT_DNN_DQ, at->dq, m->t_q, false);
    weft__dnn_reshape(m->graph, k_turned, k);
    if (fast) {
        tensor sums = whole(m, WEFT_DNN_GATHERED, CUDNN_DATA_FLOAT, m->t_q, m->d);
        weft__dnn_matmul(m->graph, ds, k, sums);
        weft__dnn_map(m->graph, CUDNN_POINTWISE_IDENTITY, sums, NULL, NULL, dq);
    } else {
        weft__dnn_matmul(m->graph, ds, k, dq);
    }
}

static void dnn_attention_backward(const maker *m, bool fast) {
    const weft_heavy_attention *at = m->at;
    weft_dnn_graph *g = m->graph;
    tensor q = operand(m, WEFT_DNN_Q, at->q, m->t_q, false), k = operand(m, WEFT_DNN_K, at->k, m->t_k, true),
           v = operand(m, WEFT_DNN_V, at->v, m->t_k, true),
           out = operand(m, WEFT_DNN_OUT, at->out, m->t_q, false),
           lse = whole(m, WEFT_DNN_LSE, CUDNN_DATA_FLOAT, m->t_q, 1),
           dout = operand(m, WEFT_DNN_DOUT, at->dout, m->t_q, false),
           dk = operand(m, WEFT_DNN_DK, at->dk, m->t_k, false),
           dv = operand(m, WEFT_DNN_DV, at->dv, m->t_k, false),
           scale = dnn_attention_number(m, WEFT_DNN_SCALE);

    tensor parts = whole(m, 0, CUDNN_DATA_FLOAT, m->t_q, m->d),
           dots = whole(m, WEFT_DNN_DOTS, CUDNN_DATA_FLOAT, m->t_q, 1);
    weft__dnn_map(g, CUDNN_POINTWISE_MUL, dout, out, NULL, parts);
    weft__dnn_map(g, CUDNN_POINTWISE_MUL, reduce_rows(m, CUDNN_REDUCE_TENSOR_ADD, parts),
                  dnn_attention_number(m, WEFT_DNN_ONE), NULL, dots);

    tensor s = map(m, CUDNN_POINTWISE_MUL, dnn_attention_product(m, q, k), scale);
    tensor p = map(m, CUDNN_POINTWISE_EXP, masked(m, map(m, CUDNN_POINTWISE_SUB, s, lse)), NULL);
    tensor p_turned = turned(m), ds = scores(m, m->type), ds_turned = turned(m);
    weft__dnn_reshape(g, p, p_turned);
    weft__dnn_matmul(g, p_turned, dout, dv);

    tensor dp = map(m, CUDNN_POINTWISE_SUB, dnn_attention_product(m, dout, v), dots);
    weft__dnn_map(g, CUDNN_POINTWISE_MUL, map(m, CUDNN_POINTWISE_MUL, dp, p), scale, NULL, ds);
    weft__dnn_reshape(g, ds, ds_turned);
    weft__dnn_matmul(g, ds_turned, q, dk);
    backward_dq(m, fast, ds, k);
}

void weft__dnn_attention_graph(weft_dnn_graph *graph, const weft_dnn_attention *part) {
    const weft_heavy_attention *at = &part->at;
    const maker m = {.graph = graph,
                     .at = at,
                     .type = at->dtype == WEFT_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
                     .t_q = at->t_q,
                     .t_k = at->t_k,
                     .d = at->d};
    if (at->backward)
        dnn_attention_backward(&m, part->fast);
    else
        forward(&m);
}
