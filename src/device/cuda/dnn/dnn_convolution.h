/* Convolutions as graphs of cuDNN.
 * Must not know: commands, where plans are stored. Read next: dnn_convolution.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_CONVOLUTION_H
#define WEFT_DEVICE_CUDA_DNN_DNN_CONVOLUTION_H

#include "device/cuda/dnn/dnn.h"
#include "heavy/conv.h"

/* A convolution. In memory: x (n, height, width, c), w (k, r, s, c / groups), y (n, out_height, out_width,
 * k). Their ids are 1, 2 and 3. */
typedef struct weft_dnn_convolution {
    weft_conv_pass pass;
    uint8_t dtype; /* f32, f16 or bf16; sums are in f32 */
    bool tf32;     /* f32 may be rounded to TF32 before the multiplication */
    int64_t n, height, width, c, k, r, s, groups;
    int64_t stride[2], padding[2], dilation[2]; /* along height, width */
} weft_dnn_convolution;

/* Returns the extent of y along an axis. */
int64_t weft__dnn_convolution_extent(const weft_dnn_convolution *convolution, int axis);
void weft__dnn_convolution_graph(weft_dnn_graph *graph, const weft_dnn_convolution *convolution);
/* Returns the notes (weft_dnn_request) of engines to refuse: those that round elements before they multiply,
 * and those that do not repeat their bits. */
unsigned weft__dnn_convolution_notes(const weft_dnn_convolution *convolution);

#endif
