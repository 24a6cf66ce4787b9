/* Matmuls with windows of images as an operand: what convolutions request from the matmul templates.
 * Must not know: launches. Read next: gpu/heavy/conv/conv.c, matmul.c, gpu/heavy/conv/image.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_H
#define WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_H

#include "device/device.h"
#include "device/gpu/heavy/conv/image_params.h"
#include "kernel/source.h"

typedef struct weft_gpu_view {
    int kind;    /* WEFT_GPU_WINDOWS_... */
    bool spread; /* rows of c are pixels that are not contiguous */
    w_image image;
} weft_gpu_view;

/* matmul.c: c = operand a times operand b; c is operand 2. The operand that `view` describes has strides of 0
 * and 1. NULL: neither is windows of images. */
weft_status weft__gpu_matmul_launches(weft_launches *launches, const weft_heavy *heavy,
                                      const weft_heavy_matmul *mm, int a, int b, const weft_gpu_view *view,
                                      bool sink);

#endif
