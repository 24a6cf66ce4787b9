/* Laws of optimizers: accumulation equals the big batch, groups and frozen parameters get what their
 * settings say, a held step equals a recorded step, state survives saving, two optimizers can share
 * parameters. */
#include <unistd.h>
#include "device/device.h"
#include "unit/nn_help.h"

enum { IN = 4, HIDDEN = 6, OUT = 3, BATCH = 12 };

static weft_module *net_of(weft_context *ctx, double dropout) {
    return weft_nn_mlp(
        ctx, (int64_t[]){IN, HIDDEN, OUT}, 3,
        &(weft_mlp_options){.dtype = test_wide(ctx), .activation = WEFT_TANH, .dropout = dropout});
}

static weft_optimizer *adamw_of(weft_module *net) {
    weft_optimizer *opt =
        weft_adamw(net, &(weft_adam_options){.lr = 0.02, .weight_decay = 0.1, .clip = 0.7, .l1 = 0.003});
    assert_ok(weft_optimizer_status(opt));
    return opt;
}

/* The loss of `rows` rows of a step's batch, beginning with row `first`. */
static weft_tensor *loss_of(weft_context *ctx, weft_module *net, int step, int first, int rows) {
    double x[BATCH * IN], t[BATCH * OUT];
    fill(x, BATCH * IN, 100 + step);
    fill(t, BATCH * OUT, 200 + step);
    weft_tensor *y = weft_forward(net, wide_from(ctx, SHAPE(rows, IN), x + first * IN));
    return weft_mse(y, wide_from(ctx, SHAPE(rows, OUT), t + first * OUT), WEFT_MEAN);
}

static void step_whole(weft_context *ctx, weft_module *net, weft_optimizer *opt, int step) {
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(weft_optimizer_step(opt, loss_of(ctx, net, step, 0, BATCH)));
    weft_scope_close(scope);
}

/* All parameters, one after the other. The caller frees the result. */
static double *all_of(weft_module *m, int64_t *count) {
    int64_t n = weft_parameter_elements(m, false), at = 0;
    double *out = calloc((size_t)n + 1, sizeof *out);
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(m, i, &info); i++) {
        double *v = values_of(info.tensor);
        memcpy(out + at, v, (size_t)weft_numel(info.tensor) * sizeof *v);
        at += weft_numel(info.tensor);
        free(v);
    }
    if (count) *count = n;
    return out;
}

/* Copies a's parameters to b. */
static void copy_parameters(weft_module *a, weft_module *b) {
    weft_parameter_info from, to;
    for (size_t i = 0; weft_parameter_get(a, i, &from) && weft_parameter_get(b, i, &to); i++) {
        double *v = values_of(from.tensor);
        wide_write(to.tensor, v);
        free(v);
    }
}

static void assert_same(weft_module *a, weft_module *b, double relative) {
    int64_t n;
    double *x = all_of(a, &n), *y = all_of(b, NULL);
    assert_close(x, y, n, relative);
    free(x);
    free(y);
}

/* ---- accumulation ---- */

/* In two contexts, so that both draw the same random streams. */
static void accumulate_against_whole(double dropout) {
    weft_context *one = NULL, *other = NULL;
    assert_ok(test_open(&(weft_open_options){.seed = 3}, &one));
    assert_ok(test_open(&(weft_open_options){.seed = 3}, &other));
    weft_module *a = net_of(one, dropout), *b = net_of(other, dropout);
    assert_same(a, b, 0.0);
    weft_optimizer *whole = adamw_of(a), *parts = adamw_of(b);
    for (int step = 0; step < 4; step++) {
        step_whole(one, a, whole, step);
        int of = step < 2 ? 4 : 3;
        for (int k = 0; k < of; k++) {
            weft_scope *scope = weft_scope_open(other);
            weft_tensor *loss = loss_of(other, b, step, k * (BATCH / of), BATCH / of);
            assert_ok(weft_optimizer_accumulate(parts, loss, k, of));
            weft_scope_close(scope);
        }
        double norms[2] = {weft_optimizer_grad_norm(whole), weft_optimizer_grad_norm(parts)};
        assert_close(&norms[0], &norms[1], 1, test_within(one, 1e-13, 2e-5));
        assert_same(a, b, test_within(one, 1e-12, 2e-5));
    }
    assert_int_equal(weft_optimizer_steps(parts), 4);
    weft_close(one);
    weft_close(other);
}

