/* Batch norm as a layer against PyTorch's (batchnorm.inc, written by make_batchnorm.py): results,
 * gradients, running statistics after three passes, evaluation. Other tests train, save, copy and refuse. */
#include "unit/nn_help.h"
#include "unit/parity/batchnorm.inc"

static weft_tensor *pattern(weft_context *ctx, int by, float mean, int rank, const int64_t *shape) {
    float data[256];
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    assert_true(n <= (int64_t)COUNT(data));
    for (int64_t i = 0; i < n; i++) data[i] = (float)((i * by + 3) % 17 - 8) / 8 + mean;
    return weft_variable_new(ctx, "v", WEFT_F32, rank, shape, data);
}

static void assert_near(weft_tensor *t, const float *want, size_t n) {
    float got[256];
    assert_int_equal(weft_numel(t), n);
    assert_ok(weft_read(t, got, n * sizeof *got));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("element %zu of %zu is %.9g, PyTorch has %.9g", i, n, (double)got[i], (double)want[i]);
}

static void set(weft_module *m, const char *name, int by) {
    weft_tensor *t = weft_parameter(m, name),
                *from = pattern(weft_context_of(t), by, 0, weft_rank(t), weft_shape(t));
    assert_ok(weft_assign(&t, &from, 1));
}

typedef struct expected {
    const float *y, *x, *w, *b, *mean, *var, *eval;
} expected;
#define EXPECTED(name)                                                                                       \
    &(expected) { name##_y, name##_x, name##_w, name##_b, name##_mean, name##_var, name##_eval }

static void check(weft_context *ctx, const weft_batchnorm_options *options, float mean, int rank,
                  const int64_t *shape, const expected *want) {
    const size_t c = (size_t)shape[1];
    weft_module *m = weft_nn_batch_norm(ctx, shape[1], options);
    set(m, "weight", 5);
    set(m, "bias", 3);
    weft_tensor *x = NULL, *grads[3];
    for (int pass = 0; pass < 3; pass++) {
        x = pattern(ctx, 5 + 2 * pass, mean, rank, shape);
        weft_tensor *y = weft_forward(m, x),
                    *in[3] = {x, weft_parameter(m, "weight"), weft_parameter(m, "bias")};
        weft_tensor *loss = weft_sum(weft_mul(y, pattern(ctx, 11, 0, rank, shape)), WEFT_ALL_AXES, false);
        assert_ok(weft_gradient(loss, in, 3, grads));
        assert_ok(weft_eval((weft_tensor *[]){y, grads[0], grads[1], grads[2]}, 4));
        if (pass < 2) continue;
        const size_t n = (size_t)weft_numel(x);
        assert_near(y, want->y, n);
        assert_near(grads[0], want->x, n);
        assert_near(grads[1], want->w, c);
        assert_near(grads[2], want->b, c);
        weft_module_set_training(m, false);
        for (int again = 0; again < 2; again++) assert_near(weft_forward(m, x), want->eval, n);
    }
    assert_near(weft_parameter(m, "running_mean"), want->mean, c);
    assert_near(weft_parameter(m, "running_var"), want->var, c);
}

static void test_pytorch(void **state) {
    weft_context *ctx = *state;
    check(ctx, NULL, 0, SHAPE(2, 3, 4, 5), EXPECTED(images));
    check(ctx, &(weft_batchnorm_options){.eps = 1e-3, .momentum = 0.3}, 0, SHAPE(3, 2, 7), EXPECTED(lines));
    check(ctx, &(weft_batchnorm_options){.cumulative = true}, 30, SHAPE(6, 4), EXPECTED(vectors));
}

/* ---- in a network during training ---- */

static weft_module *network(weft_context *ctx) {
    return weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 4, 6, NULL), weft_nn_batch_norm(ctx, 6, NULL),
                              weft_nn_activation(ctx, WEFT_TANH), weft_nn_linear(ctx, 6, 2, NULL), NULL);
}

