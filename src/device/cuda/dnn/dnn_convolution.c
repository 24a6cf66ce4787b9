/* Convolutions, as graphs of one operation. Images are stored with channels last (NHWC).
 * Must not know: plans. Read next: dnn_graph.c. */
#include "device/cuda/dnn/dnn_convolution.h"

/* Returns a tensor stored as (a, height, width, channels). cuDNN counts channels as the second dimension. */
static cudnnBackendDescriptor_t image(weft_dnn_graph *g, int64_t id, unsigned type, int64_t a,
                                      int64_t channels, int64_t height, int64_t width) {
    const weft_dnn_tensor t = {
        .id = id,
        .type = type,
        .dims = {a, channels, height, width},
        .strides = {channels * height * width, 1, channels * width, channels},
    };
    return weft__dnn_tensor(g, &t);
}

int64_t weft__dnn_convolution_extent(const weft_dnn_convolution *c, int axis) {
    const int64_t extent = axis ? c->width : c->height, filter = axis ? c->s : c->r;
    return (extent + 2 * c->padding[axis] - c->dilation[axis] * (filter - 1) - 1) / c->stride[axis] + 1;
}

static cudnnBackendDescriptor_t law(weft_dnn_graph *g, const weft_dnn_convolution *c) {
    const unsigned f32 = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2;
    cudnnBackendDescriptor_t to = weft__dnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
    weft__dnn_set(g, to, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
    weft__dnn_finish(g, to);
    return to;
}

/* cuDNN's names for the attributes of each pass. */
typedef struct pass_names {
    unsigned operation, x, w, y, law, alpha, beta;
} pass_names;
static const pass_names passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

void weft__dnn_convolution_graph(weft_dnn_graph *g, const weft_dnn_convolution *c) {
    const pass_names *a = &passes[c->pass];
    const unsigned type = c->dtype == WEFT_F32    ? CUDNN_DATA_FLOAT
                          : c->dtype == WEFT_BF16 ? CUDNN_DATA_BFLOAT16
                                                  : CUDNN_DATA_HALF;
    const float one = 1, none = 0;
    cudnnBackendDescriptor_t x = image(g, 1, type, c->n, c->c, c->height, c->width),
                             w = image(g, 2, type, c->k, c->c / c->groups, c->r, c->s),
                             y = image(g, 3, type, c->n, c->k, weft__dnn_convolution_extent(c, 0),
                                       weft__dnn_convolution_extent(c, 1)),
                             how = law(g, c), to = weft__dnn_make(g, a->operation);
    weft__dnn_link(g, to, a->x, x);
    weft__dnn_link(g, to, a->w, w);
    weft__dnn_link(g, to, a->y, y);
    weft__dnn_link(g, to, a->law, how);
    weft__dnn_set(g, to, a->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    weft__dnn_set(g, to, a->beta, CUDNN_TYPE_FLOAT, 1, &none);
    weft__dnn_add(g, to);
}

unsigned weft__dnn_convolution_notes(const weft_dnn_convolution *c) {
    const unsigned always =
        1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC | 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    return c->dtype == WEFT_F32 && !c->tf32
               ? always | 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
                     1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS | 1u << CUDNN_NUMERICAL_NOTE_FFT |
                     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD
               : always;
}
