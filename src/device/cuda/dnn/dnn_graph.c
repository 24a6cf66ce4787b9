/* Descriptors of cuDNN's operations. All sums are in f32.
 * Must not know: plans, what is computed. Read next: dnn_attention.c, which builds the largest graph. */
#include <stdio.h>

#include "device/cuda/dnn/dnn.h"

enum { ALIGNMENT = 16 /* in bytes, of every tensor */ };

static void fail(weft_dnn_graph *g, unsigned status, const char *what) {
    if (g->error || !status) return;
    g->error = status;
    weft__dnn_message(status, what, g->message);
}

cudnnBackendDescriptor_t weft__dnn_make(weft_dnn_graph *g, unsigned type) {
    cudnnBackendDescriptor_t made = NULL;
    if (g->error) return NULL;
    if (g->n_made == WEFT_DNN_DESCRIPTORS) {
        fail(g, 1, "too many descriptors");
        return NULL;
    }
    fail(g, weft__dnn.cudnnBackendCreateDescriptor(type, &made), "a descriptor");
    if (made) g->made[g->n_made++] = made;
    return made;
}

void weft__dnn_set(weft_dnn_graph *g, cudnnBackendDescriptor_t to, unsigned attribute, unsigned type,
                   int64_t count, const void *values) {
    char what[32];
    if (g->error) return;
    const unsigned status = weft__dnn.cudnnBackendSetAttribute(to, attribute, type, count, values);
    snprintf(what, sizeof what, "attribute %u", attribute);
    fail(g, status, what);
}

void weft__dnn_link(weft_dnn_graph *g, cudnnBackendDescriptor_t to, unsigned attribute,
                    cudnnBackendDescriptor_t value) {
    weft__dnn_set(g, to, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void weft__dnn_finish(weft_dnn_graph *g, cudnnBackendDescriptor_t made) {
    if (!g->error) fail(g, weft__dnn.cudnnBackendFinalize(made), "a descriptor");
}

void weft__dnn_add(weft_dnn_graph *g, cudnnBackendDescriptor_t operation) {
    weft__dnn_finish(g, operation);
    if (g->error) return;
    if (g->n_operations == WEFT_DNN_OPERATIONS)
        fail(g, 1, "too many operations");
    else
        g->operations[g->n_operations++] = operation;
}

void weft__dnn_graph_free(weft_dnn_graph *g) {
    while (g->n_made) weft__dnn.cudnnBackendDestroyDescriptor(g->made[--g->n_made]);
}

cudnnBackendDescriptor_t weft__dnn_tensor(weft_dnn_graph *g, const weft_dnn_tensor *t) {
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const int64_t id = t->id ? t->id : 1000 + g->n_made, alignment = ALIGNMENT;
    const bool yes = true;
    weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, t->dims);
    weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, t->strides);
    weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (!t->id) weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (t->by_value) weft__dnn_set(g, to, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
    weft__dnn_finish(g, to);
    return to;
}

void weft__dnn_matmul(weft_dnn_graph *g, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                      cudnnBackendDescriptor_t c) {
    const unsigned f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t what = weft__dnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    weft__dnn_set(g, what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
    weft__dnn_finish(g, what);
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
    weft__dnn_add(g, to);
}

/* Returns the descriptor of a pointwise operation. axis < 0: it has no axis. */
static cudnnBackendDescriptor_t pointwise(weft_dnn_graph *g, unsigned mode, unsigned precision,
                                          int64_t axis) {
    cudnnBackendDescriptor_t what = weft__dnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    weft__dnn_set(g, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    weft__dnn_set(g, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    if (axis >= 0) weft__dnn_set(g, what, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    weft__dnn_finish(g, what);
    return what;
}

static void apply(weft_dnn_graph *g, cudnnBackendDescriptor_t what, cudnnBackendDescriptor_t x,
                  cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t t, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t) weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    weft__dnn_add(g, to);
}

void weft__dnn_map(weft_dnn_graph *g, unsigned mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                   cudnnBackendDescriptor_t t, cudnnBackendDescriptor_t y) {
    apply(g, pointwise(g, mode, CUDNN_DATA_FLOAT, -1), x, b, t, y);
}

void weft__dnn_compare(weft_dnn_graph *g, unsigned mode, cudnnBackendDescriptor_t x,
                       cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y) {
    apply(g, pointwise(g, mode, CUDNN_DATA_BOOLEAN, -1), x, b, NULL, y);
}

void weft__dnn_index(weft_dnn_graph *g, int64_t axis, cudnnBackendDescriptor_t x,
                     cudnnBackendDescriptor_t y) {
    apply(g, pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis), x, NULL, NULL, y);
}

void weft__dnn_reduce(weft_dnn_graph *g, unsigned mode, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t y) {
    const unsigned f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t what = weft__dnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    weft__dnn_set(g, what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
    weft__dnn_set(g, what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    weft__dnn_finish(g, what);
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
    weft__dnn_add(g, to);
}

void weft__dnn_reshape(weft_dnn_graph *g, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    weft__dnn_link(g, to, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    weft__dnn_add(g, to);
}
