/* Convolution and its gradients by their definition.
 * Must not know: other devices. Read next: heavy/conv.h. */
#include "interp/heavy/heavy.h"

bool weft__interp_conv_takes(const weft_heavy_conv *heavy) {
    (void)heavy;
    return true;
}

/* Returns the number of the pixel that tap t meets for pixel p of y, or -1 if it is outside the image. */
static int64_t pixel(const weft_heavy_conv *c, int64_t p, int64_t t) {
    const int64_t i = p / c->y[1] * c->stride[0] + t / c->size[1] * c->dilation[0] - c->padding[0];
    const int64_t j = p % c->y[1] * c->stride[1] + t % c->size[1] * c->dilation[1] - c->padding[1];
    return i < 0 || i >= c->x[0] || j < 0 || j >= c->x[1] ? -1 : i * c->x[1] + j;
}

/* Multiplies each pair of elements of two of x, w and y. Adds the products to the elements of the third one,
 * in f64. */
weft_status weft__interp_conv(weft_interp *device, const weft_heavy *heavy, void *const *args,
                              const int64_t *bytes) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const int64_t pixels = c->y[0] * c->y[1], taps = c->size[0] * c->size[1], image = c->x[0] * c->x[1];
    const int64_t deep = c->groups * c->in, wide = c->groups * c->out, one = 1;
    const int64_t count[3] = {c->n * image * deep, wide * taps * c->in, c->n * pixels * wide};
    const int result = c->pass == WEFT_CONV_FORWARD ? 2 : c->pass == WEFT_CONV_INPUT ? 0 : 1;
    interp_operand o[3];
    for (int i = 0; i < 3; i++) {
        const int at = weft__conv_operand(c, i);
        o[i] = (interp_operand){(weft_dtype)c->dtype, args[at]};
        WEFT_TRY(weft__interp_inside(device, heavy, at, bytes[at], o[i].dtype, 1, &count[i], &one));
    }
    double *sum = weft__array(device->base.ctx, (size_t)count[result] + 1, sizeof *sum);
    if (!sum) return weft__fail_oom(device->base.ctx, (size_t)count[result] * sizeof *sum, "interp: conv");
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t from = pixel(c, p, t);
                for (int64_t k = 0; from >= 0 && k < wide * c->in; k++) {
                    const int64_t to = k / c->in, i = k % c->in;
                    const int64_t e[3] = {(n * image + from) * deep + to / c->out * c->in + i,
                                          (to * taps + t) * c->in + i, (n * pixels + p) * wide + to};
                    double product = 1;
                    for (int q = 0; q < 3; q++)
                        if (q != result) product *= interp_get(o[q], e[q]).f;
                    sum[e[result]] += product;
                }
            }
    for (int64_t i = 0; i < count[result]; i++) interp_put(o[result], i, (weft_value){.f = sum[i]});
    weft__free(device->base.ctx, sum);
    return WEFT_OK;
}
