/* src/device/gpu: convolution and its two gradients as products that read windows where they lie, as texts
 * for CPUs (vectors) and for cards (work-items), run by an OpenCL device, against the interpreter's plain
 * loops in f64; each twice, bit-equal, between guarded buffers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "opencl.h"
#include "gpu_heavy.h"

/* Strides, paddings, dilations and groups of rows and columns; the rest is like a descriptor's. */
typedef struct geometry {
    int64_t n, groups, in, out, x[2], size[2], stride[2], padding[2], dilation[2];
} geometry;

static const geometry geometries[] = {
    {2, 1, 3, 5, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {3, 1, 1, 6, {9, 8}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},     /* a grey image */
    {2, 1, 16, 33, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* a piece of k begins within a tap */
    {2, 1, 40, 70, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 1, 5, 4, {11, 8}, {3, 2}, {2, 3}, {2, 0}, {1, 1}},
    {1, 1, 4, 7, {13, 12}, {3, 3}, {3, 2}, {2, 3}, {2, 3}}, /* strides that dilations share a divisor with,
                                                               and not */
    {2, 2, 4, 6, {8, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 2}},
    {2, 16, 1, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* depthwise */
    {2, 5, 1, 2, {9, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {2, 37, 1, 1, {6, 5}, {5, 3}, {2, 1}, {2, 1}, {1, 2}},
    {2, 3, 2, 2, {6, 7}, {2, 3}, {1, 2}, {0, 1}, {1, 1}},
    {3, 1, 8, 9, {5, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}}, /* a plain product */
    {3, 2, 8, 3, {5, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 1, 8, 9, {7, 6}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {2, 1, 6, 5, {7, 9}, {2, 2}, {4, 5}, {1, 1}, {1, 1}},  /* pixels that no window has */
    {2, 1, 3, 4, {1, 40}, {1, 9}, {1, 1}, {0, 4}, {1, 1}}, /* a line */
    {1, 1, 3, 4, {4, 5}, {4, 5}, {1, 1}, {0, 0}, {1, 1}},  /* one window */
    {1, 1, 2, 3, {3, 3}, {5, 5}, {1, 1}, {4, 4}, {1, 1}},  /* windows that are all padding */
    {0, 1, 2, 3, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
};

static weft_heavy_conv conv_of(weft_dtype dt, weft_conv_pass pass, const geometry *g) {
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

static operands operands_of(weft_dtype dt, weft_dtype like, const weft_heavy_conv *c) {
    static const int what[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    const int64_t wide = c->groups * c->out,
                  counts[3] = {c->n * c->x[0] * c->x[1] * c->groups * c->in,
                               wide * c->size[0] * c->size[1] * c->in, c->n * c->y[0] * c->y[1] * wide};
    operands o = {.n = 3};
    for (int i = 0; i < 3; i++) {
        const int64_t n = counts[what[c->pass][i]];
        void *values = random_values(like, n, (uint64_t)i + 1);
        o.bytes[i] = (size_t)n * weft_dtype_size(dt);
        o.data[i] = malloc(o.bytes[i] + 1);
        memset(o.data[i], 0x3c, o.bytes[i]);
        for (int64_t e = 0; i < 2 && e < n; e++) set_value(dt, o.data[i], e, value(like, values, e));
        free(values);
    }
    return o;
}

static void check_conv(weft_dtype dt, weft_conv_pass pass, const geometry *g) {
    static const char *const names[] = {"forward", "input", "weight"};
    const double u = dt == WEFT_F64 ? 0x1p-53 : 0x1p-24, stored = dt == WEFT_F16    ? 0x1p-11
                                                                  : dt == WEFT_BF16 ? 0x1p-8
                                                                                    : 0;
    weft_heavy h = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(dt, pass, g)};
    weft_heavy reference = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(WEFT_F64, pass, g)};
    const weft_heavy_conv *c = &h.as.conv;
    const int64_t taps = c->size[0] * c->size[1];
    const int64_t k = pass == WEFT_CONV_FORWARD ? taps * c->in
                      : pass == WEFT_CONV_INPUT ? taps * c->out
                                                : c->n * c->y[0] * c->y[1];
    operands o = operands_of(dt, dt, c), want = operands_of(WEFT_F64, dt, c);
    char what[96];
    snprintf(what, sizeof what, "%s of geometry %d", names[pass], (int)(g - geometries));
    run_twice(&h, &o);
    run_on(interp, &reference, &want);
    near(what, dt, o.data[2], want.data[2], o.bytes[2],
         (2 * log2(k > 1 ? (double)k : 1) + 4) * 4 * sqrt((double)k + 1) * u + 2 * stored);
    free_operands(&o), free_operands(&want);
}

/* Each text takes a while to compile: cards get a sample. */
static void test_conv(void **state) {
    (void)state;
    if (!opencl) return skip();
    for (int items = 0; items <= 64; items += 64)
        for (int g = 0; g < COUNT(geometries); g++)
            for (int pass = 0; pass < 3; pass++) {
                if (items && g % 3 != 2) continue;
                aim(items);
                check_conv(WEFT_F32, (weft_conv_pass)pass, &geometries[g]);
            }
}

/* Of the texts that differ by dtype in how they load and store alone. */
static void test_conv_dtypes(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F64, WEFT_BF16, WEFT_F16};
    if (!opencl) return skip();
    aim(0);
    for (int pass = 0; pass < 3; pass++) {
        check_conv(dtypes[pass], (weft_conv_pass)pass, &geometries[2]);
        check_conv(dtypes[(pass + 1) % 3], (weft_conv_pass)pass, &geometries[7]);
    }
    aim(64);
    check_conv(WEFT_BF16, WEFT_CONV_WEIGHT, &geometries[2]);
    check_conv(WEFT_F16, WEFT_CONV_INPUT, &geometries[7]);
}

/* A k so long that it is cut, on cards. */
static void test_conv_parts(void **state) {
    (void)state;
    static const geometry many = {6, 2, 3, 5, {16, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    if (!opencl) return skip();
    aim(64);
    check_conv(WEFT_F32, WEFT_CONV_WEIGHT, &many);
    aim(0);
    check_conv(WEFT_F32, WEFT_CONV_WEIGHT, &many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_dtypes),
        cmocka_unit_test(test_conv_parts),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