static void test_accumulate(void **state) {
    weft_context *ctx = *state;
    accumulate_against_whole(0.0);
    weft_module *net = net_of(ctx, 0.0);
    weft_optimizer *opt = adamw_of(net);
    weft_tensor *loss = loss_of(ctx, net, 0, 0, BATCH);
    assert_int_equal(weft_optimizer_accumulate(opt, loss, 1, 3), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_accumulate(opt, loss, 0, 0), WEFT_ERR_ARGUMENT);
    assert_ok(weft_optimizer_accumulate(opt, loss, 0, 3));
    assert_int_equal(weft_optimizer_accumulate(opt, loss, 2, 3), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_optimizer_steps(opt), 0);
}

/* The masks of the micro-batches are those of the whole batch. */
/* Without fusion a kernel may reuse the memory of the block of gradients. */
static void test_fused_against_unfused(void **state) {
    (void)state;
    weft_context *one = NULL, *other = NULL;
    assert_ok(test_open(&(weft_open_options){.seed = 3}, &one));
    assert_ok(test_open(&(weft_open_options){.seed = 3, .no_fusion = true}, &other));
    weft_module *a = net_of(one, 0.2), *b = net_of(other, 0.2);
    weft_optimizer *fused = adamw_of(a), *unfused = adamw_of(b);
    for (int step = 0; step < 4; step++) {
        step_whole(one, a, fused, step);
        step_whole(other, b, unfused, step);
        double norms[2] = {weft_optimizer_grad_norm(fused), weft_optimizer_grad_norm(unfused)};
        assert_close(&norms[0], &norms[1], 1, test_within(one, 1e-13, 2e-5));
        assert_same(a, b, test_within(one, 1e-12, 2e-5));
    }
    weft_close(one);
    weft_close(other);
}

static void test_accumulate_dropout(void **state) {
    (void)state;
    accumulate_against_whole(0.4);
}

/* ---- groups and freezing ---- */

static bool is_bias(void *user, const weft_parameter_info *info) {
    ++*(int *)user;
    return weft_rank(info->tensor) == 1;
}

static void test_groups(void **state) {
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx, 0.0);
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 0.1, .weight_decay = 0.5, .l1 = 0.4});
    int called = 0;
    assert_ok(
        weft_optimizer_group(opt, &(weft_group_options){.match = is_bias, .user = &called, .lr_scale = 2.0}));
    assert_ok(weft_optimizer_group(
        opt, &(weft_group_options){.pattern = "2.w*", .lr_scale = 0.5, .weight_decay = 0.25, .l1 = 0.8}));
    assert_int_equal(weft_optimizer_group(opt, &(weft_group_options){.pattern = "2.w*", .l1 = -1.0}),
                     WEFT_ERR_ARGUMENT);
    assert_true(called > 0);
    assert_int_equal(weft_optimizer_group(opt, &(weft_group_options){.pattern = "h.*.weight"}),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "h.*.weight"));
    weft_tensor *variables[4], *grads[4];
    double *p[4], *g[4];
    weft_parameter_info info;
    weft_scope *scope = weft_scope_open(ctx);
    for (size_t i = 0; i < 4; i++) {
        assert_true(weft_parameter_get(net, i, &info));
        variables[i] = info.tensor;
        p[i] = values_of(info.tensor);
    }
    assert_ok(weft_gradient(loss_of(ctx, net, 0, 0, BATCH), variables, 4, grads));
    for (size_t i = 0; i < 4; i++) g[i] = values_of(grads[i]);
    weft_scope_close(scope);
    step_whole(ctx, net, opt, 0);
    const double rate[4] = {0.1, 0.2, 0.05, 0.2},
                 decay[4] = {0.5, 0.0, 0.25, 0.0}, /* 0.weight, 0.bias, 2.weight, 2.bias */
        l1[4] = {0.4, 0.0, 0.8, 0.0};
    for (size_t i = 0; i < 4; i++) {
        int64_t n = weft_numel(variables[i]);
        double *got = values_of(variables[i]);
        for (int64_t j = 0; j < n; j++) {
            const double t = rate[i] * l1[i], moved = p[i][j] - rate[i] * (g[i][j] + decay[i] * p[i][j]);
            p[i][j] = moved > t ? moved - t : moved < -t ? moved + t : 0.0;
        }
        assert_close(got, p[i], n, test_within(ctx, 1e-14, 2e-5));
        free(got);
        free(p[i]);
        free(g[i]);
    }
}

