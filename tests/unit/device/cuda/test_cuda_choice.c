/* The choice among cuDNN's engines, with the simulated cuDNN (tests/cuda/dnn.h), whose engines differ in
 * speed, and may fail. The fastest engine that repeats its bits is chosen once, and kept: on disk, and in the
 * folder of a run. Nothing is timed where the choice could not be kept. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/weft.h>

#include "cuda_dnn.h"
#include "device/cuda/cuda.h"
#include "graph/graph.h"

/* Both problems have more than 8 million multiplications, so a choice is worth its time. */
enum { ATTENTION, CONVOLUTION, KINDS };
enum { VALUES = 32 * 30 * 96 };

static weft_tensor *operation(weft_context *ctx, int kind, int64_t extent) {
    if (kind == ATTENTION) {
        const int64_t shape[] = {1, 1, 256, extent};
        return weft_attention(weft_cast(numbers(ctx, 4, shape, 1), WEFT_BF16),
                              weft_cast(numbers(ctx, 4, shape, 2), WEFT_BF16),
                              weft_cast(numbers(ctx, 4, shape, 3), WEFT_BF16), NULL);
    }
    const int64_t x[] = {1, 32, 30, extent - 32}, w[] = {32, 32, 3, 3};
    return weft_conv2d(weft_cast(numbers(ctx, 4, x, 1), WEFT_BF16),
                       weft_cast(numbers(ctx, 4, w, 2), WEFT_BF16), NULL,
                       &(weft_conv_options){.padding = {1, 1}});
}

/* A run of a fresh context. Returns how often cuDNN executed a plan. Each test has another extent, at
 * least 64. */
static long run_given(int kind, int64_t extent, const weft_tile_choice *given, weft_tile_choice *choice,
                      float values[VALUES]) {
    weft_context *ctx;
    fake_cudnn_state *c = counts();
    const long before = c->executed;
    said[0] = 0;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .log = note}, &ctx), WEFT_OK);
    ctx->device->given = given;
    ctx->device->n_given = given != NULL;
    weft_tensor *y = weft_cast(operation(ctx, kind, extent), WEFT_F32);
    assert_true(weft_numel(y) <= VALUES);
    if (weft_read(y, values, (size_t)weft_numel(y) * sizeof *values) != WEFT_OK)
        fail_msg("%s", weft_last_error(ctx));
    if (choice && ctx->device->n_choices) *choice = ctx->device->choices[0];
    weft_close(ctx);
    assert_int_equal(c->handles, 0);
    assert_int_equal(c->descriptors, 0);
    return c->executed - before;
}

static long run(int kind, int64_t extent) {
    static float values[VALUES];
    return run_given(kind, extent, NULL, NULL, values);
}

static void set_engines(long engines, long fast) {
    fake_cudnn_state *c = counts();
    c->engines = engines, c->fast = fast;
    c->failing = c->greedy = c->random = c->unordered = 0;
}

/* The second engine that builds is the fastest. A later process takes its plan from disk. */
static void test_fastest(void **state) {
    static float first[VALUES], second[VALUES];
    weft_tile_choice choice = {.gain = 0};
    (void)state;
    if (without()) return skip();
    fake_cudnn_state *c = counts();
    for (int kind = 0; kind < KINDS; kind++) {
        set_engines(4, 2);
        const long built = c->built, restored = c->restored;
        assert_true(run_given(kind, 64, NULL, &choice, first) > 3 * 2); /* all were executed */
        assert_int_equal(c->last, 2);
        assert_int_equal(c->built, built + 3);
        assert_string_equal(choice.chosen, "cuDNN 2 of 3");
        assert_true(choice.gain > 1.5);
        c->fast = 3; /* too late */
        assert_int_equal(run_given(kind, 64, NULL, &choice, second), 1);
        assert_int_equal(c->last, 2);
        assert_int_equal(c->built, built + 3);
        assert_int_equal(c->restored, restored + 1);
        assert_string_equal(choice.chosen, "cuDNN 2 of 3");
        assert_memory_equal(first, second, sizeof first);
    }
}

/* Engines that fail, need too much memory or add in any order are passed over. */
static void test_refusing(void **state) {
    (void)state;
    if (without()) return skip();
    fake_cudnn_state *c = counts();
    for (int kind = 0; kind < KINDS; kind++) {
        set_engines(4, 1);
        c->failing = 1;
        run(kind, 72);
        assert_int_not_equal(c->last, 1); /* the others are equally fast */
        set_engines(4, 2);
        c->greedy = 2;
        run(kind, 80);
        assert_int_not_equal(c->last, 2);
        set_engines(4, 3);
        c->random = 3;
        run(kind, 88);
        assert_int_not_equal(c->last, 3);
        set_engines(2, 0); /* only one engine builds, and it fails: Weft's own kernel */
        c->failing = 1;
        assert_int_equal(run(kind, 96), 0);
        assert_non_null(strstr(said, "an engine that does not run"));
    }
}

/* The first engine is taken, without timing, if that is asked for, and if the choice could not be kept. */
static void test_first(void **state) {
    (void)state;
    if (without()) return skip();
    char folder[400];
    snprintf(folder, sizeof folder, "%s", getenv("WEFT_KERNEL_CACHE"));
    set_engines(4, 2);
    for (int kind = 0; kind < KINDS; kind++) {
        assert_int_equal(setenv("WEFT_TUNE", "off", 1), 0);
        assert_int_equal(run(kind, 104), 1);
        assert_int_equal(counts()->last, 1);
        assert_int_equal(unsetenv("WEFT_TUNE"), 0);
        assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
        assert_int_equal(run(kind, 112), 1);
        assert_int_equal(counts()->last, 1);
        assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
    }
}

/* A choice from the folder of a run counts, even if the disk has no plan. Anybody may have written it: an
 * engine that is not there is chosen anew. */
static void test_given(void **state) {
    static float values[VALUES];
    weft_tile_choice choice = {.gain = 0};
    (void)state;
    if (without()) return skip();
    char folder[400];
    snprintf(folder, sizeof folder, "%s", getenv("WEFT_KERNEL_CACHE"));
    fake_cudnn_state *c = counts();
    set_engines(4, 3);
    run_given(ATTENTION, 120, NULL, &choice, values);
    assert_int_equal(c->last, 3);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
    c->fast = 1;
    assert_int_equal(run_given(ATTENTION, 120, &choice, NULL, values), 1);
    assert_int_equal(c->last, 3);
    choice.kept[0] = 99; /* the number of the engine */
    assert_int_equal(run_given(ATTENTION, 120, &choice, NULL, values), 1);
    assert_int_equal(c->last, 1);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
}

int main(void) {
    weft__cuda_hook.dnn_seconds = 1000; /* the simulated engines are slow */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fastest), cmocka_unit_test(test_refusing),
                                       cmocka_unit_test(test_first), cmocka_unit_test(test_given)};
    return cmocka_run_group_tests(tests, dnn_setup, scratch_teardown);
}
