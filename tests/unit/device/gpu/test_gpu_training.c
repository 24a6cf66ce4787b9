/* Training steps on a GPU device. Checks transfers, that nothing is allocated after the first steps, that
 * results equal the CPU's and are the same bits in two runs, and what happens when a step fails. */
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

#include "gpu.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { ROWS = 12, IN = 5, WIDTH = 7, CLASSES = 3, STEPS = 40 };

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *adam;
    weft_tensor *x, *y;
} net;

static weft_status make(net *n, const char *device) {
    float x[ROWS * IN];
    int32_t y[ROWS];
    *n = (net){0};
    WEFT_TRY(weft_open(&(weft_open_options){.device = device, .seed = 3}, &n->ctx));
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i * 37 % 19) / 10 - 1;
    for (int i = 0; i < ROWS; i++) y[i] = i * 5 % CLASSES;
    n->module = weft_nn_sequential(n->ctx, "net", weft_nn_linear(n->ctx, IN, WIDTH, NULL),
                                   weft_nn_activation(n->ctx, WEFT_TANH),
                                   weft_nn_linear(n->ctx, WIDTH, CLASSES, NULL), NULL);
    n->adam = weft_adam(n->module, &(weft_adam_options){.lr = 0.05});
    n->x = weft_keep(weft_from(n->ctx, WEFT_F32, SHAPE(ROWS, IN), x));
    n->y = weft_keep(weft_from(n->ctx, WEFT_I32, SHAPE(ROWS), y));
    WEFT_TRY(weft_tensor_status(n->x));
    return weft_tensor_status(n->y);
}

/* A step on the first `rows` rows. If loss is not NULL, reads the loss, which waits for the device. */
static weft_status step(net *n, int rows, float *loss) {
    weft_scope *scope = weft_scope_open(n->ctx);
    weft_tensor *x = rows == ROWS ? n->x : weft_slice(n->x, (int64_t[]){0, 0}, (int64_t[]){rows, IN}, NULL);
    weft_tensor *y = rows == ROWS ? n->y : weft_slice(n->y, (int64_t[]){0}, (int64_t[]){rows}, NULL);
    weft_tensor *l = weft_cross_entropy(weft_forward(n->module, x), y, NULL);
    weft_status status = weft_optimizer_step(n->adam, l);
    if (status == WEFT_OK && loss) status = weft_read(l, loss, sizeof *loss);
    weft_scope_close(scope);
    return status;
}

/* This test is first, while no other test has loaded a driver. */
static void test_cpu_opens_no_driver(void **state) {
    (void)state;
    net n;
    float loss;
    char line[1000];
    setenv("WEFT_MATMUL", "own", 1); /* oneDNN's build for Debian needs libOpenCL */
    assert_int_equal(make(&n, "cpu"), WEFT_OK);
    assert_int_equal(step(&n, ROWS, &loss), WEFT_OK);
    weft_device_description info;
    weft_device_describe(n.ctx, &info);
    assert_string_equal(info.name, "cpu");
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) return skip();
    while (fgets(line, sizeof line, maps))
        assert_true(!strstr(line, "libOpenCL") && !strstr(line, "libpocl") && !strstr(line, "libcuda"));
    fclose(maps);
    weft_close(n.ctx);
}

static void test_nothing_is_made_after_warm_up(void **state) {
    (void)state;
    net n;
    float loss, x[ROWS * IN] = {0};
    if (test_without_gpu()) return skip();
    assert_int_equal(make(&n, test_gpu()), WEFT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(step(&n, ROWS, NULL), WEFT_OK);
    const weft_device *d = n.ctx->device;
    const uint64_t uploads = d->uploads, downloads = d->downloads, submissions = d->submissions;
    const weft__gpu_hooks *h = &weft__gpu_hook;
    const int contexts = h->contexts, buffers = h->buffers, kernels = h->kernels, compiles = h->compiles;
    for (int i = 0; i < STEPS; i++) assert_int_equal(step(&n, ROWS, NULL), WEFT_OK);
    assert_int_equal(d->submissions - submissions,
                     STEPS); /* data stay there: one submission a step, Adam's numbers, nothing else */
    assert_int_equal(d->uploads - uploads, STEPS);
    assert_int_equal(d->downloads, downloads);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(weft_write(n.x, x, sizeof x), WEFT_OK); /* a new batch */
        assert_int_equal(step(&n, ROWS, NULL), WEFT_OK);
    }
    assert_int_equal(d->uploads - uploads, 3 * STEPS);
    assert_int_equal(d->downloads, downloads);
    assert_true(contexts == h->contexts && buffers == h->buffers && kernels == h->kernels &&
                compiles == h->compiles);
    assert_int_equal(step(&n, ROWS, &loss), WEFT_OK);
    assert_int_equal(d->downloads - downloads, 1);
    weft_close(n.ctx);
}

