/* Opens the contexts of a test on the CPU, or on the device that $WEFT_TEST_DEVICE names. tests.cmake runs
 * some tests a second time that way, and then each program runs twice (twice.h). If the device is absent, the
 * test is skipped.
 *
 * Buffers on OpenCL have guard bytes around them. They must be unchanged when the test ends. If
 * $WEFT_TEST_ITEMS is set, a CPU gets all kernels of cards, for work-groups of that many work-items. */
#ifndef WEFT_TESTS_DEVICE_H
#define WEFT_TESTS_DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "device/gpu/backend/hooks.h"
#include "device/opencl/hooks.h"
#include "twice.h"

enum { TEST_SKIPPED = 77, TEST_GUARD = 256 };

/* A failing cmocka test prints the library's last error. */
#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        weft_status status_ = (call);                                                                        \
        if (status_ != WEFT_OK) print_error("%s\n", weft_last_error(NULL));                                  \
        assert_int_equal(status_, WEFT_OK);                                                                  \
    } while (0)

static inline const char *test_device(void) {
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named && *named ? named : "cpu";
}

static inline bool test_on_cpu(void) { return strcmp(test_device(), "cpu") == 0; }

static inline void test_look_at_guards(void) {
    if (weft__gpu_hook.guards_broken == 0) return;
    fprintf(stderr, "%d kernels or transfers wrote beyond the ends of a buffer\n",
            (int)weft__gpu_hook.guards_broken);
    _exit(1);
}

/* Call this before the first context is opened. */
static inline void test_guard_buffers(void) {
    const char *items = getenv("WEFT_TEST_ITEMS");
    if (weft__gpu_hook.guard) return;
    weft__gpu_hook.guard = TEST_GUARD;
    if (items) weft__opencl_hook.items = (int)strtol(items, NULL, 10);
    atexit(test_look_at_guards);
}

/* Does the device of ctx have f64? */
static inline bool test_has_f64(weft_context *ctx) {
    return weft_tensor_status(weft_full(ctx, WEFT_F64, 0, NULL, 0)) == WEFT_OK;
}

/* The widest float dtype of the device of ctx: f64, or f32 on a device without f64. */
static inline weft_dtype test_wide(weft_context *ctx) { return test_has_f64(ctx) ? WEFT_F64 : WEFT_F32; }

/* Allowed error of a result in test_wide(ctx): f64 if the dtype is f64, else f32. */
static inline double test_within(weft_context *ctx, double f64, double f32) {
    return test_has_f64(ctx) ? f64 : f32;
}

/* weft_open on the device of the test. Options that name a device keep it. */
static inline weft_status test_open(const weft_open_options *options, weft_context **ctx) {
    weft_open_options chosen = options ? *options : (weft_open_options){0};
    if (!chosen.device) chosen.device = test_device();
    test_guard_buffers();
    weft_status status = weft_open(&chosen, ctx);
    if (status == WEFT_ERR_DEVICE && strcmp(chosen.device, test_device()) == 0 && !test_on_cpu()) {
        printf("skipped, no device %s: %s\n", chosen.device, weft_last_error(NULL));
        exit(TEST_SKIPPED);
    }
    if (status == WEFT_OK) test_run_twice(*ctx);
    return status;
}

#endif