static void steps(weft_module *m, weft_optimizer *opt, int first, int last, int parts) {
    weft_context *ctx = weft_module_context(m);
    for (int i = first; i < last; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *y = weft_forward(m, pattern(ctx, 5 + i, 0, SHAPE(8, 4)));
        weft_tensor *loss = weft_mean(weft_mul(y, y), WEFT_ALL_AXES, false);
        assert_ok(weft_optimizer_accumulate(opt, loss, i % parts, parts));
        weft_scope_close(scope);
    }
}

static weft_tensor *statistics(weft_module *m) {
    return weft_parameter(weft_module_child_get(m, 1), "running_var");
}

/* With constant weights, accumulated and recomputed passes change the statistics like single steps. A copy
 * made after some steps continues with the same bits. */
static void test_training(void **state) {
    weft_context *ctx = *state;
    float bits[4][6];
    for (int i = 0; i < 3; i++) {
        weft_module *m = network(ctx);
        if (i == 2) assert_ok(weft_module_recompute(m, WEFT_RECOMPUTE_NORM));
        weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 1e-30});
        for (size_t p = 0; p < weft_parameter_count(m); p++) { /* the same values for each network */
            weft_parameter_info info;
            assert_true(weft_parameter_get(m, p, &info));
            if (!info.buffer) {
                weft_tensor *from = pattern(ctx, 7, 0, weft_rank(info.tensor), weft_shape(info.tensor));
                assert_ok(weft_assign(&info.tensor, &from, 1));
            }
        }
        steps(m, opt, 0, 4, i == 1 ? 2 : 1);
        assert_ok(weft_read(statistics(m), bits[i], sizeof bits[i]));
        if (i) assert_memory_equal(bits[i], bits[0], sizeof bits[0]);
    }
    weft_module *m = network(ctx), *copy = network(ctx);
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 0.1}),
                   *other = weft_sgd(copy, &(weft_sgd_options){.lr = 0.1});
    steps(m, opt, 0, 3, 1);
    assert_ok(weft_module_copy(copy, m));
    steps(m, opt, 3, 6, 1);
    steps(copy, other, 3, 6, 1);
    assert_ok(weft_read(statistics(m), bits[2], sizeof bits[2]));
    assert_ok(weft_read(statistics(copy), bits[3], sizeof bits[3]));
    assert_memory_equal(bits[2], bits[3], sizeof bits[2]);
}

static void test_bad(void **state) {
    weft_context *ctx = *state;
    weft_tensor *one = pattern(ctx, 5, 0, SHAPE(1, 3)), *two = pattern(ctx, 5, 0, SHAPE(2, 3));
    weft_module *m = weft_nn_batch_norm(ctx, 3, NULL);
    assert_poisoned(weft_forward(m, one), WEFT_ERR_SHAPE, "two values in each channel", NULL);
    assert_poisoned(weft_forward(m, pattern(ctx, 5, 0, SHAPE(3))), WEFT_ERR_SHAPE, "3 channels", NULL);
    assert_poisoned(weft_forward(weft_nn_batch_norm(ctx, 4, NULL), two), WEFT_ERR_SHAPE, "4 channels", NULL);
    weft_module_set_training(m, false);
    assert_ok(weft_tensor_status(weft_forward(m, one)));
    weft_module *free =
        weft_nn_batch_norm(ctx, 3, &(weft_batchnorm_options){.no_running = true, .no_affine = true});
    assert_int_equal(weft_parameter_count(free), 0);
    weft_module_set_training(free, false);
    assert_poisoned(weft_forward(free, one), WEFT_ERR_SHAPE, "two values in each channel", NULL);
    assert_ok(weft_tensor_status(weft_forward(free, two)));
    const weft_batchnorm_options bad[] = {{.eps = -1}, {.momentum = 2}, {.momentum = NAN}};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(weft_module_status(weft_nn_batch_norm(ctx, 3, &bad[i])), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_status(weft_nn_batch_norm(ctx, 0, NULL)), WEFT_ERR_ARGUMENT);
    assert_int_not_equal(weft_module_status(weft_nn_batch_norm(NULL, 3, NULL)), WEFT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pytorch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_training, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
