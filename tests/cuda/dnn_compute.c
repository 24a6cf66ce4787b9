/* Computes a graph of cuDNN operations, one operation after the other on whole tensors. Elements are computed
 * in f32 and rounded to the dtype of the tensor that stores them; sums are in f64. Read next: dnn.h. */
#define FAKE_CUDNN_INSIDE
#include "dnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t count(const fake_tensor *t) { return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; }

static void place(const fake_tensor *t, int64_t i, int64_t at[4]) {
    for (int d = 3; d >= 0; d--) {
        at[d] = i % t->dims[d];
        i /= t->dims[d];
    }
}

static int64_t offset(const fake_tensor *t, int64_t i) {
    int64_t at[4], sum = 0;
    place(t, i, at);
    for (int d = 0; d < 4; d++) sum += at[d] * t->strides[d];
    return sum;
}

/* ---- dtypes ---- */

static float load(unsigned type, const void *from, int64_t i) {
    if (type == CUDNN_DATA_FLOAT) return ((const float *)from)[i];
    if (type == CUDNN_DATA_HALF) return (float)((const _Float16 *)from)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void store(unsigned type, void *to, int64_t i, float value) {
    if (type == CUDNN_DATA_FLOAT)
        ((float *)to)[i] = value;
    else if (type == CUDNN_DATA_HALF)
        ((_Float16 *)to)[i] = (_Float16)value;
    else
        ((uint16_t *)to)[i] = to_bf16(value);
}

static float rounded(unsigned type, float value) {
    uint16_t bits[2];
    if (type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16) return value;
    store(type, bits, 0, value);
    return load(type, bits, 0);
}

/* ---- operations; `of`: a dense array for each tensor ---- */

/* The position in x that element i of y reads. Dimensions of extent 1 are repeated. */
static int64_t read_place(const fake_tensor *x, const fake_tensor *y, int64_t i) {
    int64_t at[4], sum = 0;
    place(y, i, at);
    for (int d = 0; d < 4; d++) sum = sum * x->dims[d] + (x->dims[d] == 1 ? 0 : at[d]);
    return sum;
}

static float apply(unsigned mode, float x, float b, float t, int64_t index) {
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_EXP: return expf(x);
    case CUDNN_POINTWISE_LOG: return logf(x);
    case CUDNN_POINTWISE_IDENTITY: return x;
    case CUDNN_POINTWISE_CMP_GE: return x >= b;
    case CUDNN_POINTWISE_GEN_INDEX: return (float)index;
    default: return t != 0 ? x : b; /* BINARY_SELECT */
    }
}

static void pointwise(const fake_graph *g, const fake_operation *o, float *const *of) {
    const fake_tensor *x = &g->tensors[o->x], *y = &g->tensors[o->y];
    for (int64_t i = 0; i < count(y); i++) {
        int64_t at[4];
        place(y, i, at);
        of[o->y][i] = apply(o->mode, of[o->x][read_place(x, y, i)],
                            o->b < 0 ? 0 : of[o->b][read_place(&g->tensors[o->b], y, i)],
                            o->t < 0 ? 0 : of[o->t][read_place(&g->tensors[o->t], y, i)],
                            o->axis < 0 ? 0 : at[o->axis]);
    }
}

static void matmul(const fake_graph *g, const fake_operation *o, float *const *of) {
    const fake_tensor *a = &g->tensors[o->x], *c = &g->tensors[o->y];
    const int64_t m = c->dims[2], n = c->dims[3], k = a->dims[3];
    for (int64_t pair = 0; pair < c->dims[0] * c->dims[1]; pair++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum +=
                        (double)of[o->x][(pair * m + i) * k + l] * (double)of[o->b][(pair * k + l) * n + j];
                of[o->y][(pair * m + i) * n + j] = (float)sum;
            }
}

/* Reduces the last dimension. */
static void reduce(const fake_graph *g, const fake_operation *o, float *const *of) {
    const fake_tensor *x = &g->tensors[o->x], *y = &g->tensors[o->y];
    const int64_t n = x->dims[3];
    for (int64_t i = 0; i < count(y); i++) {
        double sum = 0;
        float most = -INFINITY;
        for (int64_t j = 0; j < n; j++) {
            sum += (double)of[o->x][i * n + j];
            most = fmaxf(most, of[o->x][i * n + j]);
        }
        of[o->y][i] = o->mode == CUDNN_REDUCE_TENSOR_MAX ? most : (float)sum;
    }
}