static void test_same_numbers(void **state) {
    (void)state;
    const char *const devices[3] = {"cpu", test_gpu(), test_gpu()};
    float loss[3][STEPS];
    if (test_without_gpu()) return skip();
    for (int d = 0; d < 3; d++) {
        net n;
        assert_int_equal(make(&n, devices[d]), WEFT_OK);
        for (int i = 0; i < STEPS; i++) assert_int_equal(step(&n, ROWS, &loss[d][i]), WEFT_OK);
        weft_close(n.ctx);
    }
    for (int i = 0; i < STEPS; i++) assert_true(fabsf(loss[0][i] - loss[1][i]) <= 2e-5f * fabsf(loss[0][i]));
    assert_memory_equal(loss[1], loss[2], sizeof loss[1]);
    assert_true(loss[1][STEPS - 1] < 0.8f * loss[1][0]);
}

/* With changing batch sizes, many steps need no more memory than a few. */
static void test_memory_stays(void **state) {
    (void)state;
    net n;
    if (test_without_gpu()) return skip();
    assert_int_equal(make(&n, test_gpu()), WEFT_OK);
    for (int i = 0; i < 100; i++) assert_int_equal(step(&n, 2 + i % 5, NULL), WEFT_OK);
    const uint64_t in_use = n.ctx->device->bytes_in_use;
    for (int i = 0; i < 1000; i++) assert_int_equal(step(&n, 2 + i % 5, NULL), WEFT_OK);
    assert_int_equal(n.ctx->device->bytes_in_use, in_use);
    weft_close(n.ctx);
}

/* An index out of range: the step returns, the variables are not updated, and the next call that waits
 * reports the error. */
static void test_fault_in_a_step(void **state) {
    (void)state;
    net n;
    float loss;
    weft_parameter_info weight;
    int32_t bad[ROWS] = {0}, good[ROWS];
    if (test_without_gpu()) return skip();
    assert_int_equal(make(&n, test_gpu()), WEFT_OK);
    assert_int_equal(weft_read(n.y, good, sizeof good), WEFT_OK);
    assert_int_equal(step(&n, ROWS, &loss), WEFT_OK);
    assert_true(weft_parameter_find(n.module, "0.weight", &weight));
    float values[2][IN * WIDTH];
    assert_int_equal(weft_read(weight.tensor, values[0], sizeof values[0]), WEFT_OK);
    bad[4] = CLASSES;
    assert_int_equal(weft_write(n.y, bad, sizeof bad), WEFT_OK);
    assert_int_equal(step(&n, ROWS, NULL), WEFT_OK);
    assert_int_equal(weft_synchronize(n.ctx), WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(n.ctx), "3 is not in 0..2"));
    assert_int_equal(weft_read(weight.tensor, values[1], sizeof values[1]), WEFT_OK);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_int_equal(weft_write(n.y, good, sizeof good), WEFT_OK);
    assert_int_equal(step(&n, ROWS, &loss), WEFT_OK);
    weft_close(n.ctx);
}

/* Each buffer of the first step in turn cannot be allocated. The next attempt works. */
static void test_each_allocation_fails(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    for (int k = 1;; k++) {
        net n;
        float loss;
        weft__gpu_hook.fail_allocation = k;
        const weft_status made = make(&n, test_gpu());
        const weft_status status = made == WEFT_OK ? step(&n, ROWS, &loss) : made;
        const bool reached = weft__gpu_hook.fail_allocation == 0;
        weft__gpu_hook.fail_allocation = 0;
        assert_int_equal(status, reached ? WEFT_ERR_OOM : WEFT_OK);
        float x[ROWS * IN]; /* the context still works; a module without its parameters stays unusable */
        if (made == WEFT_OK) assert_int_equal(weft_read(weft_add(n.x, n.x), x, sizeof x), WEFT_OK);
        weft_close(n.ctx);
        if (!reached) break;
    }
}

static void test_device_is_lost_in_a_step(void **state) {
    (void)state;
    net n;
    float loss;
    if (test_without_gpu()) return skip();
    assert_int_equal(make(&n, test_gpu()), WEFT_OK);
    assert_int_equal(step(&n, ROWS, &loss), WEFT_OK);
    weft__gpu_hook.lose_device = 2;
    assert_int_equal(step(&n, ROWS, &loss), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(n.ctx), "the device is lost"));
    weft_close(n.ctx); /* and nothing hangs */
    weft__gpu_hook.lose_device = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_opens_no_driver),
        cmocka_unit_test(test_nothing_is_made_after_warm_up),
        cmocka_unit_test(test_same_numbers),
        cmocka_unit_test(test_memory_stays),
        cmocka_unit_test(test_fault_in_a_step),
        cmocka_unit_test(test_each_allocation_fails),
        cmocka_unit_test(test_device_is_lost_in_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
