/* Dynamic loss scaling. Without overflow it changes nothing. A step whose gradient is not finite changes
 * nothing but the scale. Scale and counters are restored from a file. The tests use f32, which overflows
 * just as well. */
#include <unistd.h>
#include "unit/nn_help.h"

enum { IN = 4, HIDDEN = 6, OUT = 3, BATCH = 12 };

/* Two contexts of one seed give the same first network. */
static weft_module *net_of(weft_context *ctx) {
    return weft_nn_mlp(ctx, (int64_t[]){IN, HIDDEN, OUT}, 3, &(weft_mlp_options){.activation = WEFT_TANH});
}

static weft_tensor *rows_of(weft_context *ctx, int salt, int first, int rows, int columns, float size) {
    double wide[BATCH * IN];
    float values[BATCH * IN];
    fill(wide, BATCH * columns, salt);
    for (int i = 0; i < BATCH * columns; i++) values[i] = size * (float)wide[i];
    return weft_from(ctx, WEFT_F32, SHAPE(rows, columns), values + first * columns);
}

static weft_tensor *loss_of(weft_context *ctx, weft_module *net, int step, int first, int rows, float size) {
    weft_tensor *y = weft_forward(net, rows_of(ctx, 100 + step, first, rows, IN, 1));
    return weft_mse(y, rows_of(ctx, 200 + step, first, rows, OUT, size), WEFT_MEAN);
}

/* `size` scales the targets, and so the gradients. */
static void step_of(weft_context *ctx, weft_module *net, weft_optimizer *opt, int step, float size) {
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(weft_optimizer_step(opt, loss_of(ctx, net, step, 0, BATCH, size)));
    weft_scope_close(scope);
}

static weft_optimizer *make(weft_module *net, int kind) {
    switch (kind) {
    case 0:
        return weft_sgd(net, &(weft_sgd_options){
                                 .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .clip = 0.5, .l1 = 0.002});
    case 1: return weft_rmsprop(net, &(weft_rmsprop_options){.lr = 0.01, .momentum = 0.5});
    case 2: return weft_adam(net, &(weft_adam_options){.lr = 0.02, .weight_decay = 0.1, .l1 = 0.02});
    default: return weft_adamw(net, &(weft_adam_options){.lr = 0.02, .weight_decay = 0.1, .clip = 0.5});
    }
}
enum { KINDS = 4 };

/* A device that compiles its kernels tests only two of the four kinds. */
static int next_kind(int kind) { return kind + (test_on_cpu() ? 1 : KINDS - 1); }

/* Everything that a step changes: parameters, then optimizer states without those of loss scaling. The
 * caller frees the result. */
static double *all_of(weft_module *m, weft_optimizer *opt, int64_t *count) {
    double *out = calloc(4096, sizeof *out);
    int64_t at = 0;
    weft_parameter_info info;
    weft_named_tensor state;
    for (size_t i = 0; weft_parameter_get(m, i, &info); i++) {
        double *v = values_of(info.tensor);
        memcpy(out + at, v, (size_t)weft_numel(info.tensor) * sizeof *v);
        at += weft_numel(info.tensor);
        free(v);
    }
    for (size_t i = 0; weft_optimizer_state_get(opt, i, &state); i++) {
        if (strncmp(state.name, "loss_scale", 10) == 0) continue;
        double *v = values_of(state.tensor);
        memcpy(out + at, v, (size_t)weft_numel(state.tensor) * sizeof *v);
        at += weft_numel(state.tensor);
        free(v);
    }
    *count = at;
    return out;
}

static void assert_same(weft_module *a, weft_optimizer *x, weft_module *b, weft_optimizer *y,
                        double relative) {
    int64_t n, m;
    double *p = all_of(a, x, &n), *q = all_of(b, y, &m);
    assert_int_equal(n, m);
    assert_close(p, q, n, relative);
    free(p);
    free(q);
}

typedef struct pair {
    weft_context *ctx[2];
    weft_module *net[2];
    weft_optimizer *opt[2]; /* the second one scales its loss */
} pair;

static void open_pair(pair *p, int kind, const weft_loss_scale_options *options) {
    for (int i = 0; i < 2; i++) {
        assert_ok(test_open(&(weft_open_options){.seed = 3}, &p->ctx[i]));
        p->net[i] = net_of(p->ctx[i]);
        p->opt[i] = make(p->net[i], kind);
    }
    assert_ok(weft_optimizer_scale_loss(p->opt[1], options));
    assert_true(isnan(weft_optimizer_loss_scale(p->opt[0])));
    assert_int_equal(weft_optimizer_updates(p->opt[0]), 0);
}

static void close_pair(pair *p) {
    weft_close(p->ctx[0]);
    weft_close(p->ctx[1]);
}

