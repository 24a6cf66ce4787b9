/* What conv.c tells image.cl, by way of the matmul templates.
 * Must not know: launches. Read next: conv.c, image.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_CONV_IMAGE_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_CONV_IMAGE_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Values of IMAGE: which operand of the matmul is the windows of images. 0: none. */
#define WEFT_GPU_WINDOWS_A      1 /* a, of a convolution */
#define WEFT_GPU_WINDOWS_A_BACK 2 /* a, of the gradient of the input; b is the weight, its taps reversed */
#define WEFT_GPU_WINDOWS_B      3 /* b, of the gradient of the weight */

/* Division n / d for n below 2^31, as a multiplication and a shift. magic is 0 if d is 1. */
typedef struct w_divisor {
    w_u32 magic;
    w_i32 shift;
} w_divisor;

/* Images of source[0] x source[1] pixels, and their windows. */
typedef struct w_image {
    w_i64 end; /* elements of all images */
    w_i32 source[2], windows[2], taps[2], stride[2], dilation[2], offset[2];
    w_i32 channels, depth; /* elements from pixel to pixel; channels of a window */
    w_i32 weight[3]; /* in a line of the weight: place of the first tap, steps from row to row and from tap
                      * to tap */
    w_i32 to[4];     /* of c: pixels of an image; place of the first pixel, steps from row to row and from
                      * pixel to pixel */
    w_divisor by_columns, by_rows, by_depth, by_taps; /* by windows[1], windows[0], depth, taps[1] */
    w_i32 unused;
} w_image;

#endif
