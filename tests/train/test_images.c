/* Image networks against PyTorch: ten training steps of a cnn and a resnet from the same weights and
 * batches must give the losses, and for the resnet the running statistics, that make_images.py recorded
 * (images.inc): in f32 to 1e-5, in f64 to 1e-10. Other tests check parameter counts and what is refused. */
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
#include "images.inc"

enum { STEPS = 10, BATCH = 6, SIDE = 8, CLASSES = 4, MOST = 8192 };
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Writes numbers around `base` to a variable, or makes a tensor of them if `to` is NULL. */
static weft_tensor *pattern(weft_context *ctx, weft_tensor *to, int by, double base, double scale, int64_t n,
                            const int64_t *shape, weft_dtype dtype) {
    static double wide[MOST];
    static float narrow[MOST];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) {
        wide[i] = base + (double)((i * 7919 + (int64_t)by * 104729) % 1009 - 504) / 504 * scale;
        narrow[i] = (float)wide[i];
        wide[i] = (double)narrow[i]; /* f64 starts from the same numbers */
    }
    void *data = dtype == WEFT_F32 ? (void *)narrow : (void *)wide;
    if (!to) return weft_from(ctx, dtype, 4, shape, data);
    assert_ok(weft_write(to, data, (size_t)n * weft_dtype_size(dtype)));
    return to;
}

static void set_weights(weft_module *net, weft_dtype dtype) {
    weft_parameter_info info;
    int number = 0;
    for (size_t i = 0; weft_parameter_get(net, i, &info); i++) {
        if (info.buffer) continue;
        const bool matrix = weft_rank(info.tensor) > 1;
        const double inputs = matrix ? (double)(weft_numel(info.tensor) / weft_dim(info.tensor, 0)) : 1;
        pattern(NULL, info.tensor, number++, matrix ? 0 : 0.5, matrix ? sqrt(3 / inputs) : 0.25,
                weft_numel(info.tensor), NULL, dtype);
    }
}

static void assert_near(const char *what, size_t i, double got, double want, double allowed) {
    if (!(fabs(got - want) <= allowed * fmax(1, fabs(want))))
        fail_msg("%s %zu is %.9g, PyTorch has %.9g", what, i, got, want);
}

static void train(weft_module *net, weft_optimizer *opt, weft_dtype dtype, const double *losses) {
    weft_context *ctx = weft_module_context(net);
    const double allowed = dtype == WEFT_F64 ? 1e-10 : 1e-5;
    set_weights(net, dtype);
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        int32_t classes[BATCH];
        for (int b = 0; b < BATCH; b++) classes[b] = (b * 3 + step) % CLASSES;
        weft_tensor *x = pattern(ctx, NULL, 50 + step, 0, 1, BATCH * 3 * SIDE * SIDE,
                                 (int64_t[]){BATCH, 3, SIDE, SIDE}, dtype);
        weft_tensor *y = weft_from(ctx, WEFT_I32, 1, (int64_t[]){BATCH}, classes);
        if (step % 2)
            x = weft_reshape(x, 2, (int64_t[]){BATCH, 3 * SIDE * SIDE}); /* flat rows are accepted too */
        weft_tensor *loss = weft_cross_entropy(weft_forward(net, x), y, NULL);
        assert_ok(weft_optimizer_step(opt, loss));
        assert_near("loss of step", (size_t)step, weft_item(loss), losses[step], allowed);
        weft_scope_close(scope);
    }
}

static weft_context *open_context(void) {
    weft_context *ctx = NULL;
    assert_ok(test_open(NULL, &ctx));
    return ctx;
}

static void train_cnn(weft_dtype dtype, const double *losses) {
    weft_context *ctx = open_context();
    const int64_t filters[] = {4, 6};
    weft_module *net = weft_nn_cnn(ctx, &(weft_cnn_options){.channels = 3,
                                                            .rows = SIDE,
                                                            .columns = SIDE,
                                                            .classes = CLASSES,
                                                            .filters = filters,
                                                            .filter_count = 2,
                                                            .hidden = 10,
                                                            .dtype = dtype});
    train(net, weft_adam(net, &(weft_adam_options){.lr = 1e-2}), dtype, losses);
    weft_close(ctx);
}

