/* Buffers that a forward pass assigns: when they are assigned, how often, in which order, and what prevents
 * it. */
#include <unistd.h>
#include "unit/nn_help.h"

/* y = (x + carried) * weight; carried <- carried + mean(x). The result reads the buffer that the pass
 * assigns. */
static weft_tensor *carry_forward(weft_module *m, weft_tensor *x) {
    weft_tensor *carried = weft_parameter(m, "carried");
    weft_tensor *next = weft_add(carried, weft_mean(x, WEFT_ALL_AXES, false));
    if (weft_module_assign(m, "carried", next) != WEFT_OK) return next;
    return weft_mul(weft_add(x, carried), weft_parameter(m, "weight"));
}

static weft_module *carry(weft_context *ctx) {
    weft_module *m = weft_module_new(ctx, "carry", carry_forward, NULL);
    weft_module_parameter(m, "weight", WEFT_F32, 0, NULL, &(weft_init){WEFT_INIT_ONES, 0.0});
    weft_module_buffer(m, "carried", WEFT_F32, 0, NULL, NULL);
    return m;
}

static weft_tensor *input(weft_context *ctx, float value) {
    return weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){value, value});
}

static double carried(weft_module *m) { return weft_item(weft_parameter(m, "carried")); }

static weft_tensor *loss_of(weft_module *m, float value) {
    weft_tensor *y = weft_forward(m, input(weft_module_context(m), value));
    return weft_mean(weft_mul(y, y), WEFT_ALL_AXES, false);
}

static void test_steps(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 0.01});
    for (int i = 1; i <= 3; i++) { /* the second and third step reuse the first program */
        weft_scope *scope = weft_scope_open(ctx);
        assert_ok(weft_optimizer_step(opt, loss_of(m, (float)i)));
        weft_scope_close(scope);
    }
    assert_true(carried(m) == 6.0);
    for (int k = 0; k < 3; k++) { /* each micro-batch is a pass of its own */
        weft_scope *scope = weft_scope_open(ctx);
        assert_ok(weft_optimizer_accumulate(opt, loss_of(m, 2.0F), k, 3));
        weft_scope_close(scope);
        assert_true(carried(m) == 8.0 + 2 * k);
    }
}

/* Two equal modules with one optimizer each: a pass assigns only the buffers of its own module. */
static void test_apart(void **state) {
    weft_context *ctx = *state;
    weft_module *a = carry(ctx), *b = carry(ctx);
    weft_module *both = weft_nn_sequential(ctx, "both", a, b, NULL);
    weft_optimizer *opt = weft_sgd(both, &(weft_sgd_options){.lr = 0.01});
    assert_ok(weft_optimizer_step(opt, loss_of(a, 1.0F)));
    assert_ok(weft_optimizer_step(opt, loss_of(b, 2.0F)));
    assert_true(carried(a) == 1.0);
    assert_true(carried(b) == 2.0);
    assert_ok(weft_optimizer_step(opt, loss_of(both, 4.0F)));
    assert_true(carried(a) == 5.0);
    assert_true(carried(b) > 2.0);
}

static void test_eval(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_tensor *y = weft_keep(weft_forward(m, input(ctx, 3.0F)));
    assert_true(carried(m) == 0.0);
    weft_tensor *loss = weft_sum(y, WEFT_ALL_AXES, false);
    assert_true(weft_item(loss) == 6.0);
    assert_true(carried(m) == 3.0);
    double *values = values_of(y); /* y was kept, so it was computed from the old values */
    assert_true(values[0] == 3.0);
    free(values);
    assert_true(carried(m) == 3.0); /* only once */
    weft_module_set_training(m, false);
    assert_true(weft_item(loss_of(m, 1.0F)) == 16.0);
    assert_true(carried(m) == 3.0);
    weft_module_set_training(m, true);
    weft_scope *scope = weft_scope_open(ctx);
    weft_forward(m, input(ctx, 5.0F)); /* nothing reads this pass */
    weft_scope_close(scope);
    assert_true(weft_item(weft_sum(weft_forward(m, input(ctx, 1.0F)), WEFT_ALL_AXES, false)) == 8.0);
    assert_true(carried(m) == 4.0);
}

/* The second pass reads the buffer that the first pass assigns: in one program, or in two. */
static void test_order(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 1e-30});
    weft_tensor *first = weft_keep(loss_of(m, 1.0F)), *second = loss_of(m, 2.0F); /* 1, (2 + 1)^2 */
    weft_tensor *sum = weft_add(first, second);
    assert_ok(weft_optimizer_step(opt, sum));
    assert_true(weft_item(sum) == 10.0);
    assert_true(carried(m) == 3.0);
    assert_true(weft_item(first) == 1.0);
    weft_forward(m, input(ctx, 5.0F));
    assert_ok(weft_write(weft_parameter(m, "carried"), &(float){7.0F}, 4)); /* written after the pass */
    assert_true(weft_item(loss_of(m, 1.0F)) == 64.0);
    assert_true(carried(m) == 8.0);
}

