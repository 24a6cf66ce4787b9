/* Convolution (cross-correlation) of images with their channels last, and its two gradients. Each of the
 * three passes has the other two as its gradients. Must not know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_CONV_H
#define WEFT_HEAVY_CONV_H

#include <weft/dtype.h>

typedef enum weft_conv_pass { WEFT_CONV_FORWARD, WEFT_CONV_INPUT, WEFT_CONV_WEIGHT } weft_conv_pass;

/* Names of the tensors; weft__conv_operand gives the place of each. */
enum { WEFT_CONV_X, WEFT_CONV_W, WEFT_CONV_Y, WEFT_CONV_OPERANDS };

/* Shapes, all contiguous: x (n, x[0], x[1], groups * in), w (groups * out, size[0], size[1], in), y (n, y[0],
 * y[1], groups * out). Pixel o of y and tap i of the window read pixel o*stride + i*dilation - padding of x,
 * which is 0 outside the image. Sums are in f32 or wider.
 *
 * Operands:   FORWARD x, w, y     INPUT dy, w, dx     WEIGHT x, dy, dw */
typedef struct weft_heavy_conv {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    uint8_t pass;
    int64_t n, groups, in, out; /* images; channels of a group in x and in y */
    int64_t x[2], size[2], y[2], stride[2], padding[2], dilation[2];
} weft_heavy_conv;

/* Returns the place of a tensor, or of its gradient, in the list of operands. */
static inline int weft__conv_operand(const weft_heavy_conv *conv, int which) {
    static const int place[3][WEFT_CONV_OPERANDS] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    return place[conv->pass][which];
}

#endif
