/* Mixed precision: a module computes in bf16 or f16 with f32 parameters. */
#include "unit/nn_help.h"

enum { BATCH = 3, IN = 5, HIDDEN = 8, OUT = 4 };

static weft_module *net(weft_context *ctx) {
    const int64_t sizes[] = {IN, HIDDEN, OUT};
    return weft_nn_mlp(ctx, sizes, COUNT(sizes), NULL);
}

static weft_tensor *input(weft_context *ctx, int64_t rows, int64_t columns, int salt) {
    double values[64];
    fill(values, rows * columns, salt);
    return weft_cast(wide_from(ctx, SHAPE(rows, columns), values), WEFT_F32);
}

static weft_tensor *parameter(weft_module *m, size_t i) {
    weft_parameter_info info;
    assert_true(weft_parameter_get(m, i, &info));
    return info.tensor;
}

static weft_dtype dtype = WEFT_BF16; /* the dtype of the running test */

static weft_tensor *narrow(weft_tensor *t) { return weft_cast(t, dtype); }

/* t has the same bytes as `wanted`. */
static void assert_same(weft_tensor *t, weft_tensor *wanted) {
    double *a = values_of(t), *b = values_of(wanted);
    assert_int_equal(weft_dtype_of(t), weft_dtype_of(wanted));
    assert_memory_equal(a, b, (size_t)weft_numel(wanted) * sizeof *a);
    free(a);
    free(b);
}

/* Inputs and outputs are f32. In between, the layers compute with rounded operands. */
static void test_forward(void **state) {
    weft_context *ctx = *state;
    weft_module *m = net(ctx);
    weft_tensor *x = input(ctx, BATCH, IN, 1);
    double *exact = values_of(weft_forward(m, x));
    assert_ok(weft_module_compute(m, dtype));
    weft_tensor *y = weft_forward(m, x);
    weft_tensor *h = weft_add(weft_matmul(narrow(x), weft_transpose(narrow(parameter(m, 0)), 0, 1)),
                              narrow(parameter(m, 1)));
    h = weft_matmul(weft_relu(h), weft_transpose(narrow(parameter(m, 2)), 0, 1));
    assert_same(y, weft_cast(weft_add(h, narrow(parameter(m, 3))), WEFT_F32));
    double *got = values_of(y);
    assert_close(got, exact, (int64_t)BATCH * OUT, 0.03);
    assert_true(memcmp(got, exact, sizeof(double) * BATCH * OUT) != 0);
    assert_ok(weft_module_compute(m, WEFT_F32));
    double *again = values_of(weft_forward(m, x));
    assert_memory_equal(again, exact, sizeof(double) * BATCH * OUT);
    free(again);
    free(got);
    free(exact);
}

/* A gradient has the dtype of its operand. */
static void test_gradients(void **state) {
    weft_context *ctx = *state;
    weft_module *m = net(ctx);
    weft_tensor *x = input(ctx, BATCH, IN, 1), *target = input(ctx, BATCH, OUT, 2);
    weft_tensor *params[4], *exact[4], *got[4];
    for (size_t i = 0; i < 4; i++) params[i] = parameter(m, i);
    assert_ok(weft_gradient(weft_mse(weft_forward(m, x), target, WEFT_MEAN), params, 4, exact));
    assert_ok(weft_module_compute(m, dtype));
    weft_tensor *loss = weft_mse(weft_forward(m, x), target, WEFT_MEAN);
    assert_int_equal(weft_dtype_of(loss), WEFT_F32);
    assert_ok(weft_gradient(loss, params, 4, got));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(weft_dtype_of(got[i]), WEFT_F32);
        double *a = values_of(got[i]), *b = values_of(exact[i]);
        assert_close(a, b, weft_numel(got[i]), 0.03);
        free(a);
        free(b);
    }
}

/* The rows of an embedding's gradient are summed in f32: in 16 bits a thousand times 2^-9 would be lost
 * next to 1. */
static void test_embedding(void **state) {
    weft_context *ctx = *state;
    enum { TIMES = 1024 };
    weft_module *m = weft_nn_embedding(ctx, 2, 1, NULL);
    assert_ok(weft_module_compute(m, dtype));
    static int32_t ids[TIMES + 1];
    static float weights[TIMES + 1];
    for (int i = 0; i <= TIMES; i++) weights[i] = i == 0 ? 1.0f : 0x1p-9f;
    weft_tensor *y = weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(TIMES + 1), ids)),
                *table = parameter(m, 0), *gradient;
    weft_tensor *loss =
        weft_sum(weft_mul(y, weft_from(ctx, WEFT_F32, SHAPE(TIMES + 1, 1), weights)), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, &table, 1, &gradient));
    double *got = values_of(gradient);
    assert_true(got[0] == 1.0 + (double)TIMES * 0x1p-9 && got[1] == 0.0);
    free(got);
}

