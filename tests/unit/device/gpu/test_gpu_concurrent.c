/* Concurrent launches on CUDA (src/device/gpu/backend/fused_launch.c). Steps of a net whose launches have
 * several groups give the same bits whether the launches of a phase are merged into one launch or not. A
 * fault in one of them leaves the variables unchanged. Launches that use the scratch memory do not run at the
 * same time. Skipped unless $WEFT_TEST_GPU is cuda. */
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
enum {
    ROWS = 130,
    IN = 20,
    HIDDEN = 200,
    CLASSES = 5,
    STEPS = 4,
    VALUES = HIDDEN * (IN + 1) + CLASSES * (HIDDEN + 1)
};

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *adam;
    int32_t y[ROWS];
    float x[ROWS * IN], values[VALUES];
    int kernels;
} net;

static void make(net *n, bool beside) {
    memset(n, 0, sizeof *n);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .seed = 5}, &n->ctx), WEFT_OK);
    weft__gpu_of(n->ctx->device)->target.units = 64;
    for (int i = 0; i < ROWS * IN; i++) n->x[i] = (float)(i * 37 % 19) / 10 - 1;
    for (int i = 0; i < ROWS; i++) n->y[i] = i * 3 % CLASSES;
    n->module = weft_nn_mlp(n->ctx, (int64_t[]){IN, HIDDEN, CLASSES}, 3, NULL);
    n->adam = weft_adam(n->module, &(weft_adam_options){.lr = 0.01});
    weft__gpu_hook.fuse_after = beside ? 1 : INT32_MAX;
    n->kernels = weft__gpu_hook.kernels;
}

static weft_status step(net *n, float *loss) {
    weft_scope *scope = weft_scope_open(n->ctx);
    weft_tensor *x = weft_from(n->ctx, WEFT_F32, SHAPE(ROWS, IN), n->x);
    weft_tensor *y = weft_from(n->ctx, WEFT_I32, SHAPE(ROWS), n->y);
    weft_tensor *l = weft_cross_entropy(weft_forward(n->module, x), y, NULL);
    weft_status status = weft_optimizer_step(n->adam, l);
    if (status == WEFT_OK) status = weft_read(l, loss, sizeof *loss);
    weft_scope_close(scope);
    return status;
}

/* Reads all parameters. Returns the number of floats. */
static int read_values(net *n) {
    int used = 0;
    for (size_t i = 0; i < weft_parameter_count(n->module); i++) {
        weft_parameter_info info;
        assert_true(weft_parameter_get(n->module, i, &info));
        const int count = (int)weft_numel(info.tensor);
        assert_true(used + count <= VALUES);
        assert_int_equal(weft_read(info.tensor, n->values + used, (size_t)count * sizeof(float)), WEFT_OK);
        used += count;
    }
    return used;
}

static int close_net(net *n) {
    weft_close(n->ctx);
    weft__gpu_hook.fuse_after = 0;
    assert_int_equal(weft__gpu_hook.unfused, 0);
    return weft__gpu_hook.kernels - n->kernels;
}

static void test_same_bits(void **state) {
    static net apart, beside;
    float losses[2][STEPS];
    (void)state;
    if (!test_on_cuda() || test_without_gpu()) return skip();
    make(&apart, false);
    for (int i = 0; i < STEPS; i++) assert_int_equal(step(&apart, &losses[0][i]), WEFT_OK);
    assert_int_equal(read_values(&apart), VALUES);
    const int plain = close_net(&apart);
    make(&beside, true);
    for (int i = 0; i < STEPS; i++) assert_int_equal(step(&beside, &losses[1][i]), WEFT_OK);
    read_values(&beside);
    const int both = close_net(&beside);
    print_message("%d launches, %d side by side\n", plain, both - plain);
    assert_true(plain < both && 4 * (both - plain) <= 3 * plain);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_memory_equal(apart.values, beside.values, sizeof apart.values);
}

static void test_fault(void **state) {
    static net n;
    float loss, before[VALUES];
    (void)state;
    if (!test_on_cuda() || test_without_gpu()) return skip();
    make(&n, true);
    assert_int_equal(step(&n, &loss), WEFT_OK);
    read_values(&n);
    memcpy(before, n.values, sizeof before);
    n.y[7] = CLASSES;
    assert_true(step(&n, &loss) != WEFT_OK);
    read_values(&n);
    assert_memory_equal(before, n.values, sizeof before);
    n.y[7] = 0;
    assert_int_equal(step(&n, &loss), WEFT_OK);
    close_net(&n);
}

/* Two matmuls with parts of k, which do not depend on each other. From the third run on they are a graph. */
static void test_scratch(void **state) {
    enum { K = 4096, SIDE = 16, RUNS = 4 };
    static float x[SIDE * K], got[SIDE * SIDE];
    weft_context *ctx;
    (void)state;
    if (!test_on_cuda() || test_without_gpu()) return skip();
    setenv("WEFT_MATMUL", "own", 1);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    weft__gpu_of(ctx->device)->target.units = 64;
    for (int i = 0; i < SIDE * K; i++) x[i] = (float)(i * 7 % 5);
    for (int run = 0; run < RUNS; run++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *a = weft_from(ctx, WEFT_F32, SHAPE(SIDE, K), x), *list[2];
        weft_tensor *b = weft_from(ctx, WEFT_F32, SHAPE(SIDE, K), x);
        list[0] = weft_matmul(a, weft_transpose(a, 0, 1));
        list[1] = weft_matmul(b, weft_transpose(b, 0, 1));
        assert_int_equal(weft_eval(list, 2), WEFT_OK);
        for (int k = 0; k < 2; k++) {
            double sum = 0;
            assert_int_equal(weft_read(list[k], got, sizeof got), WEFT_OK);
            for (int i = 0; i < K; i++) sum += (double)(x[i] * x[K + i]);
            assert_true((double)got[1] == sum);
        }
        weft_scope_close(scope);
    }
    assert_true(ctx->device->workspace > 0);
    weft_close(ctx);
    unsetenv("WEFT_MATMUL");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_fault),
                                       cmocka_unit_test(test_scratch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