static void test_held(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 1e-30});
    weft_tensor *loss = loss_of(m, 1.0F);
    weft_program *program = NULL;
    assert_ok(weft_optimizer_hold(opt, loss, &program));
    assert_true(carried(m) == 0.0);
    for (int i = 1; i <= 4; i++) {
        assert_ok(weft_optimizer_run(opt, program));
        assert_true(carried(m) == i);
        assert_true(weft_item(loss) == i * i);
    }
    assert_ok(weft_optimizer_run_many(opt, program, 6));
    assert_true(carried(m) == 10.0);
    weft_program_free(program);
}

/* A hand-written training loop: assigning the parameters also performs the assignments of the passes it
 * reads. */
static void test_own_loop(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_tensor *weight = weft_parameter(m, "weight"), *gradient;
    weft_tensor *loss = weft_keep(loss_of(m, 3.0F));
    assert_ok(weft_gradient(loss, &weight, 1, &gradient));
    weft_tensor *next = weft_sub(weight, weft_mul_scalar(gradient, 0.5));
    assert_ok(weft_assign(&weight, &next, 1));
    assert_true(carried(m) == 3.0);
    assert_true(weft_item(loss) == 9.0);
    assert_true(weft_item(weight) == 1.0 - 0.5 * 18.0);
}

static void test_recomputed(void **state) {
    weft_context *ctx = *state;
    weft_module *m = weft_nn_sequential(ctx, "net", carry(ctx), weft_nn_activation(ctx, WEFT_TANH), NULL);
    assert_ok(weft_module_recompute(m, WEFT_RECOMPUTE_BLOCK));
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 0.01});
    assert_ok(weft_optimizer_step(opt, loss_of(m, 2.0F)));
    assert_true(carried(weft_module_child_get(m, 0)) == 2.0);
}

static void test_elsewhere(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx), *copy = carry(ctx), *loaded = carry(ctx);
    assert_ok(weft_eval((weft_tensor *[]){loss_of(m, 2.0F)}, 1));
    assert_ok(weft_module_copy(copy, m));
    assert_true(carried(copy) == 2.0);
    char path[] = "/tmp/weft-assign-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_ok(weft_module_save(m, path));
    assert_ok(weft_module_load(loaded, path));
    unlink(path);
    assert_true(carried(loaded) == 2.0);
    char text[512];
    assert_true(weft_summary(m, text, sizeof text) > 0);
    assert_non_null(strstr(text, "carried [] buffer"));
    assert_non_null(strstr(text, "1 parameters, 1 trained, 1 in buffers"));
}

/* ---- what is refused ---- */

static weft_tensor *bad_forward(weft_module *m, weft_tensor *x) {
    const char *name = *(const char *const *)weft_module_user(m);
    weft_status status = weft_module_assign(m, name, x);
    return status == WEFT_OK ? x : NULL;
}

static void test_bad(void **state) {
    weft_context *ctx = *state;
    const char *name = "stats";
    weft_module *m = weft_module_new(ctx, "bad", bad_forward, &name);
    weft_module_buffer(m, "stats", WEFT_F32, SHAPE(3), NULL);
    weft_module_parameter(m, "weight", WEFT_F32, SHAPE(2), NULL);
    weft_forward(m, input(ctx, 1.0F));
    weft_tensor *x = input(ctx, 1.0F);
    assert_int_equal(weft_module_assign(m, "stats", x), WEFT_ERR_STATE);
    assert_int_equal(weft_module_assign(NULL, "stats", x), WEFT_ERR_ARGUMENT);
    const struct {
        const char *name;
        weft_tensor *x;
        weft_status status;
        const char *text;
    } cases[] = {{"stats", x, WEFT_ERR_SHAPE, "f32 [2]"},
                 {"weight", x, WEFT_ERR_ARGUMENT, "no buffer 'weight'"},
                 {NULL, x, WEFT_ERR_ARGUMENT, "NULL"},
                 {"stats", weft_from(ctx, WEFT_F64, SHAPE(3), (double[3]){0}), WEFT_ERR_SHAPE, "f64"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        name = cases[i].name;
        assert_int_not_equal(weft_tensor_status(weft_forward(m, cases[i].x)), WEFT_OK);
        weft_tensor *bad = weft_forward(m, cases[i].x);
        assert_non_null(bad);
    }
    weft_module *broken = carry(ctx);
    weft_module_parameter(broken, "", WEFT_F32, 0, NULL, NULL);
    assert_int_not_equal(weft_module_assign(broken, "carried", x), WEFT_OK);
    assert_int_not_equal(weft_tensor_status(weft_forward(broken, x)), WEFT_OK);
}

/* The module, or a kept value, is freed before the pass is computed. */
static void test_gone(void **state) {
    weft_context *ctx = *state;
    weft_module *m = carry(ctx);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *loss = loss_of(m, 2.0F);
    weft_module_free(m);
    assert_true(weft_item(loss) == 4.0);
    weft_scope_close(scope);
    m = carry(ctx);
    scope = weft_scope_open(ctx);
    loss_of(m, 2.0F);
    weft_module_free(m);
    weft_scope_close(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eval, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recomputed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
