/* Convolutions by the simulated cuDNN (tests/cuda/dnn.h). Forward pass and both gradients equal the CPU's, in
 * 16 bits, and in f32 if TF32 is allowed. Weft's own kernels compute strict f32, f64, and the cases that
 * cuDNN declines. Plans are kept. */
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

typedef struct problem {
    weft_dtype dtype;
    bool tf32, fast;
    int64_t x[4], w[4];
    weft_conv_options options;
} problem;

enum { VALUES = 4096 };

/* Computes y and both gradients, concatenated. Returns their number of elements. */
static int64_t compute(const char *device, const problem *p, float values[VALUES]) {
    weft_context *ctx;
    said[0] = 0;
    const weft_open_options options = {
        .device = device, .log = note, .tf32 = p->tf32, .allow_nondeterministic = p->fast};
    assert_int_equal(weft_open(&options, &ctx), WEFT_OK);
    weft_tensor *in[2] = {numbers(ctx, 4, p->x, 1), numbers(ctx, 4, p->w, 2)}, *out[3];
    weft_tensor *y = weft_cast(
        weft_conv2d(weft_cast(in[0], p->dtype), weft_cast(in[1], p->dtype), NULL, &p->options), WEFT_F32);
    weft_tensor *loss = weft_sum(weft_mul(y, numbers(ctx, 4, weft_shape(y), 9)), WEFT_ALL_AXES, false);
    out[0] = y;
    weft_status status = weft_gradient(loss, in, 2, out + 1);
    if (status == WEFT_OK) status = weft_eval(out, 3);
    int64_t at = 0;
    for (int i = 0; i < 3 && status == WEFT_OK; at += weft_numel(out[i++])) {
        assert_true(at + weft_numel(out[i]) <= VALUES);
        status = weft_read(out[i], values + at, (size_t)weft_numel(out[i]) * sizeof *values);
    }
    if (status != WEFT_OK) fail_msg("%s: %s", device, weft_last_error(ctx));
    weft_close(ctx);
    return at;
}

/* Compares with the CPU. Returns the number of cuDNN executions. */
static long check(const problem *p) {
    static float wanted[VALUES], got[VALUES];
    fake_cudnn_state *c = counts();
    const long before = c->executed;
    const float unit = p->dtype == WEFT_BF16 ? 0x1p-8F : p->dtype == WEFT_F16 ? 0x1p-11F : 0x1p-22F;
    const int64_t n = compute("cpu", p, wanted);
    float most = 0;
    assert_int_equal(compute("cuda", p, got), n);
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(wanted[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - wanted[i]) <= 2 * unit * most))
            fail_msg("element %lld: %g, not %g", (long long)i, (double)got[i], (double)wanted[i]);
    assert_int_equal(c->handles, 0);
    assert_int_equal(c->descriptors, 0);
    return c->executed - before;
}

static const problem strided = {WEFT_BF16,    false,
                                false,        {2, 4, 7, 6},
                                {6, 4, 3, 2}, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}}};

static void test_like_cpu(void **state) {
    (void)state;
    problem p = strided;
    if (without()) return skip();
    assert_int_equal(check(&p), 3);
    p.dtype = WEFT_F16;
    p.w[1] = 2, p.options.groups = 2;
    assert_int_equal(check(&p), 3);
}

/* All engines of the simulated cuDNN use tensor cores. */
static void test_strict(void **state) {
    (void)state;
    problem p = strided;
    if (without()) return skip();
    p.dtype = WEFT_F32;
    assert_int_equal(check(&p), 0);
    assert_non_null(strstr(said, "another precision or order"));
    assert_non_null(strstr(said, "gradient with respect to its weight"));
    p.tf32 = true;
    assert_int_equal(check(&p), 3);
    p.dtype = WEFT_F64;
    assert_int_equal(check(&p), 0);
}

static void test_declined(void **state) {
    (void)state;
    problem p = strided;
    if (without()) return skip();
    p.x[2] = 9;
    counts()->no_plan = 1;
    assert_int_equal(check(&p), 0);
    assert_non_null(strstr(said, "runs on Weft's own kernel, not cuDNN's"));
    counts()->no_plan = 0;
    counts()->unordered = 1;
    assert_int_equal(check(&p), 0);
    p.fast = true;
    assert_int_equal(check(&p), 3);
    p.fast = false;
    counts()->unordered = 0;
    counts()->no_handle = 1;
    assert_int_equal(check(&p), 0);
    counts()->no_handle = 0;
}

/* Groups of one and of two channels, which are not computed by a matmul. */
static void test_direct(void **state) {
    (void)state;
    problem p = strided;
    if (without()) return skip();
    p.dtype = WEFT_F64;
    p.w[0] = 8, p.w[1] = 1, p.options.groups = 4;
    assert_int_equal(check(&p), 0);
    p.w[1] = 2, p.options.groups = 2;
    assert_int_equal(check(&p), 0);
}

static void test_kept(void **state) {
    (void)state;
    problem p = strided;
    if (without()) return skip();
    p.x[3] = 8;
    fake_cudnn_state *c = counts();
    const long built = c->built, restored = c->restored;
    assert_int_equal(check(&p), 3);
    assert_int_equal(c->built - built, 3);
    assert_int_equal(check(&p), 3);
    assert_int_equal(c->built - built, 3);
    assert_int_equal(c->restored - restored, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_cpu), cmocka_unit_test(test_strict),
                                       cmocka_unit_test(test_declined), cmocka_unit_test(test_direct),
                                       cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, dnn_setup, scratch_teardown);
}
