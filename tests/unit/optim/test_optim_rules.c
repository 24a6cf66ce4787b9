/* Optimizer formulas compared with plain C in f64 over several steps: every kind with its options, clipping,
 * the gradient norm and the L1 penalty. */
#include "unit/nn_help.h"

enum { STEPS = 6, IN = 3, OUT = 2, P = IN * OUT + OUT };

typedef enum { SGD, RMSPROP, ADAM, ADAMW } rule;

typedef struct rule_case {
    rule kind;
    double lr, momentum, alpha, beta1, beta2, eps, decay, clip, l1;
    bool nesterov, matrices_only;
} rule_case;

enum { ZEROS = 4 }; /* the last cases */
static const rule_case cases[] = {
    {.kind = SGD, .lr = 0.1},
    {.kind = SGD, .lr = 0.1, .decay = 0.2},
    {.kind = SGD, .lr = 0.1, .momentum = 0.9, .decay = 0.1},
    {.kind = SGD, .lr = 0.05, .momentum = 0.8, .nesterov = true, .clip = 0.5},
    {.kind = RMSPROP, .lr = 0.01, .alpha = 0.9, .eps = 1e-8},
    {.kind = RMSPROP, .lr = 0.01, .alpha = 0.99, .eps = 1e-6, .momentum = 0.9, .decay = 0.1},
    {.kind = ADAM, .lr = 0.02, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.1},
    {.kind = ADAM, .lr = 0.02, .beta1 = 0.4, .beta2 = 0.95, .eps = 1e-3},
    {.kind = ADAMW, .lr = 0.02, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.3, .clip = 1.0},
    {.kind = ADAMW,
     .lr = 0.02,
     .beta1 = 0.9,
     .beta2 = 0.95,
     .eps = 1e-8,
     .decay = 0.3,
     .matrices_only = true},
    {.kind = SGD, .lr = 0.1, .l1 = 0.5},
    {.kind = SGD, .lr = 0.05, .momentum = 0.8, .nesterov = true, .decay = 0.1, .clip = 0.5, .l1 = 0.2},
    {.kind = RMSPROP, .lr = 0.01, .alpha = 0.9, .eps = 1e-8, .l1 = 0.3},
    {.kind = RMSPROP, .lr = 0.01, .alpha = 0.99, .eps = 1e-6, .momentum = 0.9, .l1 = 0.05},
    {.kind = ADAM, .lr = 0.02, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.1, .l1 = 0.4},
    {.kind = ADAMW,
     .lr = 0.02,
     .beta1 = 0.9,
     .beta2 = 0.95,
     .eps = 1e-8,
     .decay = 0.3,
     .l1 = 0.6,
     .matrices_only = true},
    /* Zeros that are said. They are numbers of the same kernels, so the CPU alone tests them. */
    {.kind = RMSPROP, .lr = 0.01, .alpha = WEFT_ZERO, .eps = 1e-3},
    {.kind = ADAM, .lr = 0.02, .beta1 = WEFT_ZERO, .beta2 = 0.9, .eps = 1e-8}, /* as for WGAN-GP */
    {.kind = ADAMW, .lr = 0.02, .beta1 = 0.9, .beta2 = WEFT_ZERO, .eps = 1e-3, .decay = 0.3},
    {.kind = ADAM, .lr = 0.02, .beta1 = 0.9, .beta2 = 0.999, .eps = WEFT_ZERO},
};

static weft_optimizer *make(weft_module *m, const rule_case *c) {
    if (c->kind == SGD)
        return weft_sgd(m, &(weft_sgd_options){.lr = c->lr,
                                               .momentum = c->momentum,
                                               .nesterov = c->nesterov,
                                               .clip = c->clip,
                                               .weight_decay = c->decay,
                                               .decay_matrices_only = c->matrices_only,
                                               .l1 = c->l1,
                                               .track_norm = true});
    if (c->kind == RMSPROP)
        return weft_rmsprop(m, &(weft_rmsprop_options){.lr = c->lr,
                                                       .alpha = c->alpha,
                                                       .eps = c->eps,
                                                       .momentum = c->momentum,
                                                       .weight_decay = c->decay,
                                                       .clip = c->clip,
                                                       .l1 = c->l1,
                                                       .track_norm = true});
    weft_adam_options o = {.lr = c->lr,
                           .beta1 = c->beta1,
                           .beta2 = c->beta2,
                           .eps = c->eps,
                           .weight_decay = c->decay,
                           .clip = c->clip,
                           .decay_matrices_only = c->matrices_only,
                           .l1 = c->l1,
                           .track_norm = true};
    return c->kind == ADAM ? weft_adam(m, &o) : weft_adamw(m, &o);
}

