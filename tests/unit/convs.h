/* Convolutions for the tests of devices: sizes that reach each border case once, as descriptors. */
#ifndef WEFT_TESTS_CONVS_H
#define WEFT_TESTS_CONVS_H

#include "device/device.h"

/* Strides, paddings, dilations and groups of rows and columns. The other members are those of the
 * descriptor. */
typedef struct geometry {
    int64_t n, groups, in, out, x[2], size[2], stride[2], padding[2], dilation[2];
} geometry;

static const geometry geometries[] = {
    {2, 1, 3, 5, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 1, 1, 6, {9, 8}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},     /* a grey image */
    {2, 1, 16, 33, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* a step of k begins inside a tap */
    {2, 1, 40, 70, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 1, 5, 4, {11, 8}, {3, 2}, {2, 3}, {2, 0}, {1, 1}},
    {1, 1, 4, 7, {13, 12}, {3, 3}, {3, 2}, {2, 3}, {2, 3}}, /* stride and dilation share a divisor, or not */
    {2, 2, 4, 6, {8, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 2}},
    {2, 16, 1, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* depthwise */
    {2, 5, 1, 2, {9, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 37, 1, 1, {6, 5}, {5, 3}, {2, 1}, {2, 1}, {1, 2}},
    {2, 3, 2, 2, {6, 7}, {2, 3}, {1, 2}, {0, 1}, {1, 1}},
    {3, 1, 8, 9, {5, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, /* a plain matmul */
    {3, 2, 8, 3, {5, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 1, 8, 9, {7, 6}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {2, 1, 6, 5, {7, 9}, {2, 2}, {4, 5}, {1, 1}, {1, 1}},  /* pixels that belong to no window */
    {2, 1, 3, 4, {1, 40}, {1, 9}, {1, 1}, {0, 4}, {1, 1}}, /* a 1-d image */
    {1, 1, 3, 4, {4, 5}, {4, 5}, {1, 1}, {0, 0}, {1, 1}},  /* one window */
    {1, 1, 2, 3, {3, 3}, {5, 5}, {1, 1}, {4, 4}, {1, 1}},  /* windows with only padding */
    {0, 1, 2, 3, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
    {0, 1, 2, 3, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
};

static inline weft_heavy_conv conv_of(weft_dtype dt, weft_conv_pass pass, const geometry *g) {
    weft_heavy_conv c = {.dtype = (uint8_t)dt,
                         .pass = (uint8_t)pass,
                         .n = g->n,
                         .groups = g->groups,
                         .in = g->in,
                         .out = g->out};
    for (int d = 0; d < 2; d++) {
        c.x[d] = g->x[d], c.size[d] = g->size[d], c.stride[d] = g->stride[d];
        c.padding[d] = g->padding[d], c.dilation[d] = g->dilation[d];
        c.y[d] = (g->x[d] + 2 * g->padding[d] - g->dilation[d] * (g->size[d] - 1) - 1) / g->stride[d] + 1;
    }
    return c;
}

/* The number of elements of operand i. */
static inline int64_t conv_elements(const weft_heavy_conv *c, int i) {
    static const int what[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; /* x, w, y */
    const int64_t wide = c->groups * c->out;
    switch (what[c->pass][i]) {
    case 0: return c->n * c->x[0] * c->x[1] * c->groups * c->in;
    case 1: return wide * c->size[0] * c->size[1] * c->in;
    default: return c->n * c->y[0] * c->y[1] * wide;
    }
}

#endif
