/* Products whose operand is windows of images: what convolutions ask of the family of product templates. Read
 * next: conv.c, matmul.c, image.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MATMUL_PRODUCT_H
#define WEFT_DEVICE_GPU_HEAVY_MATMUL_PRODUCT_H

#include "device/device.h"
#include "kernel/source.h"

/* n / d of an n below 2^31 as a product and a shift; magic 0: d is 1. */
typedef struct weft_gpu_divisor {
    uint32_t magic;
    int32_t shift;
} weft_gpu_divisor;

/* As w_image in image.cl. */
typedef struct weft_gpu_image {
    int64_t end;
    int32_t source[2], windows[2], taps[2], stride[2], dilation[2], offset[2];
    int32_t channels, depth;
    int32_t weight[3];
    int32_t to[4];
    weft_gpu_divisor by_columns, by_rows, by_depth, by_taps;
} weft_gpu_image;

/* Numbers of image.cl's IMAGE. */
enum { WEFT_GPU_WINDOWS_A = 1, WEFT_GPU_WINDOWS_A_BACK = 2, WEFT_GPU_WINDOWS_B = 3 };

typedef struct weft_gpu_view {
    int kind;
    bool spread; /* rows of c are pixels that do not follow each other */
    weft_gpu_image image;
} weft_gpu_view;

/* matmul.c: c = operands a times b, c being operand 2. The operand that is `view` (NULL: none) has strides of
 * 0 and 1. */
weft_status weft__gpu_product(weft_launches *launches, const weft_heavy *heavy, const weft_heavy_matmul *mm,
                              int a, int b, const weft_gpu_view *view, bool sink);

#endif