/* ---- the reference: y = x W^T + b, loss = mean(y^2) over one row ---- */

static double gradient(const double *p, const double *x, double *g) {
    double loss = 0.0;
    for (int o = 0; o < OUT; o++) {
        double y = p[IN * OUT + o];
        for (int i = 0; i < IN; i++) y += p[o * IN + i] * x[i];
        loss += y * y / (double)OUT;
        for (int i = 0; i < IN; i++) g[o * IN + i] = 2.0 * y / (double)OUT * x[i];
        g[IN * OUT + o] = 2.0 * y / (double)OUT;
    }
    return loss;
}

/* One step for parameter p with gradient g and states m and v; t counts from 1. */
static void reference_step(const rule_case *c, bool decays, int t, double *p, double g, double *m,
                           double *v) {
    double decay = decays ? c->decay : 0.0,
           step = c->lr / (1.0 - c->momentum); /* of a lasting gradient of 1 */
    if (c->kind == ADAMW)
        *p -= c->lr * decay * *p;
    else
        g += decay * *p;
    if (c->kind == SGD) {
        *m = c->momentum * *m + g;
        *p -= c->lr * (c->nesterov ? g + c->momentum * *m : *m);
    } else if (c->kind == RMSPROP) {
        *v = c->alpha * *v + (1.0 - c->alpha) * g * g;
        *m = c->momentum * *m + g / (sqrt(*v) + c->eps);
        *p -= c->lr * *m;
        step /= sqrt(*v) + c->eps;
    } else {
        *m = c->beta1 * *m + (1.0 - c->beta1) * g;
        *v = c->beta2 * *v + (1.0 - c->beta2) * g * g;
        step /= sqrt(*v / (1.0 - pow(c->beta2, t))) + c->eps;
        *p -= *m / (1.0 - pow(c->beta1, t)) * step;
    }
    const double t1 = decays ? step * c->l1 : 0.0;
    *p = *p > t1 ? *p - t1 : *p < -t1 ? *p + t1 : 0.0;
}

static void read_parameters(weft_module *m, double *p) {
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(m, i, &info); i++) {
        double *v = values_of(info.tensor);
        memcpy(p + (i ? IN * OUT : 0), v, (size_t)weft_numel(info.tensor) * sizeof *v);
        free(v);
    }
}

static void check_case(weft_context *ctx, const rule_case *c) {
    weft_module *net = weft_nn_linear(ctx, IN, OUT, &(weft_linear_options){.dtype = test_wide(ctx)});
    weft_optimizer *opt = make(net, c);
    assert_ok(weft_optimizer_status(opt));
    double p[P], m[P] = {0}, v[P] = {0}, g[P], x[IN], got[P];
    read_parameters(net, p);
    for (int t = 1; t <= STEPS; t++) {
        fill(x, IN, t);
        double wanted_loss = gradient(p, x, g), norm = 0.0;
        for (int i = 0; i < P; i++) norm += g[i] * g[i];
        norm = sqrt(norm);
        double factor = c->clip > 0.0 && c->clip / (norm + 1e-6) < 1.0 ? c->clip / (norm + 1e-6) : 1.0;
        for (int i = 0; i < P; i++)
            reference_step(c, i < IN * OUT || !c->matrices_only, t, &p[i], g[i] * factor, &m[i], &v[i]);
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *y = weft_forward(net, wide_from(ctx, SHAPE(1, IN), x));
        weft_tensor *loss = weft_mean(weft_mul(y, y), WEFT_ALL_AXES, false);
        assert_ok(weft_optimizer_step(opt, loss));
        double got_loss = weft_item(loss), got_norm = weft_optimizer_grad_norm(opt);
        weft_scope_close(scope);
        assert_close(&got_loss, &wanted_loss, 1, test_within(ctx, 1e-12, 2e-5));
        assert_close(&got_norm, &norm, 1, test_within(ctx, 1e-12, 2e-5));
        read_parameters(net, got);
        assert_close(got, p, P, test_within(ctx, 1e-12, 2e-5));
    }
    assert_int_equal(weft_optimizer_steps(opt), STEPS);
    weft_module_free(net);
}

static void test_rules(void **state) {
    for (size_t i = 0; i < COUNT(cases) - (test_on_cpu() ? 0 : ZEROS); i++) {
        print_message("case %zu\n", i);
        check_case(*state, &cases[i]);
    }
}

/* ---- the minimum of a penalised loss ---- */

/* The loss is the sum of (w - b)^2 / 2. With the penalty its minimum is b, moved towards 0 by l1; with weight
 * decay also divided by 1 + decay. */