static weft_module *gpt(weft_context *ctx) {
    return weft_nn_gpt(ctx,
                       &(weft_gpt_options){.vocab = 11, .context = 16, .layers = 2, .heads = 2, .width = 32});
}

/* The gradients of weights and biases are sums in f32, which are not rounded on their way. */
static void test_unrounded(void **state) {
    weft_context *ctx = *state;
    enum { TIMES = 1024 };
    weft_module *m = weft_nn_linear(ctx, 1, 1, NULL);
    assert_ok(weft_module_compute(m, dtype));
    static float x[TIMES + 1], weights[TIMES + 1];
    for (int i = 0; i <= TIMES; i++) x[i] = 1, weights[i] = i == 0 ? 1.0f : 0x1p-14f;
    weft_tensor *y = weft_forward(m, weft_from(ctx, WEFT_F32, SHAPE(TIMES + 1, 1), x)), *gradients[2], *again;
    weft_tensor *loss =
        weft_sum(weft_mul(y, weft_from(ctx, WEFT_F32, SHAPE(TIMES + 1, 1), weights)), WEFT_ALL_AXES, false);
    weft_tensor *wrt[2] = {parameter(m, 0), parameter(m, 1)};
    assert_ok(weft_gradient(loss, wrt, 2, gradients));
    assert_int_equal(weft_dtype_of(gradients[0]), WEFT_F32);
    for (int i = 0; i < 2; i++) assert_true(weft_item(gradients[i]) == 1.0 + (double)TIMES * 0x1p-14);
    /* the gradient of such a gradient */
    weft_tensor *w = weft_cast(input(ctx, 4, 4, 3), WEFT_F32), *narrowed = narrow(w);
    assert_ok(
        weft_gradient(weft_sum(weft_matmul(narrowed, narrowed), WEFT_ALL_AXES, false), &w, 1, gradients));
    assert_ok(
        weft_gradient(weft_sum(weft_mul(gradients[0], gradients[0]), WEFT_ALL_AXES, false), &w, 1, &again));
    double *got = values_of(again);
    for (int i = 0; i < 16; i++) assert_true(isfinite(got[i]) && got[i] != 0);
    free(got);
}

/* A tied head: both parts of the table's gradient are f32, and so is their sum. */
static void test_tied(void **state) {
    weft_context *ctx = *state;
    weft_module *m = gpt(ctx);
    const int32_t ids[2][4] = {{1, 7, 2, 2}, {7, 2, 2, 5}};
    weft_tensor *wrt = parameter(m, 0), *exact, *got;
    for (int i = 0; i < 2; i++) {
        if (i) assert_ok(weft_module_compute(m, dtype));
        weft_tensor *y = weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(1, 4), ids[0]));
        weft_tensor *loss = weft_cross_entropy(y, weft_from(ctx, WEFT_I32, SHAPE(1, 4), ids[1]), NULL);
        assert_ok(weft_gradient(loss, &wrt, 1, i ? &got : &exact));
    }
    double *a = values_of(got), *b = values_of(exact);
    int rounded = 0;
    for (int i = 0; i < 11 * 32; i++) {
        assert_true(fabs(a[i] - b[i]) < 0.01);
        rounded += (double)weft_bf16_to_f32(weft_f32_to_bf16((float)a[i])) == a[i];
    }
    assert_true(rounded < 11 * 32 / 8);
    free(a);
    free(b);
}

static float train(weft_context *ctx, weft_module *m, int steps) {
    weft_optimizer *opt = weft_adamw(m, &(weft_adam_options){.lr = 3e-3});
    if (dtype == WEFT_F16) assert_ok(weft_optimizer_scale_loss(opt, NULL));
    int32_t ids[17];
    float value = 0.0f;
    for (int step = 0; step < steps; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        for (int i = 0; i < 17; i++) ids[i] = (2 * i + 3 * step) % 11;
        weft_tensor *logits =
            weft_reshape(weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(1, 16), ids)), SHAPE(16, 11));
        weft_tensor *loss = weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, SHAPE(16), ids + 1), NULL);
        assert_ok(weft_optimizer_step(opt, loss));
        assert_ok(weft_read(loss, &value, sizeof value));
        weft_scope_close(scope);
    }
    weft_optimizer_free(opt);
    return value;
}

