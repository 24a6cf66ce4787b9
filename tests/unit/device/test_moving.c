/* A user's own module, with parameters, a buffer that its forward pass assigns, and children. It is trained,
 * moved with its optimizer to another context, and trained further, with the same results as if it had not
 * been moved. */
#include "unit/core_help.h"

enum { ROWS = 12, IN = 5, HIDDEN = 8, STEPS = 6, MOVED = 3 };

/* y = (x W) * scale, then a child and dropout. The buffer `seen` counts the training samples. */
static weft_tensor *forward(weft_module *m, weft_tensor *x) {
    weft_tensor *y = weft_mul(weft_matmul(x, weft_parameter(m, "weight")), weft_parameter(m, "scale"));
    if (weft_module_is_training(m)) {
        weft_tensor *seen = weft_parameter(m, "seen");
        if (weft_module_assign(m, "seen", weft_add_scalar(seen, 1)) != WEFT_OK) return NULL;
        y = weft_dropout(y, 0.25);
    }
    return weft_forward(weft_module_child_get(m, 0), weft_tanh(y));
}

static weft_module *network(weft_context *ctx) {
    weft_module *m = weft_module_new(ctx, "own", forward, NULL);
    weft_module_child(m, "out", weft_nn_linear(ctx, HIDDEN, 1, NULL));
    assert_ok(weft_module_parameter(m, "weight", WEFT_F32, 2, (int64_t[]){IN, HIDDEN}, NULL));
    assert_ok(
        weft_module_parameter(m, "scale", WEFT_F32, 1, (int64_t[]){HIDDEN}, &(weft_init){WEFT_INIT_ONES, 0}));
    assert_ok(weft_module_buffer(m, "seen", WEFT_F32, 0, NULL, NULL));
    return weft_nn_sequential(ctx, "net", m, NULL);
}

typedef struct training {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
} training;

static training start(const char *device, uint64_t seed) {
    training t = {.ctx = NULL};
    assert_ok(test_open(&(weft_open_options){.device = device, .threads = 1, .seed = seed}, &t.ctx));
    t.net = network(t.ctx);
    t.opt = weft_adamw(t.net, &(weft_adam_options){.lr = 0.02, .weight_decay = 0.01, .clip = 1});
    assert_ok(weft_optimizer_schedule(
        t.opt, &(weft_schedule){.kind = WEFT_SCHEDULE_COSINE, .lr = 0.02, .steps = STEPS, .warmup = 1}));
    return t;
}

static float step(const training *t) {
    float loss = 0;
    weft_scope *scope = weft_scope_open(t->ctx);
    weft_tensor *error = weft_mse(weft_forward(t->net, numbers(t->ctx, false, 3, SHAPE(ROWS, IN))),
                                  numbers(t->ctx, false, 4, SHAPE(ROWS, 1)), WEFT_MEAN);
    assert_ok(weft_optimizer_step(t->opt, error));
    assert_ok(weft_read(error, &loss, sizeof loss));
    weft_scope_close(scope);
    return loss;
}

static void moved(const char *from, const char *to, float within) {
    training still = start(from, 5), first = start(from, 5), then = start(to, 99);
    float losses[STEPS], left[IN * HIDDEN], right[IN * HIDDEN];
    weft_parameter_info a, b;
    for (int i = 0; i < STEPS; i++) losses[i] = step(&still);
    for (int i = 0; i < MOVED; i++) assert_true(step(&first) == losses[i]);
    (void)step(&then); /* the new context's own step does not matter */
    assert_ok(weft_optimizer_copy(then.opt, first.opt));
    assert_int_equal(weft_optimizer_steps(then.opt), MOVED);
    weft_close(first.ctx); /* the module must not need the old context any more */
    for (int i = MOVED; i < STEPS; i++) {
        const float loss = step(&then);
        assert_true(fabsf(loss - losses[i]) <= within);
    }
    for (size_t p = 0; weft_parameter_get(still.net, p, &a) && weft_parameter_get(then.net, p, &b); p++) {
        const size_t n = (size_t)weft_numel(a.tensor);
        assert_ok(weft_read(a.tensor, left, n * sizeof *left));
        assert_ok(weft_read(b.tensor, right, n * sizeof *right));
        for (size_t i = 0; i < n; i++) assert_true(fabsf(left[i] - right[i]) <= within);
        if (a.buffer) assert_true(left[0] == (float)STEPS && right[0] == (float)STEPS);
    }
    assert_true(weft_optimizer_lr(still.opt) == weft_optimizer_lr(then.opt));
    weft_close(still.ctx);
    weft_close(then.ctx);
}

static void test_same_bits(void **state) {
    (void)state;
    moved("cpu", "cpu", 0);
}

static void test_other_device(void **state) {
    (void)state;
    moved("cpu", "interp", 1e-5F);
    if (!test_on_cpu()) moved("cpu", test_device(), 1e-5F);
}

static void test_refused(void **state) {
    (void)state;
    training t = start("cpu", 1);
    weft_module *other = weft_nn_linear(t.ctx, 3, 2, NULL);
    weft_optimizer *sgd = weft_sgd(other, &(weft_sgd_options){.lr = 0.1}),
                   *adam = weft_adamw(other, &(weft_adam_options){.lr = 0.1});
    assert_ok(weft_optimizer_copy(t.opt, t.opt));
    assert_int_equal(weft_optimizer_copy(sgd, t.opt), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(t.ctx), "cannot copy adamw to sgd"));
    assert_int_equal(weft_optimizer_copy(adam, t.opt), WEFT_ERR_SHAPE);
    assert_int_equal(weft_optimizer_copy(NULL, t.opt), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_copy(t.opt, NULL), WEFT_ERR_ARGUMENT);
    weft_module_free(other);
    assert_int_equal(weft_optimizer_copy(adam, t.opt), WEFT_ERR_STATE);
    weft_close(t.ctx);
}

/* The summary lists layers, their results and their parameters. */
static void test_summary(void **state) {
    (void)state;
    training t = start("cpu", 1);
    char text[1000];
    assert_true(weft_summary(t.net, text, sizeof text) > 0);
    assert_null(strstr(text, "[12,1]"));
    (void)step(&t);
    assert_true(weft_summary(t.net, text, sizeof text) > 0);
    assert_non_null(strstr(text, "[12,1]"));
    assert_non_null(strstr(text, "weight [5,8] scale [8] seen [] buffer"));
    weft_close(t.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_other_device),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_summary)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