static void check_lasso(weft_context *ctx, const rule_case *c) {
    enum { N = 6 };
    const double b[N] = {-1.2, 0.45, 0.8, -0.3, 0.02, 0.55};
    double identity[N * N] = {0}, wanted[N], got[N];
    for (int i = 0; i < N; i++) identity[i * N + i] = 1.0;
    for (int i = 0; i < N; i++)
        wanted[i] = fabs(b[i]) <= c->l1 ? 0.0 : (b[i] - copysign(c->l1, b[i])) / (1.0 + c->decay);
    weft_module *net =
        weft_nn_linear(ctx, N, 1, &(weft_linear_options){.dtype = test_wide(ctx), .no_bias = true});
    weft_optimizer *opt = make(net, c);
    const weft_schedule falls = {.kind = WEFT_SCHEDULE_COSINE, .lr = c->lr, .steps = 600};
    assert_ok(weft_optimizer_schedule(opt, &falls));
    for (int t = 0; t < 600; t++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *y = weft_forward(net, wide_from(ctx, SHAPE(N, N), identity));
        weft_tensor *off = weft_sub(y, wide_from(ctx, SHAPE(N, 1), b));
        weft_tensor *loss = weft_mul_scalar(weft_sum(weft_mul(off, off), WEFT_ALL_AXES, false), 0.5);
        assert_ok(weft_optimizer_step(opt, loss));
        weft_scope_close(scope);
    }
    weft_parameter_info info;
    assert_true(weft_parameter_get(net, 0, &info));
    double *values = values_of(info.tensor);
    memcpy(got, values, sizeof got);
    free(values);
    assert_close(got, wanted, N, 1e-3);
    for (int i = 0; i < N; i++) assert_true((got[i] == 0.0) == (wanted[i] == 0.0)); /* zeros are exact */
    weft_module_free(net);
}

static void test_lasso(void **state) {
    static const rule_case some[] = {
        {.kind = SGD, .lr = 0.2, .l1 = 0.5},
        {.kind = SGD, .lr = 0.05, .momentum = 0.8, .l1 = 0.5, .decay = 0.25},
        {.kind = SGD, .lr = 0.05, .momentum = 0.8, .nesterov = true, .l1 = 0.4},
        {.kind = RMSPROP, .lr = 0.02, .alpha = 0.9, .eps = 1e-8, .l1 = 0.5},
        {.kind = RMSPROP, .lr = 0.02, .alpha = 0.9, .eps = 1e-8, .momentum = 0.5, .l1 = 0.4},
        {.kind = ADAM, .lr = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .l1 = 0.5, .decay = 0.25},
        {.kind = ADAMW, .lr = 0.05, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .l1 = 0.4},
    };
    for (size_t i = 0; i < COUNT(some); i++) {
        print_message("lasso %zu\n", i);
        check_lasso(*state, &some[i]);
    }
}

/* ---- errors ---- */

static void test_errors(void **state) {
    weft_context *ctx = *state;
    weft_module *net = weft_nn_linear(ctx, 2, 1, NULL);
    weft_tensor *loss =
        weft_mean(weft_forward(net, weft_full(ctx, WEFT_F32, SHAPE(1, 2), 1.0)), WEFT_ALL_AXES, false);
    assert_int_equal(weft_optimizer_step(weft_sgd(net, NULL), loss), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "lr"));
    assert_int_equal(weft_optimizer_status(weft_sgd(net, &(weft_sgd_options){.lr = -1.0})),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_status(weft_sgd(net, &(weft_sgd_options){.lr = 1.0, .nesterov = true})),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_status(weft_adam(net, &(weft_adam_options){.lr = 1.0, .beta2 = 1.0})),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "beta2"));
    assert_int_equal(weft_optimizer_status(weft_adam(net, &(weft_adam_options){.lr = 1.0, .l1 = -1.0})),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "l1"));
    assert_int_equal(weft_optimizer_step(NULL, loss), WEFT_ERR_ARGUMENT);
    weft_module *bad = weft_nn_linear(ctx, 0, 1, NULL);
    assert_int_equal(weft_optimizer_step(weft_sgd(bad, &(weft_sgd_options){.lr = 1.0}), loss),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "weft_nn_linear"));
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 1.0});
    assert_int_equal(weft_optimizer_step(opt, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_step(opt, weft_full(ctx, WEFT_F32, SHAPE(2), 1.0)), WEFT_ERR_SHAPE);
    weft_tensor *poisoned = weft_add(loss, weft_full(ctx, WEFT_F16, 0, NULL, 1.0));
    weft_status cause = weft_tensor_status(poisoned);
    assert_int_not_equal(cause, WEFT_OK);
    assert_int_equal(weft_optimizer_step(opt, poisoned), cause);
    assert_ok(weft_optimizer_step(opt, loss)); /* the optimizer stays usable */
    assert_true(isnan(weft_optimizer_grad_norm(opt)));
    weft_module *empty = weft_nn_activation(ctx, WEFT_RELU);
    assert_int_equal(weft_optimizer_status(weft_sgd(empty, &(weft_sgd_options){.lr = 1.0})),
                     WEFT_ERR_ARGUMENT);
    weft_optimizer_free(opt);
    weft_optimizer_free(NULL);
}