static void test_freezing(void **state) {
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx, 0.0), *first = weft_module_child_get(net, 0);
    weft_optimizer *opt = adamw_of(net);
    step_whole(ctx, net, opt, 0);
    weft_module_freeze(first, true);
    double *before = all_of(first, NULL), *all = all_of(net, NULL);
    int64_t n, total;
    step_whole(ctx, net, opt, 1);
    double *after = all_of(first, &n), *changed = all_of(net, &total);
    assert_memory_equal(before, after, (size_t)n * sizeof *before);
    assert_memory_not_equal(all, changed, (size_t)total * sizeof *all);
    weft_module_freeze(first, false);
    step_whole(ctx, net, opt, 2);
    double *thawed = all_of(first, NULL);
    assert_memory_not_equal(thawed, after, (size_t)n * sizeof *after);
    weft_module_freeze(net, true);
    weft_scope *scope = weft_scope_open(ctx);
    assert_int_equal(weft_optimizer_step(opt, loss_of(ctx, net, 3, 0, BATCH)), WEFT_ERR_ARGUMENT);
    weft_scope_close(scope);
    free(before), free(after), free(thawed), free(all), free(changed);
}

/* A parameter that was frozen and unfrozen continues with its own state, as if it had paused. */
static void test_freezing_keeps_state(void **state) {
    weft_context *ctx = *state;
    weft_module *a = net_of(ctx, 0.0), *b = net_of(ctx, 0.0);
    copy_parameters(a, b);
    weft_optimizer *x = weft_sgd(a, &(weft_sgd_options){.lr = 0.1, .momentum = 0.9});
    weft_optimizer *y = weft_sgd(b, &(weft_sgd_options){.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 2; step++) {
        step_whole(ctx, a, x, step);
        step_whole(ctx, b, y, step);
        weft_module_freeze(weft_module_child_get(b, 0), true); /* the layout changes and changes back */
        assert_ok(weft_optimizer_group(y, &(weft_group_options){.pattern = "2.*"}));
        weft_module_freeze(weft_module_child_get(b, 0), false);
    }
    step_whole(ctx, a, x, 2);
    step_whole(ctx, b, y, 2);
    assert_same(a, b, 0.0);
}

/* ---- held steps ---- */

static void test_held(void **state) {
    weft_context *ctx = *state;
    weft_module *a = net_of(ctx, 0.0), *b = net_of(ctx, 0.0);
    copy_parameters(a, b);
    weft_optimizer *recorded = adamw_of(a), *held = adamw_of(b);
    weft_program *program = NULL;
    double x[BATCH * IN], t[BATCH * OUT];
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *input = weft_keep(wide_from(ctx, SHAPE(BATCH, IN), (fill(x, BATCH * IN, 0), x)));
    weft_tensor *target = weft_keep(wide_from(ctx, SHAPE(BATCH, OUT), (fill(t, BATCH * OUT, 0), t)));
    assert_ok(weft_optimizer_hold(held, weft_mse(weft_forward(b, input), target, WEFT_MEAN), &program));
    weft_scope_close(scope);
    for (int step = 0; step < 5; step++) {
        step_whole(ctx, a, recorded, step);
        fill(x, BATCH * IN, 100 + step);
        fill(t, BATCH * OUT, 200 + step);
        wide_write(input, x);
        wide_write(target, t);
        assert_ok(weft_optimizer_run(held, program));
        assert_same(a, b, 0.0);
    }
    weft_module_freeze(b, true);
    assert_int_equal(weft_optimizer_run(held, program), WEFT_ERR_STATE);
    weft_program_free(program);
}

/* Makes seven held steps, one by one or in one call. Returns the number of submissions. */
static uint64_t seven_steps(weft_context *ctx, weft_module *net, weft_optimizer *opt, bool many,
                            double *last) {
    double x[BATCH * IN], t[BATCH * OUT];
    weft_program *program;
    fill(x, BATCH * IN, 1);
    fill(t, BATCH * OUT, 2);
    weft_tensor *prediction = weft_forward(net, wide_from(ctx, SHAPE(BATCH, IN), x));
    weft_tensor *loss = weft_keep(weft_mse(prediction, wide_from(ctx, SHAPE(BATCH, OUT), t), WEFT_MEAN));
    assert_ok(weft_optimizer_hold(opt, loss, &program));
    uint64_t before = ctx->device->submissions;
    for (int step = 0; step < (many ? 0 : 7); step++) assert_ok(weft_optimizer_run(opt, program));
    if (many) assert_ok(weft_optimizer_run_many(opt, program, 7));
    before = ctx->device->submissions - before;
    *last = weft_item(loss);
    assert_true(weft_optimizer_steps(opt) == 7 && ctx->random.step == 7);
    assert_int_equal(weft_optimizer_run_many(opt, NULL, 2), WEFT_ERR_ARGUMENT);
    weft_program_free(program);
    return before;
}

/* Many steps in one call must equal as many calls. They take one submission. If each step has numbers of
 * its own (bias corrections, dropout masks), they take one submission per step. */
static void test_held_many(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        weft_context *ctx[2];
        weft_module *net[2];
        double last[2];
        for (int i = 0; i < 2; i++) {
            assert_ok(test_open(&(weft_open_options){.seed = 3}, &ctx[i]));
            net[i] = net_of(ctx[i], kind == 2 ? 0.3 : 0.0);
            weft_optimizer *opt =
                kind == 1 ? adamw_of(net[i]) : weft_sgd(net[i], &(weft_sgd_options){.lr = 0.1});
            uint64_t submissions = seven_steps(ctx[i], net[i], opt, i == 1, &last[i]);
            assert_int_equal(submissions, i == 1 && kind == 0 ? 1 : 7);
        }
        assert_same(net[0], net[1], 0.0);
        assert_true(last[0] == last[1]);
        weft_close(ctx[0]);
        weft_close(ctx[1]);
    }
}

