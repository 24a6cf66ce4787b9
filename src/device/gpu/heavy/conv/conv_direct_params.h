/* What conv_direct.c tells conv_direct.cl and conv_direct_sum.cl.
 * Must not know: how the work is divided. Read next: conv_direct.c, conv_direct.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_CONV_CONV_DIRECT_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_CONV_CONV_DIRECT_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* x (n, x, groups * in), y (n, y, groups * out) and the weight (groups * out, size, in) of a convolution. */
typedef struct w_direct {
    w_i32 n, groups, in, out, x[2], size[2], y[2], stride[2], padding[2], dilation[2];
    w_i32 part; /* of a work-group: windows, for the gradient of the weight */
} w_direct;

/* `parts` partial results of `count` elements. */
typedef struct w_direct_sum {
    w_i32 parts, count;
} w_direct_sum;

#endif