/* A power of two cancels exactly. Adam's corrections are computed in f32 on the device. */
static void test_nothing_changes(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind = next_kind(kind)) {
        pair p;
        open_pair(&p, kind, NULL);
        assert_true(weft_optimizer_loss_scale(p.opt[1]) == 65536);
        for (int step = 0; step < 5; step++)
            for (int i = 0; i < 2; i++) step_of(p.ctx[i], p.net[i], p.opt[i], step, 1);
        assert_same(p.net[0], p.opt[0], p.net[1], p.opt[1], kind < 2 ? 0 : 1e-6);
        assert_int_equal(weft_optimizer_updates(p.opt[1]), 5);
        close_pair(&p);
    }
}

/* Gradients of about 100 times 2^126 overflow until the scale is lower. The result must be as if the
 * skipped steps had not happened. */
static void test_skipped(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind = next_kind(kind)) {
        pair p;
        open_pair(&p, kind, &(weft_loss_scale_options){.init = 0x1p126});
        uint64_t skipped = 0;
        for (; skipped < 20; skipped++) {
            int64_t n, m;
            double *before = all_of(p.net[1], p.opt[1], &n);
            step_of(p.ctx[1], p.net[1], p.opt[1], 0, 100);
            if (weft_optimizer_updates(p.opt[1])) {
                free(before);
                break;
            }
            double *after = all_of(p.net[1], p.opt[1], &m);
            assert_memory_equal(before, after, (size_t)n * sizeof *before);
            assert_true(weft_optimizer_loss_scale(p.opt[1]) == ldexp(0x1p125, -(int)skipped));
            free(before);
            free(after);
        }
        assert_true(skipped >= 2 && skipped < 20);
        assert_int_equal(weft_optimizer_steps(p.opt[1]), skipped + 1);
        step_of(p.ctx[1], p.net[1], p.opt[1], 1, 1);
        for (int step = 0; step < 2; step++) step_of(p.ctx[0], p.net[0], p.opt[0], step, step ? 1 : 100);
        assert_same(p.net[0], p.opt[0], p.net[1], p.opt[1], kind < 2 ? 0 : 1e-6);
        close_pair(&p);
    }
}

/* A NaN among the gradients of one parameter is enough, and it must not spread. */
static void test_nan(void **state) {
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx);
    weft_optimizer *opt = make(net, 3);
    assert_ok(weft_optimizer_scale_loss(opt, NULL));
    step_of(ctx, net, opt, 0, 1);
    int64_t n, m;
    double *before = all_of(net, opt, &n);
    step_of(ctx, net, opt, 1, NAN);
    double *after = all_of(net, opt, &m);
    assert_memory_equal(before, after, (size_t)n * sizeof *before);
    assert_true(weft_optimizer_loss_scale(opt) == 32768);
    assert_true(isnan(weft_optimizer_grad_norm(opt)));
    step_of(ctx, net, opt, 2, 1);
    assert_true(isfinite(weft_optimizer_grad_norm(opt)));
    assert_int_equal(weft_optimizer_updates(opt), 2);
    free(before);
    free(after);
}

/* The scale grows after `interval` good steps in a row. A bad step restarts the count. The scale never
 * becomes infinite. */
static void test_growth(void **state) {
    if (!test_on_cpu())
        return skip(); /* the device makes no difference; other devices would compile kernels */
    weft_context *ctx = *state;
    weft_module *net = net_of(ctx);
    weft_optimizer *opt = make(net, 3);
    const weft_loss_scale_options options = {.init = 64, .growth = 4, .backoff = 0.125, .interval = 3};
    const float sizes[] = {1, 1, NAN, 1, 1, 1, 1, 1, 1, NAN};
    const double scales[] = {64, 64, 8, 8, 8, 32, 32, 32, 128, 16};
    assert_ok(weft_optimizer_scale_loss(opt, &options));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        step_of(ctx, net, opt, (int)i, sizes[i]);
        assert_true(weft_optimizer_loss_scale(opt) == scales[i]);
    }
    assert_ok(weft_optimizer_scale_loss(opt, &(weft_loss_scale_options){.init = 0x1p127, .interval = 1}));
    assert_ok(weft_optimizer_set_lr(opt, 0));
    weft_tensor *zero = weft_mul_scalar(loss_of(ctx, net, 0, 0, BATCH, 1), 0);
    assert_ok(weft_optimizer_step(opt, zero));
    assert_true(weft_optimizer_loss_scale(opt) == 0x1p127);
}