/* ---- shared parameters ---- */

/* Each optimizer moves the parameters into its own block. Neither may work on a stale copy. */
static void test_two_optimizers(void **state) {
    weft_context *ctx = *state;
    weft_module *a = net_of(ctx, 0.0), *b = net_of(ctx, 0.0);
    copy_parameters(a, b);
    weft_optimizer *one = weft_sgd(a, &(weft_sgd_options){.lr = 0.1}),
                   *two = weft_sgd(a, &(weft_sgd_options){.lr = 0.1});
    weft_optimizer *single = weft_sgd(b, &(weft_sgd_options){.lr = 0.1});
    for (int step = 0; step < 4; step++) {
        step_whole(ctx, a, step % 2 ? one : two, step);
        step_whole(ctx, b, single, step);
    }
    assert_same(a, b, 0.0);
}

/* ---- state ---- */

static void test_state(void **state) {
    weft_context *ctx = *state;
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/weft-test-%ld-optimizer", folder ? folder : "/tmp", (long)getpid());
    weft_module *a = net_of(ctx, 0.0), *b = net_of(ctx, 0.0);
    weft_optimizer *x = adamw_of(a), *y = adamw_of(b);
    for (int step = 0; step < 3; step++) step_whole(ctx, a, x, step);
    assert_int_equal(weft_optimizer_state_count(x), 8);
    weft_named_tensor named;
    assert_true(weft_optimizer_state_get(x, 0, &named));
    assert_string_equal(named.name, "m.0.weight");
    assert_true(weft_optimizer_state_get(x, 3, &named));
    assert_string_equal(named.name, "v.0.bias");
    assert_false(weft_optimizer_state_get(x, 8, &named));
    weft_entry *entries = NULL;
    size_t count = 0;
    assert_ok(weft_optimizer_entries(x, &entries, &count));
    assert_ok(weft_safetensors_write(ctx, path, entries, count, NULL, 0));
    weft_entries_free(ctx, entries, count);
    weft_safetensors *file = NULL;
    assert_ok(weft_safetensors_open(ctx, path, &file));
    assert_ok(weft_optimizer_load_from(y, file));
    weft_optimizer *other = weft_sgd(b, &(weft_sgd_options){.lr = 1.0, .momentum = 0.5});
    assert_int_equal(weft_optimizer_load_from(other, file), WEFT_ERR_FORMAT);
    weft_safetensors_close(file);
    unlink(path);
    weft_optimizer_set_steps(y, weft_optimizer_steps(x));
    copy_parameters(a, b);
    for (int step = 3; step < 6; step++) {
        step_whole(ctx, a, x, step);
        step_whole(ctx, b, y, step);
    }
    assert_same(a, b, 0.0);
}

