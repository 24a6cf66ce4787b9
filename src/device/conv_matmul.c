/* Convolutions with 1 x 1 kernels, as matmuls.
 * Must not know: which device asks. Read next: heavy/conv.h. */
#include "device/conv_matmul.h"

bool weft__conv_is_matmul(const weft_heavy_conv *c) {
    bool is = true;
    for (int i = 0; i < 2; i++) is = is && c->size[i] == 1 && c->stride[i] == 1 && c->padding[i] == 0;
    return is;
}

weft_heavy_matmul weft__conv_matmul(const weft_heavy_conv *c, bool *swapped) {
    const int64_t pixels = c->n * c->y[0] * c->y[1], deep = c->groups * c->in, wide = c->groups * c->out;
    const int64_t each = c->in * c->out;
    weft_heavy_matmul mm = {.dtype = c->dtype, .out_dtype = c->dtype, .batch_rank = 1, .batch = {c->groups}};
    *swapped = c->pass == WEFT_CONV_WEIGHT;
    switch (c->pass) {
    case WEFT_CONV_FORWARD: /* y = x w^T */
        mm.m = pixels, mm.n = c->out, mm.k = c->in;
        mm.a_m = deep, mm.a_k = 1, mm.b_k = 1, mm.b_n = c->in, mm.c_m = wide;
        mm.a_batch[0] = c->in, mm.b_batch[0] = each, mm.c_batch[0] = c->out;
        break;
    case WEFT_CONV_INPUT: /* x = y w */
        mm.m = pixels, mm.n = c->in, mm.k = c->out;
        mm.a_m = wide, mm.a_k = 1, mm.b_k = c->in, mm.b_n = 1, mm.c_m = deep;
        mm.a_batch[0] = c->out, mm.b_batch[0] = each, mm.c_batch[0] = c->in;
        break;
    default: /* w = y^T x */
        mm.m = c->out, mm.n = c->in, mm.k = pixels;
        mm.a_m = 1, mm.a_k = wide, mm.b_k = deep, mm.b_n = 1, mm.c_m = c->in;
        mm.a_batch[0] = c->out, mm.b_batch[0] = c->in, mm.c_batch[0] = each;
        break;
    }
    return mm;
}
