/* src/device/gpu/backend/tune.c on the first OpenCL device. Measured choices are reused and kept on disk,
 * within limits, and do not change results. Nothing is measured unless it was requested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <weft/weft.h>
#include "opencl.h"

enum { N = 224 }; /* more than WORTH multiplications */

static char folder[] = "/tmp/weft_test_tune_XXXXXX";

static int setup(void **state) {
    *state = NULL;
    if (test_without_opencl()) return 0;
    weft__opencl_hook.items = 64; /* matmuls for processors have one variant */
    *state = folder;
    return mkdtemp(folder) && setenv("WEFT_KERNEL_CACHE", folder, 1) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return *state ? system(command) : 0;
}

typedef struct outcome {
    int choices, kernels; /* number of compiled kernels */
    double seconds;       /* the tuner's time for the last program */
    char chosen[32];
    float values[N * N];
} outcome;

/* A matmul of N x N matrices, and another one of nearly that size. */
static void run(const char *tune, outcome *to) {
    weft_context *ctx;
    const int64_t shape[] = {N, N};
    float *x = malloc(sizeof to->values);
    for (int i = 0; i < N * N; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    assert_int_equal(setenv("WEFT_TUNE", tune, 1), 0);
    const int before = weft__gpu_hook.kernels;
    assert_int_equal(weft_open(&(weft_open_options){.device = "opencl"}, &ctx), WEFT_OK);
    weft_tensor *a = weft_from(ctx, WEFT_F32, 2, shape, x);
    weft_tensor *part = weft_slice(a, (int64_t[]){0, 0}, (int64_t[]){N - 5, N}, NULL);
    weft_tensor *out[] = {weft_matmul(a, weft_transpose(a, 0, 1)),
                          weft_matmul(part, weft_transpose(a, 0, 1))};
    assert_int_equal(weft_eval(out, 2), WEFT_OK);
    assert_int_equal(weft_read(out[0], to->values, sizeof to->values), WEFT_OK);
    const weft__opencl *d = weft__opencl_of(ctx->device);
    to->choices = ctx->device->n_choices;
    to->kernels = weft__gpu_hook.kernels - before;
    to->seconds = d->gpu.tuner.seconds;
    memset(to->chosen, 0, sizeof to->chosen);
    if (to->choices) memcpy(to->chosen, ctx->device->choices[0].chosen, sizeof to->chosen);
    weft_close(ctx);
    free(x);
}

static void test_kept(void **state) {
    static outcome off, first, second;
    if (!*state) skip();
    run("off", &off);
    run("on", &first);
    run("on", &second);
    assert_int_equal(off.choices, 0);
    assert_int_equal(first.choices, 1); /* both in one size class */
    assert_true(first.seconds > 0 && first.kernels > off.kernels);
    assert_int_equal(second.choices, 1);
    assert_string_equal(second.chosen, first.chosen);
    assert_true(second.seconds == 0 && second.kernels == off.kernels); /* read, not measured */
    assert_memory_equal(off.values, first.values, sizeof off.values);
    assert_memory_equal(off.values, second.values, sizeof off.values);
}

static void test_nothing_on_disk(void **state) {
    static outcome first, second;
    if (!*state) skip();
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
    run("on", &first);
    run("on", &second);
    assert_true(first.seconds > 0 && second.seconds > 0);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
}

/* Limits: the time of one program; small matmuls are not measured. By default, a GPU measures and a processor
 * does not. */
static void test_limits(void **state) {
    weft_context *ctx;
    weft_tuner tuner;
    if (!*state) skip();
    assert_int_equal(setenv("WEFT_TUNE", "on", 1), 0);
    assert_int_equal(weft_open(&(weft_open_options){.device = "opencl"}, &ctx), WEFT_OK);
    weft_tuner *own = &weft__gpu_of(ctx->device)->tuner;
    weft_tuner_question q = {.key = {1, 2}, .usual = 1, .variants = 3};
    assert_true(weft__tuner_asks(own, 1e9));
    assert_false(weft__tuner_asks(own, 1e3));
    assert_false(weft__tuner_asks(NULL, 1e9));
    own->seconds = 2;
    assert_int_equal(weft__tuner_choose(own, &q), 1);
    assert_int_equal(ctx->device->n_choices, 0);
    weft__tuner_begin(own);
    assert_true(own->seconds == 0);
    assert_int_equal(unsetenv("WEFT_TUNE"), 0);
    weft__tuner_open(&tuner, ctx->device, "a card", true);
    assert_true(weft__tuner_asks(&tuner, 1e9));
    weft__tuner_open(&tuner, ctx->device, "a processor", false);
    assert_false(weft__tuner_asks(&tuner, 1e9));
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept), cmocka_unit_test(test_nothing_on_disk),
                                       cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