/* ---- losses that depend on no parameter ---- */

static void assert_refused(weft_status status, const char *where) {
    const char *said = weft_last_error(NULL);
    assert_int_equal(status, WEFT_ERR_ARGUMENT);
    if (!strstr(said, where) || !strstr(said, "none of the 4 parameters") || !strstr(said, "'0.weight'"))
        print_error("%s\n", said);
    assert_non_null(strstr(said, where));
    assert_non_null(strstr(said, "none of the 4 parameters to train ('0.weight', '0.bias', "));
}

/* Every kind of step must refuse such a loss and change nothing. */
static void test_loss_of_nothing(void **state) {
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx, 0.0), *other = net_of(ctx, 0.0);
    weft_optimizer *opt = adamw_of(net);
    int64_t n;
    double *before = all_of(net, &n);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *loss = loss_of(ctx, other, 0, 0, 4); /* the parameters of another module */
    weft_tensor *constant =
        weft_mean_at("model.py:7", weft_detach(loss_of(ctx, net, 0, 0, 4)), WEFT_ALL_AXES, false);
    weft_memory_plan plan;
    weft_program *program = NULL;
    assert_refused(weft_optimizer_step(opt, loss), "test_optim_laws.c:");
    assert_refused(weft_optimizer_step(opt, loss), "test_optim_laws.c:"); /* no program was cached */
    assert_refused(weft_optimizer_step(opt, constant), "model.py:7: adamw: ");
    assert_refused(weft_optimizer_accumulate(opt, constant, 0, 2), "model.py:7: ");
    assert_refused(weft_optimizer_add_gradients(opt, constant), "model.py:7: ");
    assert_refused(weft_optimizer_plan(opt, constant, 1, &plan), "model.py:7: ");
    assert_refused(weft_optimizer_hold(opt, constant, &program), "model.py:7: ");
    assert_null(program);
    assert_int_equal(weft_optimizer_steps(opt), 0);
    double *after = all_of(net, &n);
    assert_memory_equal(before, after, (size_t)n * sizeof *before);
    assert_ok(weft_optimizer_step(opt, loss_of(ctx, net, 0, 0, 4)));
    weft_scope_close(scope);
    free(before), free(after);
}

/* A loss that depends on one parameter is enough, even if its gradient is 0. */
static void test_loss_of_one(void **state) {
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx, 0.0);
    weft_optimizer *opt = adamw_of(net);
    assert_ok(weft_optimizer_scale_loss(opt, NULL));
    weft_parameter_info info;
    assert_true(weft_parameter_find(net, "0.bias", &info));
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *sum = weft_sum(info.tensor, WEFT_ALL_AXES, false), *detached = weft_detach(sum);
    assert_refused(weft_optimizer_step(opt, detached), "test_optim_laws.c:");
    assert_ok(weft_optimizer_step(opt, sum));
    weft_scope_close(scope);
    scope = weft_scope_open(ctx);
    assert_ok(weft_optimizer_step(opt, weft_sum(weft_sign(info.tensor), WEFT_ALL_AXES, false)));
    weft_scope_close(scope);
}

/* ---- determinism ---- */

static double *train(uint64_t seed, int64_t *n) {
    weft_context *ctx = NULL;
    assert_ok(test_open(&(weft_open_options){.seed = seed}, &ctx));
    weft_module *net = net_of(ctx, 0.3);
    weft_optimizer *opt = adamw_of(net);
    for (int step = 0; step < 5; step++) step_whole(ctx, net, opt, step);
    double *p = all_of(net, n);
    weft_close(ctx);
    return p;
}

static void test_same_seed(void **state) {
    (void)state;
    int64_t n;
    double *a = train(4, &n), *b = train(4, &n), *c = train(5, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
    assert_memory_not_equal(a, c, (size_t)n * sizeof *a);
    free(a), free(b), free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_accumulate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accumulate_dropout, setup, teardown),
        cmocka_unit_test(test_fused_against_unfused),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freezing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freezing_keeps_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held, setup, teardown),
        cmocka_unit_test(test_held_many),
        cmocka_unit_test_setup_teardown(test_two_optimizers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loss_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loss_of_one, setup, teardown),
        cmocka_unit_test(test_same_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
