/* Matmuls with windows of images as an operand: what convolutions request from the matmul templates.
 * Must not know: launches. Read next: gpu/heavy/conv/conv.c, matmul.c, gpu/heavy/conv/image.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_H
#define WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_H

#include "device/device.h"
#include "kernel/source.h"

/* Division n / d for n below 2^31, as a multiplication and a shift. magic is 0 if d is 1. */
typedef struct weft_gpu_divisor {
    uint32_t magic;
    int32_t shift;
} weft_gpu_divisor;

/* Same as w_image in image.cl. */
typedef struct weft_gpu_image {
    int64_t end;
    int32_t source[2], windows[2], taps[2], stride[2], dilation[2], offset[2];
    int32_t channels, depth;
    int32_t weight[3];
    int32_t to[4];
    weft_gpu_divisor by_columns, by_rows, by_depth, by_taps;
} weft_gpu_image;

/* Values of IMAGE in image.cl. */
enum { WEFT_GPU_WINDOWS_A = 1, WEFT_GPU_WINDOWS_A_BACK = 2, WEFT_GPU_WINDOWS_B = 3 };

typedef struct weft_gpu_view {
    int kind;
    bool spread; /* rows of c are pixels that are not contiguous */
    weft_gpu_image image;
} weft_gpu_view;

/* matmul.c: c = operand a times operand b; c is operand 2. The operand that `view` describes has strides of 0
 * and 1. NULL: neither is windows of images. */
weft_status weft__gpu_matmul_launches(weft_launches *launches, const weft_heavy *heavy,
                                      const weft_heavy_matmul *mm, int a, int b, const weft_gpu_view *view,
                                      bool sink);

#endif
