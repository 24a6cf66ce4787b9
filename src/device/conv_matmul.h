/* Convolutions that are plain matmuls.
 * Must not know: which device asks. Read next: conv_matmul.c. */
#ifndef WEFT_DEVICE_CONV_MATMUL_H
#define WEFT_DEVICE_CONV_MATMUL_H

#include "device/device.h"

/* Returns true for a 1 x 1 convolution with stride 1 and no padding. */
bool weft__conv_is_matmul(const weft_heavy_conv *c);
/* Returns the matmul that such a convolution is. *swapped is false if it multiplies the first operand by the
 * second, and true if it multiplies the second by the first. */
weft_heavy_matmul weft__conv_matmul(const weft_heavy_conv *c, bool *swapped);

#endif