/* Mixed precision learns like f32. Optimizer and parameters stay f32. */
static void test_training(void **state) {
    weft_context *ctx = *state;
    weft_module *wide = gpt(ctx), *mixed = gpt(ctx);
    assert_ok(weft_module_copy(mixed, wide));
    assert_ok(weft_module_compute(mixed, dtype));
    const float start = train(ctx, wide, 1), mixed_start = train(ctx, mixed, 1);
    const float end = train(ctx, wide, 60), mixed_end = train(ctx, mixed, 60);
    assert_true(fabsf(mixed_start - start) < 0.01f * start);
    assert_true(end < 0.8f * start);
    assert_true(fabsf(mixed_end - end) < 0.02f * start);
    for (size_t i = 0; i < weft_parameter_count(mixed); i++)
        assert_int_equal(weft_dtype_of(parameter(mixed, i)), WEFT_F32);
}

/* m computes the same as a copy of it for which no optimizer keeps rounded values. */
static void assert_current(weft_context *ctx, weft_module *m) {
    const int32_t ids[4] = {1, 7, 2, 2};
    weft_module *copy = gpt(ctx);
    assert_ok(weft_module_copy(copy, m));
    assert_ok(weft_module_compute(copy, dtype));
    weft_tensor *x = weft_from(ctx, WEFT_I32, SHAPE(1, 4), ids);
    assert_same(weft_forward(m, x), weft_forward(copy, x));
    weft_module_free(copy);
}

static void steps_of(weft_context *ctx, weft_module *m, weft_optimizer *opt, int parts) {
    int32_t ids[17];
    for (int step = 0; step < 2; step++)
        for (int k = 0; k < parts; k++) {
            weft_scope *scope = weft_scope_open(ctx);
            for (int i = 0; i < 17; i++) ids[i] = (2 * i + 3 * step + k) % 11;
            weft_tensor *y = weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(1, 16), ids));
            weft_tensor *loss = weft_cross_entropy(y, weft_from(ctx, WEFT_I32, SHAPE(1, 16), ids + 1), NULL);
            assert_ok(weft_optimizer_accumulate(opt, loss, k, parts));
            weft_scope_close(scope);
        }
}

/* The optimizer writes the rounded values together with the parameters. Layers must also read new values
 * that others write. */
static void test_kept_rounded(void **state) {
    weft_context *ctx = *state;
    weft_module *m = gpt(ctx);
    assert_ok(weft_module_compute(m, dtype));
    weft_optimizer *opt = weft_adamw(m, &(weft_adam_options){.lr = 1e-2});
    if (dtype == WEFT_F16)
        assert_ok(weft_optimizer_scale_loss(opt, &(weft_loss_scale_options){.init = 0x1p100}));
    assert_current(ctx, m);
    steps_of(ctx, m, opt, 1); /* f16: the step is skipped, so nothing changes */
    assert_current(ctx, m);
    if (dtype == WEFT_F16) assert_ok(weft_optimizer_scale_loss(opt, NULL));
    steps_of(ctx, m, opt, 2);
    assert_current(ctx, m);
    const float row[3 * 32] = {0.3f, 1.001f, -7};
    assert_ok(weft_write(parameter(m, 3), row, sizeof(float) * 32)); /* ln_1.bias */
    assert_current(ctx, m);
    steps_of(ctx, m, opt, 1);
    assert_current(ctx, m);
    if (!test_on_cpu()) return; /* the rest is host code, and each layout compiles kernels */
    weft_module_freeze(weft_module_child_get(m, 2), true); /* changes the layout */
    steps_of(ctx, m, opt, 1);
    assert_current(ctx, m);
    weft_optimizer *second = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});
    steps_of(ctx, m, second, 1);
    assert_current(ctx, m);
    steps_of(ctx, m, opt, 1);
    assert_current(ctx, m);
    weft_optimizer_free(second);
    assert_ok(weft_module_compute(m, dtype == WEFT_F16 ? WEFT_BF16 : WEFT_F16)); /* not the kept dtype */
    steps_of(ctx, m, opt, 1);
    assert_ok(weft_module_compute(m, dtype));
    assert_current(ctx, m);
    assert_int_equal(weft_module_recompute(weft_module_child_get(m, 3), true), WEFT_OK);
    steps_of(ctx, m, opt, 1);
    assert_current(ctx, m);
}

/* Decoding token by token gives what the whole sequence gives. Caches hold the layers' compute dtype. */
static void test_decoding(void **state) {
    weft_context *ctx = *state;
    weft_module *m = gpt(ctx);
    assert_ok(weft_module_compute(m, dtype));
    const int32_t ids[4] = {1, 7, 2, 2};
    float logits[11];
    weft_decode_state *cache = weft_decode_state_new(m);
    assert_non_null(cache);
    for (int i = 0; i < 4; i++) assert_ok(weft_gpt_feed(cache, ids + i, 1, logits));
    weft_module_set_training(m, false);
    double *whole = values_of(weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(1, 4), ids)));
    for (int i = 0; i < 11; i++) assert_true(fabs(logits[i] - whole[33 + i]) < 0.02);
    free(whole);
    weft_decode_state_free(cache);
}

