/* What the compiler and the profile know of a convolution. Must not know: devices. Read next: conv.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int conv_operands(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_CONV_OPERANDS;
}

static weft_dtype dtype(const weft_heavy *heavy) { return (weft_dtype)heavy->as.conv.dtype; }

/* Counts each multiplication of a tap with an element of its window, even outside the image. */
static void conv_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const double n = (double)c->n, g = (double)c->groups, in = (double)c->in, out = (double)c->out;
    const double taps = (double)c->size[0] * (double)c->size[1], y = (double)c->y[0] * (double)c->y[1];
    const double x = (double)c->x[0] * (double)c->x[1];
    *flops = 2 * n * y * taps * g * in * out;
    *bytes = (n * g * (x * in + y * out) + g * taps * in * out) * weft__heavy_size(c->dtype);
}

static void conv_describe(const weft_heavy *heavy, char *text, size_t size) {
    static const char *const pass[] = {"", ".input", ".weight"};
    const weft_heavy_conv *c = &heavy->as.conv;
    snprintf(text, size, "conv%s %s %lldx%lldx%lldx%lld to %lldx%lldx%lld by %lldx%lld", pass[c->pass],
             weft_dtype_name((weft_dtype)c->dtype), (long long)c->n, (long long)(c->groups * c->in),
             (long long)c->x[0], (long long)c->x[1], (long long)(c->groups * c->out), (long long)c->y[0],
             (long long)c->y[1], (long long)c->size[0], (long long)c->size[1]);
}

static const char *conv_check(const weft_heavy *heavy) {
    const weft_heavy_conv *c = &heavy->as.conv;
    if (!weft_dtype_is_float((weft_dtype)c->dtype)) return "the dtype is not a float";
    if (c->pass > WEFT_CONV_WEIGHT) return "an unknown pass";
    if (!weft__heavy_extents(4, (int64_t[]){c->n, c->groups, c->in, c->out}) ||
        !weft__heavy_extents(2, c->x) || !weft__heavy_extents(2, c->size) || !weft__heavy_extents(2, c->y))
        return "a negative extent";
    if (c->stride[0] < 1 || c->stride[1] < 1 || c->dilation[0] < 1 || c->dilation[1] < 1)
        return "a stride or dilation below 1";
    return NULL;
}

const weft_heavy_class weft__heavy_conv = {.name = "convolution",
                                           .work = WEFT_WORK_CONVOLUTION,
                                           .operands = conv_operands,
                                           .dtype = dtype,
                                           .cost = conv_cost,
                                           .describe = conv_describe,
                                           .check = conv_check};