/* The same memory with other dimensions. */
static unsigned reshape(const fake_graph *g, const fake_operation *o, float *const *of) {
    const fake_tensor *x = &g->tensors[o->x], *y = &g->tensors[o->y];
    int64_t end = 0;
    for (int64_t i = 0; i < count(x); i++) end = offset(x, i) >= end ? offset(x, i) + 1 : end;
    float *memory = calloc((size_t)end, sizeof *memory);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count(x); i++) memory[offset(x, i)] = of[o->x][i];
    for (int64_t i = 0; i < count(y); i++) of[o->y][i] = offset(y, i) < end ? memory[offset(y, i)] : NAN;
    free(memory);
    return 0;
}

/* For each pair of elements of two of x, w and y that a convolution combines, adds their product to the
 * third. */
static unsigned convolve(const fake_graph *g, const fake_operation *o, const int parts[3], float *const *of) {
    const int64_t *x = g->tensors[parts[0]].dims, *w = g->tensors[parts[1]].dims,
                  *y = g->tensors[parts[2]].dims;
    const int64_t wide = y[1] / (x[1] / w[1]), n = count(&g->tensors[o->y]);
    double *sums = calloc((size_t)n, sizeof *sums);
    if (!sums) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count(&g->tensors[parts[2]]); i++)
        for (int64_t k = 0; k < w[1] * w[2] * w[3]; k++) {
            int64_t at[4];
            place(&g->tensors[parts[2]], i, at);
            const int64_t c = k / (w[2] * w[3]), r = k / w[3] % w[2], s = k % w[3];
            const int64_t row = at[2] * o->law[2] + r * o->law[4] - o->law[0],
                          column = at[3] * o->law[3] + s * o->law[5] - o->law[1];
            if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
            const int64_t e[3] = {((at[0] * x[1] + at[1] / wide * w[1] + c) * x[2] + row) * x[3] + column,
                                  ((at[1] * w[1] + c) * w[2] + r) * w[3] + s, i};
            double product = 1;
            int64_t to = 0;
            for (int p = 0; p < 3; p++)
                if (parts[p] == o->y)
                    to = e[p];
                else
                    product *= (double)of[parts[p]][e[p]];
            sums[to] += product;
        }
    for (int64_t i = 0; i < n; i++) of[o->y][i] = (float)sums[i];
    free(sums);
    return 0;
}

static unsigned compute(const fake_execution *e, float *const *of) {
    const fake_graph *g = &e->graph;
    unsigned error = 0;
    for (int i = 0; i < g->n_operations && !error; i++) {
        const fake_operation *o = &g->operations[i];
        const fake_tensor *y = &g->tensors[o->y];
        int parts[3];
        fake_convolution(o, parts);
        switch (o->kind) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: matmul(g, o, of); break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: reduce(g, o, of); break;
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: error = reshape(g, o, of); break;
        default:
            if (parts[0] < 0)
                pointwise(g, o, of);
            else
                error = convolve(g, o, parts, of);
        }
        for (int64_t k = 0; k < count(y); k++) of[o->y][k] = rounded(y->type, of[o->y][k]);
        if (!y->hidden)
            for (int64_t k = 0; k < count(y); k++) store(y->type, e->values[o->y], offset(y, k), of[o->y][k]);
    }
    return error;
}

/* Says which memory the execution uses. */
static void use_all(const fake_execution *e) {
    const fake_graph *g = &e->graph;
    if (g->workspace) fake_uses(e->workspace, (unsigned long)g->workspace, 1);
    for (int t = 0; t < g->n_tensors; t++) {
        const fake_tensor *is = &g->tensors[t];
        const unsigned long bytes = is->type == CUDNN_DATA_FLOAT ? 4 : 2;
        bool writes = false;
        if (is->by_value || is->hidden) continue;
        for (int i = 0; i < g->n_operations; i++) writes = writes || g->operations[i].y == t;
        for (int64_t i = 0; i < count(is); i++)
            fake_uses((const char *)e->values[t] + offset(is, i) * (int64_t)bytes, bytes, writes);
    }
}

unsigned fake_execute(void *execution) {
    const fake_execution *e = execution;
    const fake_graph *g = &e->graph;
    float *of[FAKE_TENSORS] = {NULL};
    unsigned error = 0;
    use_all(e);
    if (g->workspace) memset(e->workspace, 0xA5, (size_t)g->workspace); /* only this plan may use it */
    for (int t = 0; t < g->n_tensors && !error; t++) {
        const fake_tensor *is = &g->tensors[t];
        of[t] = calloc((size_t)count(is), sizeof(float));
        if (!of[t]) error = CUDA_ERROR_OUT_OF_MEMORY;
        if (is->by_value && of[t]) of[t][0] = e->numbers[t];
        if (is->by_value || is->hidden || !of[t]) continue;
        for (int64_t i = 0; i < count(is); i++) of[t][i] = load(is->type, e->values[t], offset(is, i));
    }
    for (int run = 0; run < (g->slow ? 4 : 1) && !error; run++) error = compute(e, of);
    for (int t = 0; t < g->n_tensors; t++) free(of[t]);
    return error;
}