/* A part of an f32 network may compute in bf16. A child computes in the dtype of its parent. */
static void test_parts(void **state) {
    weft_context *ctx = *state;
    weft_module *first = weft_nn_linear(ctx, IN, HIDDEN, NULL),
                *second = weft_nn_linear(ctx, HIDDEN, OUT, NULL);
    weft_module *m = weft_nn_sequential(ctx, "parts", first, second, NULL);
    assert_ok(weft_module_compute(second, dtype));
    weft_tensor *x = input(ctx, BATCH, IN, 1), *y = weft_forward(m, x), *h = weft_forward(first, x);
    assert_int_equal(weft_dtype_of(h), WEFT_F32);
    weft_tensor *rounded = weft_matmul(narrow(h), weft_transpose(narrow(parameter(m, 2)), 0, 1));
    assert_same(y, weft_cast(weft_add(rounded, narrow(parameter(m, 3))), WEFT_F32));

    assert_int_equal(weft_module_compute(m, WEFT_F64), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "f64"));
    assert_int_equal(weft_module_compute(m, WEFT_I32), WEFT_ERR_UNSUPPORTED);
    assert_int_equal(weft_module_compute(NULL, WEFT_BF16), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_compute(weft_nn_linear(ctx, 0, 1, NULL), WEFT_BF16), WEFT_ERR_ARGUMENT);
}

/* Nested modules of three dtypes: values are cast where they pass from one dtype to another. */
static void test_borders(void **state) {
    weft_context *ctx = *state;
    weft_module *first = weft_nn_linear(ctx, IN, HIDDEN, &(weft_linear_options){.no_bias = true});
    weft_module *second = weft_nn_linear(ctx, HIDDEN, OUT, &(weft_linear_options){.no_bias = true});
    weft_module *third = weft_nn_linear(ctx, OUT, OUT, &(weft_linear_options){.no_bias = true});
    weft_module *m = weft_nn_sequential(ctx, "borders", first, second, third, NULL);
    assert_ok(weft_module_compute(m, WEFT_BF16));
    assert_ok(weft_module_compute(second, WEFT_F32));
    assert_ok(weft_module_compute(third, WEFT_F16));
    weft_tensor *x = input(ctx, BATCH, IN, 1), *w[3];
    for (size_t i = 0; i < 3; i++) w[i] = weft_transpose(parameter(m, i), 0, 1);
    weft_tensor *h = weft_matmul(weft_cast(x, WEFT_BF16), weft_cast(w[0], WEFT_BF16));
    h = weft_cast(weft_matmul(weft_cast(h, WEFT_F32), w[1]), WEFT_BF16);
    h = weft_matmul(weft_cast(h, WEFT_F16), weft_cast(w[2], WEFT_F16));
    assert_same(weft_forward(m, x), weft_cast(weft_cast(h, WEFT_BF16), WEFT_F32));
}

static int setup_half(void **state) {
    dtype = WEFT_F16;
    return setup(state);
}

/* Devices that compile kernels run only a sample. They skip tests of compiler passes and the f16 run of
 * each kernel (test_loss_scale covers f16). */
static int setup_on_cpu(void **state) {
    *state = NULL;
    return test_on_cpu() ? setup(state) : 0;
}

static int setup_half_on_cpu(void **state) {
    *state = NULL;
    return test_on_cpu() ? setup_half(state) : 0;
}

#define ON_CPU(name)                                                                                         \
    static void name##_on_cpu(void **state) {                                                                \
        if (!*state) return skip(); /* skipped on this device */                                             \
        name(state);                                                                                         \
    }
ON_CPU(test_forward)
ON_CPU(test_gradients)
ON_CPU(test_embedding)
ON_CPU(test_unrounded)
ON_CPU(test_tied)
ON_CPU(test_training)
ON_CPU(test_kept_rounded)
ON_CPU(test_decoding)
ON_CPU(test_parts)
ON_CPU(test_borders)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forward, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_embedding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unrounded_on_cpu, setup_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_tied_on_cpu, setup_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_training, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_rounded_on_cpu, setup_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_decoding_on_cpu, setup_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_borders_on_cpu, setup_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_forward_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_gradients_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_embedding_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_unrounded_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_tied_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_training_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_kept_rounded_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_decoding_on_cpu, setup_half_on_cpu, teardown),
        cmocka_unit_test_setup_teardown(test_parts_on_cpu, setup_half_on_cpu, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
