/* Convolutions that are plain products. Read next: conv_product.c. */
#ifndef WEFT_DEVICE_CONV_PRODUCT_H
#define WEFT_DEVICE_CONV_PRODUCT_H

#include "device/device.h"

/* Kernels of 1 x 1 whose pixels follow each other. */
bool weft__conv_is_product(const weft_heavy_conv *c);
/* The product that such a one is: of its first operand by the second one; swapped: of the second by the
 * first. */
weft_heavy_matmul weft__conv_product(const weft_heavy_conv *c, bool *swapped);

#endif
