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

/* A variable with the values of value_at. */
static inline weft_tensor *variable(weft_context *ctx, int salt, int rank, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    double *data = calloc((size_t)n + 1, sizeof *data);
    fill(data, n, salt);
    weft_tensor *t = weft_variable_new(ctx, "test", WEFT_F64, rank, shape, data);
    free(data);
    return t;
}

/* The values of t, of any float dtype, as f64. The caller frees them. */
static inline double *values_of(weft_tensor *t) {
    int64_t n = weft_numel(t);
    double *out = calloc((size_t)(n < 0 ? 0 : n) + 1, sizeof *out);
    if (n < 0) {
        print_error("%s\n", weft_tensor_status(t) == WEFT_OK ? "" : weft_last_error(NULL));
        fail();
    }
    weft_tensor *wide = weft_dtype_of(t) == WEFT_F64 ? t : weft_cast(t, WEFT_F64);
    assert_ok(weft_read(wide, out, (size_t)n * sizeof *out));
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
