/* Shared by the tests of composites, layers and optimizers: a context for each test, values, comparisons. */
#ifndef WEFT_TESTS_NN_HELP_H
#define WEFT_TESTS_NN_HELP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/nn.h>
#include <weft/optim.h>
#include "device.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SHAPE(...)                                                                                           \
    (int)COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }

static inline int setup(void **state) {
    weft_context *ctx = NULL;
    if (test_open(&(weft_open_options){.seed = 11}, &ctx) != WEFT_OK) {
        print_error("%s\n", weft_last_error(NULL));
        return -1;
    }
    *state = ctx;
    return 0;
}

static inline int teardown(void **state) {
    weft_close(*state);
    return 0;
}

/* Reproducible numbers between about -1.5 and 1.5, different for each salt, none of them near 0. */
static inline double value_at(int64_t i, int salt) {
    double v = 1.5 * sin(12.9898 * (double)(i + 1) + 78.233 * (double)(salt + 1));
    return fabs(v) < 0.02 ? 0.31 : v;
}

static inline void fill(double *out, int64_t n, int salt) {
    for (int64_t i = 0; i < n; i++) out[i] = value_at(i, salt);
}

/* n values as numbers of the dtype test_wide(ctx). The caller frees them. */
static inline void *wide_data(weft_context *ctx, const double *values, int64_t n) {
    double *wide = calloc((size_t)n + 1, sizeof *wide);
    if (test_has_f64(ctx)) return memcpy(wide, values, (size_t)n * sizeof *wide);
    float *narrow = (float *)(void *)wide;
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)values[i];
    return narrow;
}

static inline int64_t size_of(int rank, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    return n;
}

/* A tensor of the dtype test_wide(ctx) with these values. */
static inline weft_tensor *wide_from(weft_context *ctx, int rank, const int64_t *shape,
                                     const double *values) {
    void *data = wide_data(ctx, values, size_of(rank, shape));
    weft_tensor *t = weft_from(ctx, test_wide(ctx), rank, shape, data);
    free(data);
    return t;
}

/* A variable of the dtype test_wide(ctx) with these values. */
static inline weft_tensor *wide_variable(weft_context *ctx, int rank, const int64_t *shape,
                                         const double *values) {
    void *data = wide_data(ctx, values, size_of(rank, shape));
    weft_tensor *t = weft_variable_new(ctx, "test", test_wide(ctx), rank, shape, data);
    free(data);
    return t;
}

/* Writes the values to t, whose dtype is test_wide(ctx). */
static inline void wide_write(weft_tensor *t, const double *values) {
    void *data = wide_data(weft_context_of(t), values, weft_numel(t));
    assert_ok(weft_write(t, data, (size_t)weft_numel(t) * weft_dtype_size(weft_dtype_of(t))));
    free(data);
}

/* A variable of the dtype test_wide(ctx) with the values of value_at. */
static inline weft_tensor *variable(weft_context *ctx, int salt, int rank, const int64_t *shape) {
    int64_t n = size_of(rank, shape);
    double *data = calloc((size_t)n + 1, sizeof *data);
    fill(data, n, salt);
    weft_tensor *t = wide_variable(ctx, rank, shape, data);
    free(data);
    return t;
}

/* The float of that dtype at `at`. */
static inline double element_of(weft_dtype dtype, const char *at) {
    double f64;
    float f32;
    uint16_t half;
    switch (dtype) {
    case WEFT_F64: memcpy(&f64, at, sizeof f64); return f64;
    case WEFT_F32: memcpy(&f32, at, sizeof f32); return (double)f32;
    default: memcpy(&half, at, sizeof half);
    }
    return (double)(dtype == WEFT_F16 ? weft_f16_to_f32(half) : weft_bf16_to_f32(half));
}

/* The values of t, of any float dtype, as f64. They are converted on the host, since not every device has
 * f64. The caller frees them. */
static inline double *values_of(weft_tensor *t) {
    const int64_t n = weft_numel(t);
    const weft_dtype dtype = weft_dtype_of(t);
    const size_t size = weft_dtype_size(dtype);
    double *out = calloc((size_t)(n < 0 ? 0 : n) + 1, sizeof *out);
    if (n < 0 || !weft_dtype_is_float(dtype)) {
        print_error("%s\n",
                    weft_tensor_status(t) == WEFT_OK ? weft_dtype_name(dtype) : weft_last_error(NULL));
        fail();
    }
    char *data = calloc((size_t)n + 1, size);
    assert_ok(weft_read(t, data, (size_t)n * size));
    for (int64_t i = 0; i < n; i++) out[i] = element_of(dtype, data + (size_t)i * size);
    free(data);
    return out;
}

static inline void assert_close(const double *got, const double *wanted, int64_t n, double relative) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(wanted[i])) continue;
        if (got[i] == wanted[i]) continue;
        double error = fabs(got[i] - wanted[i]);
        if (!(error <= relative * fmax(1.0, fabs(wanted[i])))) {
            print_error("element %lld is %.17g, wanted %.17g\n", (long long)i, got[i], wanted[i]);
            fail();
        }
    }
}

static inline void assert_shape(const weft_tensor *t, int rank, const int64_t *shape) {
    if (weft_rank(t) != rank) {
        print_error("%s\n", weft_tensor_status(t) == WEFT_OK ? "" : weft_last_error(NULL));
        assert_int_equal(weft_rank(t), rank);
    }
    for (int i = 0; i < rank; i++) assert_int_equal(weft_dim(t, i), shape[i]);
}

/* Checks that t is poisoned with that status, and that the message contains both words. */
static inline void assert_poisoned(const weft_tensor *t, weft_status status, const char *word,
                                   const char *other) {
    assert_non_null(t);
    assert_int_equal(weft_tensor_status(t), status);
    const char *text = weft_last_error(NULL);
    if (!strstr(text, word) || (other && !strstr(text, other))) {
        print_error("'%s' does not name '%s' and '%s'\n", text, word, other ? other : "");
        fail();
    }
}

#endif