static void train_resnet(weft_dtype dtype, const double *losses, const double *mean, const double *var) {
    weft_context *ctx = open_context();
    weft_module *net = weft_nn_resnet(ctx, &(weft_resnet_options){.channels = 3,
                                                                  .rows = SIDE,
                                                                  .columns = SIDE,
                                                                  .classes = CLASSES,
                                                                  .depth = 8,
                                                                  .width = 4,
                                                                  .dtype = dtype});
    train(net, weft_sgd(net, &(weft_sgd_options){.lr = 0.05, .momentum = 0.9}), dtype, losses);
    weft_parameter_info running[2];
    assert_true(weft_parameter_find(net, "bn1.running_mean", &running[0]));
    assert_true(weft_parameter_find(net, "bn1.running_var", &running[1]));
    for (int k = 0; k < 2; k++) {
        double values[4];
        assert_ok(weft_read(weft_cast(running[k].tensor, WEFT_F64), values, sizeof values));
        for (size_t i = 0; i < 4; i++)
            assert_near(running[k].name, i, values[i], (k ? var : mean)[i], dtype == WEFT_F64 ? 1e-10 : 1e-5);
    }
    weft_close(ctx);
}

static void test_cnn(void **state) {
    (void)state;
    train_cnn(WEFT_F32, cnn_f32);
    train_cnn(WEFT_F64, cnn_f64);
}

static void test_resnet(void **state) {
    (void)state;
    train_resnet(WEFT_F32, resnet_f32, mean_f32, var_f32);
    train_resnet(WEFT_F64, resnet_f64, mean_f64, var_f64);
}

/* Depth 20 has 0.27 million parameters, as in table 6 of the paper. */
static void test_sizes(void **state) {
    (void)state;
    weft_context *ctx = open_context();
    weft_resnet_options o = {.channels = 3, .rows = 32, .columns = 32, .classes = 10};
    assert_int_equal(weft_parameter_elements(weft_nn_resnet(ctx, &o), false), 269722);
    o.depth = 9;
    assert_int_equal(weft_module_status(weft_nn_resnet(ctx, &o)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_status(weft_nn_resnet(ctx, NULL)), WEFT_ERR_ARGUMENT);
    weft_cnn_options c = {.channels = 1, .rows = 28, .columns = 28, .classes = 10};
    weft_module *net = weft_nn_cnn(ctx, &c);
    assert_int_equal(weft_parameter_elements(net, false), 320 + 18496 + 3136 * 128 + 128 + 1290);
    weft_tensor *x = weft_full(ctx, WEFT_F32, 2, (int64_t[]){2, 100}, 0);
    assert_int_equal(weft_tensor_status(weft_forward(net, x)), WEFT_ERR_SHAPE);
    assert_int_not_equal(weft_tensor_status(weft_forward(net, weft_full(ctx, WEFT_F32, 0, NULL, 0))),
                         WEFT_OK);
    c.rows = 3;
    assert_int_equal(weft_module_status(weft_nn_cnn(ctx, &c)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_status(weft_nn_cnn(ctx, NULL)), WEFT_ERR_ARGUMENT);
    assert_int_not_equal(weft_module_status(weft_nn_resnet(NULL, &o)), WEFT_OK);
    weft_close(ctx);
}

static void test_autoencoder(void **state) {
    (void)state;
    weft_context *ctx = open_context();
    const int64_t sizes[] = {12, 8, 3}, shape[] = {2, 3, 4};
    weft_module *net = weft_nn_autoencoder(ctx, sizes, 3, &(weft_mlp_options){.activation = WEFT_TANH});
    weft_parameter_info info;
    assert_true(weft_parameter_find(net, "decoder.2.weight", &info));
    assert_int_equal(weft_dim(info.tensor, 0), 12);
    weft_tensor *y = weft_forward(net, weft_full(ctx, WEFT_F32, 3, shape, 0));
    assert_int_equal(weft_rank(y), 3);
    assert_int_equal(weft_dim(y, 2), 4);
    assert_ok(weft_eval(&y, 1));
    assert_int_not_equal(weft_tensor_status(weft_forward(net, weft_full(ctx, WEFT_F32, 0, NULL, 0))),
                         WEFT_OK);
    assert_int_equal(weft_module_status(weft_nn_autoencoder(ctx, sizes, 1, NULL)), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_resnet),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_autoencoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