/* All micro-batches of a step share one scale, one decision and one clipping, like the whole batch. */
static void test_accumulation(void **state) {
    if (!test_on_cpu())
        return skip(); /* the device makes no difference; other devices would compile kernels */
    (void)state;
    for (int kind = 0; kind < KINDS; kind = next_kind(kind)) {
        pair p;
        enum { PARTS = 3, ROWS = BATCH / PARTS };
        open_pair(&p, kind, &(weft_loss_scale_options){.interval = 2});
        for (int step = 0; step < 5; step++) {
            const bool bad = step == 2;
            if (!bad) step_of(p.ctx[0], p.net[0], p.opt[0], step, 1);
            for (int k = 0; k < PARTS; k++) {
                weft_scope *scope = weft_scope_open(p.ctx[1]);
                weft_tensor *loss =
                    loss_of(p.ctx[1], p.net[1], step, k * ROWS, ROWS, bad && k == 1 ? INFINITY : 1);
                assert_ok(weft_optimizer_accumulate(p.opt[1], loss, k, PARTS));
                weft_scope_close(scope);
            }
        }
        assert_same(p.net[0], p.opt[0], p.net[1], p.opt[1], 2e-5);
        assert_int_equal(weft_optimizer_updates(p.opt[1]), 4);
        assert_true(weft_optimizer_loss_scale(p.opt[1]) == 131072); /* the scale grew, shrank and grew */
        close_pair(&p);
    }
}

static void step_with(weft_context *ctx, weft_module *net, weft_optimizer *opt, int step) {
    step_of(ctx, net, opt, step, step % 4 == 3 ? INFINITY : 1);
}

static void test_resumed(void **state) {
    weft_context *ctx = *state, *other = NULL;
    char path[] = "/tmp/weft-scale-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const weft_loss_scale_options options = {.interval = 2};
    weft_module *net = net_of(ctx);
    weft_optimizer *opt = make(net, 3);
    assert_ok(weft_optimizer_scale_loss(opt, &options));
    for (int step = 0; step < 6; step++) step_with(ctx, net, opt, step);
    weft_entry *entries;
    size_t count;
    assert_ok(weft_optimizer_entries(opt, &entries, &count));
    assert_ok(weft_safetensors_write(ctx, path, entries, count, NULL, 0));
    weft_entries_free(ctx, entries, count);

    assert_ok(test_open(&(weft_open_options){.seed = 5}, &other));
    weft_module *again = net_of(other);
    assert_ok(weft_module_copy(again, net));
    weft_optimizer *resumed = make(again, 3);
    weft_safetensors *file;
    assert_ok(weft_safetensors_open(other, path, &file));
    assert_int_equal(weft_optimizer_load_from(resumed, file), WEFT_ERR_FORMAT); /* it scales no loss */
    assert_ok(weft_optimizer_scale_loss(resumed, &options));
    assert_ok(weft_optimizer_load_from(resumed, file));
    weft_optimizer_set_steps(resumed, weft_optimizer_steps(opt));
    weft_safetensors_close(file);
    for (int step = 6; step < 12; step++) {
        step_with(ctx, net, opt, step);
        step_with(other, again, resumed, step);
        assert_true(weft_optimizer_loss_scale(opt) == weft_optimizer_loss_scale(resumed));
    }
    assert_same(net, opt, again, resumed, 0);
    assert_int_equal(weft_optimizer_updates(resumed), 9);
    weft_close(other);
    unlink(path);
}

/* A held program runs many steps at once. The device alone counts the good steps. */
static void test_held(void **state) {
    if (!test_on_cpu())
        return skip(); /* the device makes no difference; other devices would compile kernels */
    (void)state;
    pair p;
    weft_program *program;
    open_pair(&p, 3, &(weft_loss_scale_options){.init = 0x1p126});
    weft_tensor *loss = weft_keep(loss_of(p.ctx[1], p.net[1], 0, 0, BATCH, 100));
    assert_ok(weft_optimizer_hold(p.opt[1], loss, &program));
    assert_int_equal(weft_optimizer_scale_loss(p.opt[1], NULL), WEFT_ERR_STATE);
    assert_ok(weft_optimizer_run_many(p.opt[1], program, 20));
    const int updates = (int)weft_optimizer_updates(p.opt[1]);
    assert_true(updates > 5 && updates < 19);
    for (int i = 0; i < updates; i++) step_of(p.ctx[0], p.net[0], p.opt[0], 0, 100);
    assert_same(p.net[0], p.opt[0], p.net[1], p.opt[1], 1e-5);
    weft_program_free(program);
    close_pair(&p);
}

static void test_arguments(void **state) {
    weft_context *ctx = *state;
    weft_optimizer *opt = make(net_of(ctx), 3);
    const weft_loss_scale_options bad[] = {{.init = -1},
                                           {.init = 1e39},
                                           {.init = NAN},
                                           {.growth = 0.5},
                                           {.backoff = 1},
                                           {.backoff = -1},
                                           {.interval = -1},
                                           {.growth = INFINITY},
                                           {.backoff = NAN},
                                           {.init = INFINITY},
                                           {.interval = INT64_C(1) << 31}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(weft_optimizer_scale_loss(opt, &bad[i]), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(weft_last_error(ctx), "loss scale"));
    }
    assert_true(isnan(weft_optimizer_loss_scale(opt)));
    assert_int_equal(weft_optimizer_scale_loss(NULL, NULL), WEFT_ERR_ARGUMENT);
    assert_ok(weft_optimizer_scale_loss(opt, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accumulation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