/* ---- schedules ---- */

static void test_schedules(void **state) {
    (void)state;
    const weft_schedule cosine = {
        .kind = WEFT_SCHEDULE_COSINE, .lr = 1.0, .warmup = 3, .steps = 13, .min_lr = 0.1};
    const weft_schedule linear = {.kind = WEFT_SCHEDULE_LINEAR, .lr = 1.0, .steps = 10};
    const weft_schedule step = {
        .kind = WEFT_SCHEDULE_STEP, .lr = 1.0, .every = 4, .factor = 0.5, .min_lr = 0.2};
    const weft_schedule constant = {.kind = WEFT_SCHEDULE_CONSTANT, .lr = 0.3, .warmup = 1};
    double got[] = {
        weft_schedule_lr(&cosine, 0), weft_schedule_lr(&cosine, 2),   weft_schedule_lr(&cosine, 3),
        weft_schedule_lr(&cosine, 8), weft_schedule_lr(&cosine, 13),  weft_schedule_lr(&cosine, 999),
        weft_schedule_lr(&linear, 0), weft_schedule_lr(&linear, 5),   weft_schedule_lr(&linear, 10),
        weft_schedule_lr(&step, 3),   weft_schedule_lr(&step, 4),     weft_schedule_lr(&step, 8),
        weft_schedule_lr(&step, 12),  weft_schedule_lr(&constant, 0), weft_schedule_lr(&constant, 77)};
    const double wanted[] = {0.25, 0.75, 1.0, 0.55, 0.1, 0.1, 1.0, 0.5, 0.0, 1.0, 0.5, 0.25, 0.2, 0.15, 0.3};
    assert_close(got, wanted, COUNT(wanted), 1e-15);
    weft_schedule_kind kind;
    for (int k = WEFT_SCHEDULE_CONSTANT; k <= WEFT_SCHEDULE_LINEAR; k++)
        assert_true(weft_schedule_parse(weft_schedule_name((weft_schedule_kind)k), &kind) && (int)kind == k);
    assert_false(weft_schedule_parse("cosinus", &kind));
}

static void test_scheduled_steps(void **state) {
    weft_context *ctx = *state;
    weft_init one = {WEFT_INIT_ONES, 0};
    weft_module *net = weft_nn_linear(
        ctx, 1, 1, &(weft_linear_options){.dtype = test_wide(ctx), .no_bias = true, .weight = one});
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 9.0});
    const weft_schedule s = {.kind = WEFT_SCHEDULE_LINEAR, .lr = 0.5, .steps = 4};
    assert_ok(weft_optimizer_schedule(opt, &s));
    double wanted = 1.0;
    for (uint64_t t = 0; t < 6; t++) {
        weft_scope *scope = weft_scope_open(ctx);
        double lr = t < 4 ? 0.5 * (1.0 - (double)t / 4.0) : 0.0, got = weft_optimizer_lr(opt);
        assert_close(&got, &lr, 1, 1e-15);
        weft_tensor *y = weft_forward(net, weft_full(ctx, test_wide(ctx), SHAPE(1, 1), 1.0));
        assert_ok(weft_optimizer_step(opt, weft_sum(y, WEFT_ALL_AXES, false)));
        wanted -= lr;
        weft_scope_close(scope);
    }
    weft_parameter_info info;
    assert_true(weft_parameter_get(net, 0, &info));
    double got = weft_item(info.tensor);
    assert_close(&got, &wanted, 1, test_within(ctx, 1e-15, 1e-6));
    assert_int_equal(weft_optimizer_schedule(opt, &(weft_schedule){.kind = WEFT_SCHEDULE_COSINE, .lr = 1.0}),
                     WEFT_ERR_ARGUMENT);
    assert_ok(weft_optimizer_set_lr(opt, 0.25));
    assert_true(weft_optimizer_lr(opt) == 0.25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lasso, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test_setup_teardown(test_scheduled_steps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
