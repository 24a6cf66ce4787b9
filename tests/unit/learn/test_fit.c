/* weft_fit and weft_module_evaluate: learning, histories, stopping and continuing, accumulation, masks, NaN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weft/fit.h>
#include "base/base.h"
#include "device.h"

enum { ROWS = 22, INPUTS = 2, WEIGHTS = 2 * 8 + 8 + 8 * 2 + 2 };

typedef struct setting {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    weft_loader *loader;
    float x[ROWS][INPUTS];
    int32_t y[ROWS];
} setting;

/* Two classes, separated by a curve. */
static void set_up(setting *s, int64_t batch, double lr) {
    memset(s, 0, sizeof *s);
    assert_int_equal(test_open(&(weft_open_options){.seed = 3}, &s->ctx), WEFT_OK);
    for (int i = 0; i < ROWS; i++) {
        s->x[i][0] = (float)(i % 5) - 2;
        s->x[i][1] = (float)(i % 7) - 3;
        s->y[i] = s->x[i][0] * s->x[i][0] > s->x[i][1];
    }
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s->x, sizeof s->x},
                     y = {WEFT_I32, 1, {ROWS}, s->y, sizeof s->y};
    s->net = weft_nn_mlp(s->ctx, (int64_t[]){INPUTS, 8, 2}, 3, NULL);
    s->opt = weft_adamw(s->net, &(weft_adam_options){.lr = lr});
    assert_int_equal(
        weft_loader_new(s->ctx, &x, &y, &(weft_loader_options){.batch = batch, .classes = 2}, &s->loader),
        WEFT_OK);
}

static void tear_down(setting *s) {
    weft_loader_free(s->loader);
    weft_close(s->ctx);
}

static void read_weights(setting *s, float out[WEIGHTS]) {
    size_t at = 0;
    for (size_t i = 0; i < weft_parameter_count(s->net); i++) {
        weft_parameter_info info;
        assert_true(weft_parameter_get(s->net, i, &info));
        size_t count = (size_t)weft_numel(info.tensor);
        assert_int_equal(weft_read(info.tensor, out + at, count * sizeof *out), WEFT_OK);
        at += count;
    }
    assert_int_equal(at, WEIGHTS);
}

typedef struct watch {
    uint64_t steps, stop_at, last;
    int epochs;
    double loss;
} watch;

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    watch *w = user;
    const weft_status status = weft_fit_losses(state, &w->loss, NULL);
    if (status != WEFT_OK) return status;
    w->steps++;
    w->last = state->step;
    *stop = state->step == w->stop_at;
    return WEFT_OK;
}

static weft_status on_epoch(void *user, const weft_fit_state *state, bool *stop) {
    watch *w = user;
    (void)state;
    (void)stop;
    w->epochs++;
    return WEFT_OK;
}

static weft_status refuse(void *user, const weft_fit_state *state, bool *stop) {
    (void)user;
    (void)stop;
    return state->step == 2 ? WEFT_ERR_IO : WEFT_OK;
}

static void it_learns_and_tells(void **state) {
    (void)state;
    setting s;
    weft_history history;
    watch w = {0};
    double loss, accuracy;
    set_up(&s, 8, 0.05);
    const weft_fit_options options = {
        .epochs = 60, .validation = s.loader, .on_step = on_step, .on_epoch = on_epoch, .user = &w};
    assert_int_equal(weft_fit(s.net, s.opt, s.loader, &options, &history), WEFT_OK);
    assert_int_equal(w.steps, 180); /* 22 samples are 3 batches, the last one padded */
    assert_int_equal(w.epochs, 60);
    assert_int_equal(history.count, 60);
    assert_int_equal(history.lines[59].step, 180);
    assert_false(history.stopped);
    assert_true(history.lines[59].loss < 0.5 * history.lines[0].loss);
    assert_int_equal(weft_module_evaluate(s.net, s.loader, WEFT_LOSS_CROSS_ENTROPY, &loss, &accuracy),
                     WEFT_OK);
    assert_true(loss == history.lines[59].val_loss);
    assert_true(accuracy == history.lines[59].val_accuracy && accuracy > 0.9);
    weft_history_free(&history);
    tear_down(&s);
}

/* Evaluation is the mean over unmasked samples, whatever the batch size. Padding changes nothing but the
 * order of the sums. */
static void evaluation_does_not_depend_on_batches(void **state) {
    (void)state;
    double expected = 0, expected_accuracy = 0;
    for (int64_t batch = 1; batch <= ROWS; batch++) {
        setting s;
        double loss, accuracy;
        set_up(&s, batch, 0.05);
        assert_int_equal(weft_module_evaluate(s.net, s.loader, WEFT_LOSS_CROSS_ENTROPY, &loss, &accuracy),
                         WEFT_OK);
        if (batch == 1) {
            expected = loss;
            expected_accuracy = accuracy;
        }
        assert_true(fabs(loss - expected) < 1e-6);
        assert_true(accuracy == expected_accuracy);
        tear_down(&s);
    }
}

static void stopping_and_going_on_is_as_if_unbroken(void **state) {
    (void)state;
    setting whole, cut;
    weft_history history;
    float a[WEIGHTS], b[WEIGHTS];
    watch w = {.stop_at = 17}, rest = {0};
    set_up(&whole, 8, 0.01);
    set_up(&cut, 8, 0.01);
    assert_int_equal(weft_fit(whole.net, whole.opt, whole.loader, &(weft_fit_options){.steps = 40}, NULL),
                     WEFT_OK);
    assert_int_equal(weft_fit(cut.net, cut.opt, cut.loader,
                              &(weft_fit_options){.steps = 40, .on_step = on_step, .user = &w}, &history),
                     WEFT_OK);
    assert_true(history.stopped);
    assert_int_equal(w.last, 17);
    weft_history_free(&history);
    assert_int_equal(weft_fit(cut.net, cut.opt, cut.loader,
                              &(weft_fit_options){.steps = 40, .on_step = on_step, .user = &rest}, NULL),
                     WEFT_OK);
    assert_int_equal(rest.steps, 23);
    read_weights(&whole, a);
    read_weights(&cut, b);
    assert_memory_equal(a, b, sizeof a);
    tear_down(&whole);
    tear_down(&cut);
}

/* Asks to stop at each possible point, one point later each time. */
typedef struct asking {
    int asks, stop_at; /* 0: never */
} asking;

static bool stops(void *user) {
    asking *a = user;
    return ++a->asks == a->stop_at;
}

static void interrupt(weft_context *ctx, asking *a, int stop_at) {
    *a = (asking){.stop_at = stop_at};
    ctx->caller.interrupted = stops;
    ctx->caller.interrupted_user = a;
}

/* With batch norm a forward pass assigns buffers. */
static weft_module *net_of(weft_context *ctx, bool assigns) {
    if (!assigns) return weft_nn_mlp(ctx, (int64_t[]){INPUTS, 8, 2}, 3, NULL);
    return weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, INPUTS, 8, NULL),
                              weft_nn_batch_norm(ctx, 8, NULL), weft_nn_linear(ctx, 8, 2, NULL), NULL);
}

enum { STOPPED_STEPS = 9, PARTS = 3, MOST = 128 };

/* Trains, stopping at every possible point or never. Returns how often it stopped. `out` gets parameters
 * and buffers. */
static int train_stopped(bool assigns, bool stopped, float out[MOST]) {
    setting s;
    asking a;
    weft_parameter_info info;
    int times = 0;
    size_t at = 0;
    set_up(&s, 11, 0.05);
    weft_module *net = net_of(s.ctx, assigns);
    weft_optimizer *opt = weft_adamw(net, &(weft_adam_options){.lr = 0.05});
    const weft_fit_options options = {.steps = STOPPED_STEPS, .accumulate = PARTS};
    for (weft_status status = WEFT_ERR_STOPPED; status != WEFT_OK; times++) {
        const uint64_t before = weft_optimizer_steps(opt);
        interrupt(s.ctx, &a, stopped ? times + 1 : 0);
        status = weft_fit(net, opt, s.loader, &options, NULL);
        if (status != WEFT_OK) assert_int_equal(status, WEFT_ERR_STOPPED);
        assert_true(weft_optimizer_steps(opt) >= before && times < 200);
    }
    for (size_t i = 0; weft_parameter_get(net, i, &info); i++) {
        const size_t count = (size_t)weft_numel(info.tensor);
        assert_true(at + count <= MOST);
        assert_ok(weft_read(info.tensor, out + at, count * sizeof *out));
        at += count;
    }
    tear_down(&s);
    return times - 1;
}

static void wherever_it_is_stopped_it_goes_on_as_if_unbroken(void **state) {
    (void)state;
    for (int assigns = 0; assigns < 2; assigns++) {
        float whole[MOST] = {0}, cut[MOST] = {0};
        assert_int_equal(train_stopped(assigns, false, whole), 0);
        assert_true(train_stopped(assigns, true, cut) > 3);
        assert_memory_equal(whole, cut, sizeof whole);
    }
}

static void an_evaluation_is_left_between_two_batches(void **state) {
    (void)state;
    setting s;
    asking a;
    double whole, loss = 0;
    int times = 0;
    set_up(&s, 2, 0.05);
    for (weft_status status = WEFT_ERR_STOPPED; status != WEFT_OK; times++) {
        interrupt(s.ctx, &a, times + 1);
        status = weft_module_evaluate(s.net, s.loader, WEFT_LOSS_CROSS_ENTROPY, &loss, NULL);
        assert_true(weft_module_is_training(s.net) && times < 100);
        if (status == WEFT_OK) continue;
        assert_int_equal(status, WEFT_ERR_STOPPED);
        assert_true(isnan(loss));
        assert_int_equal(a.asks, times + 1); /* the stop started no more work */
    }
    assert_true(times > 11); /* more stops than batches: compilations count too */
    interrupt(s.ctx, &a, 0);
    assert_ok(weft_module_evaluate(s.net, s.loader, WEFT_LOSS_CROSS_ENTROPY, &whole, NULL));
    assert_true(loss == whole);
    tear_down(&s);
}

/* 2 micro-batches of 11 samples are the same 22 samples as one batch, so the weights must agree up to
 * rounding. */
static void accumulation_is_the_big_batch(void **state) {
    (void)state;
    setting big, small;
    float a[WEIGHTS], b[WEIGHTS];
    set_up(&big, 22, 0.01);
    set_up(&small, 11, 0.01);
    assert_int_equal(weft_fit(big.net, big.opt, big.loader, &(weft_fit_options){.steps = 10}, NULL), WEFT_OK);
    assert_int_equal(
        weft_fit(small.net, small.opt, small.loader, &(weft_fit_options){.steps = 10, .accumulate = 2}, NULL),
        WEFT_OK);
    read_weights(&big, a);
    read_weights(&small, b);
    for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(a[i] - b[i]) < 2e-4f);
    assert_int_equal(weft_fit_epoch_steps(small.loader, 2), 1);
    tear_down(&big);
    tear_down(&small);
}

static weft_tensor *by_hand(void *user, weft_tensor *prediction, const weft_batch *batch) {
    (void)user;
    return weft_cross_entropy(prediction, batch->y,
                              &(weft_cross_entropy_options){.reduction = WEFT_NONE, .smoothing = 0.2});
}

/* Trains with steps of 8 samples, in so many parts. The 22 samples leave a short last step of 6. */
static void train_in_parts(int kind, int parts, watch *w, float out[WEIGHTS]) {
    setting s;
    float weights[ROWS];
    w->stop_at = UINT64_MAX;
    set_up(&s, ROWS, 0.1);
    for (int i = 0; i < ROWS; i++) weights[i] = i % 3 ? 1 : 20;
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s.x, sizeof s.x},
                     y = {WEFT_I32, 1, {ROWS}, s.y, sizeof s.y};
    const weft_loader_options of = {
        .batch = 8 / parts, .accumulate = parts, .weights = kind & 1 ? weights : NULL};
    weft_loader_free(s.loader);
    assert_ok(weft_loader_new(s.ctx, &x, &y, &of, &s.loader));
    const weft_fit_options options = {.steps = 7,
                                      .custom_loss = kind & 4 ? by_hand : NULL,
                                      .class_weights = kind & 2 ? (float[]){0.5F, 3} : NULL,
                                      .n_classes = kind & 2 ? 2 : 0,
                                      .on_step = on_step,
                                      .user = w};
    assert_ok(weft_fit(s.net, weft_sgd(s.net, &(weft_sgd_options){.lr = 0.1, .clip = 1}), s.loader, &options,
                       NULL));
    read_weights(&s, out);
    tear_down(&s);
}

/* A step in parts is the step of the whole batch, also if weights or the end of the data make the parts
 * unequal: with weights of samples, of classes, and a loss of the caller's. */
static void unequal_parts_are_the_big_batch(void **state) {
    (void)state;
    static const int kinds[] = {0, 1, 2, 3, 5};
    for (size_t i = test_on_cpu() ? 0 : 3; i < (test_on_cpu() ? 5 : 4); i++) {
        watch one = {0}, many = {0};
        float a[WEIGHTS], b[WEIGHTS];
        train_in_parts(kinds[i], 1, &one, a);
        for (int parts = test_on_cpu() ? 2 : 4; parts <= (test_on_cpu() ? 8 : 4); parts *= 2) {
            train_in_parts(kinds[i], parts, &many, b);
            for (int k = 0; k < WEIGHTS; k++) assert_true(fabsf(a[k] - b[k]) < 1e-5F);
            assert_true(fabs(one.loss - many.loss) < 1e-5);
        }
    }
}

/* A loader for steps of other lengths is refused. */
static void other_steps_are_refused(void **state) {
    (void)state;
    setting s;
    set_up(&s, 4, 0.1);
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s.x, sizeof s.x},
                     y = {WEFT_I32, 1, {ROWS}, s.y, sizeof s.y};
    weft_loader_free(s.loader);
    assert_ok(weft_loader_new(s.ctx, &x, &y, &(weft_loader_options){.batch = 4, .accumulate = 2}, &s.loader));
    assert_int_equal(weft_fit(s.net, s.opt, s.loader, &(weft_fit_options){.steps = 1, .accumulate = 3}, NULL),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(s.ctx), "options.accumulate is 3, but 2 for the loader"));
    tear_down(&s);
}

/* Several replicas split the micro-batches of a step. If each has one micro-batch, the bits equal those of
 * one model that computes them all. */
static void replicas_share_a_step(void **state) {
    (void)state;
    enum { COPIES = 3, STEPS = 9 };
    setting one, s[COPIES];
    float a[WEIGHTS], b[WEIGHTS];
    weft_replica replicas[COPIES - 1];
    if (!test_on_cpu())
        return skip(); /* on other devices each variant compiles kernels; for GPUs see test_cuda_nccl.c */
    for (int copies = 2; copies <= COPIES; copies++)
        for (int each = 1; each <= 2; each++) {
            watch w = {0}, all = {0};
            const int parts = copies * each;
            set_up(&one, 4, 0.02);
            for (int i = 0; i < copies; i++) set_up(&s[i], 4, 0.02);
            for (int i = 1; i < copies; i++)
                replicas[i - 1] = (weft_replica){s[i].net, s[i].opt, s[i].loader};
            weft_fit_options options = {.steps = STEPS, .accumulate = parts, .on_step = on_step, .user = &w};
            assert_ok(weft_fit(one.net, one.opt, one.loader, &options, NULL));
            options.user = &all;
            options.replicas = replicas;
            options.n_replicas = (size_t)copies - 1;
            assert_ok(weft_fit(s[0].net, s[0].opt, s[0].loader, &options, NULL));
            read_weights(&one, a);
            read_weights(&s[0], b);
            for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(a[i] - b[i]) < 1e-5f);
            if (each == 1 && copies == 2) assert_memory_equal(a, b, sizeof a);
            if (each == 1 && copies == 2) assert_true(w.loss == all.loss);
            assert_true(fabs(w.loss - all.loss) < 1e-6);
            for (int i = 1; i < copies; i++) {
                read_weights(&s[i], a);
                assert_memory_equal(a, b, sizeof a);
                assert_int_equal(weft_optimizer_steps(s[i].opt), STEPS);
                tear_down(&s[i]);
            }
            tear_down(&s[0]);
            tear_down(&one);
        }
}

static void bad_replicas_are_refused(void **state) {
    (void)state;
    setting a, b;
    float weights[WEIGHTS];
    if (!test_on_cpu()) return skip(); /* the device makes no difference */
    set_up(&a, 4, 0.02);
    set_up(&b, 11, 0.02);
    const weft_replica other = {b.net, b.opt, b.loader};
    weft_fit_options options = {.steps = 1, .accumulate = 3, .replicas = &other, .n_replicas = 1};
    assert_int_equal(weft_fit(a.net, a.opt, a.loader, &options, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(
        strstr(weft_last_error(a.ctx), "the 3 batches of a step cannot be divided evenly among 2"));
    options.accumulate = 2;
    assert_int_equal(weft_fit(a.net, a.opt, a.loader, &options, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(a.ctx), "replica 1 has made 0 steps and has 2 batches"));
    weft_optimizer *const both[2] = {a.opt, b.opt};
    assert_int_equal(weft_optimizer_all_reduce(both, 2), WEFT_ERR_STATE);
    assert_non_null(strstr(weft_last_error(a.ctx), "has accumulated no gradients"));
    assert_int_equal(weft_optimizer_update(a.opt, 1), WEFT_ERR_STATE);
    weft_module *small = weft_nn_mlp(b.ctx, (int64_t[]){INPUTS, 2}, 2, NULL);
    weft_optimizer *const unlike[2] = {a.opt, weft_adamw(small, &(weft_adam_options){.lr = 0.1})};
    for (int i = 0; i < 2; i++) {
        weft_context *ctx = i ? b.ctx : a.ctx;
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = weft_full(ctx, WEFT_F32, 2, (int64_t[]){1, INPUTS}, 0.5);
        assert_ok(weft_optimizer_add_gradients(
            unlike[i], weft_sum(weft_forward(i ? small : a.net, x), WEFT_ALL_AXES, false)));
        weft_scope_close(scope);
    }
    assert_int_equal(weft_optimizer_all_reduce(unlike, 2), WEFT_ERR_SHAPE);
    assert_int_equal(weft_optimizer_update(a.opt, 0), WEFT_ERR_STATE);
    read_weights(&a, weights); /* both must still be usable */
    assert_ok(weft_fit(a.net, a.opt, a.loader, &(weft_fit_options){.steps = 2}, NULL));
    tear_down(&a);
    tear_down(&b);
}

static void a_loss_that_is_no_number_names_step_and_samples(void **state) {
    (void)state;
    setting s;
    watch w = {0};
    set_up(&s, 8, 0.01);
    s.x[4][1] = NAN; /* too late for the loader in place, which uploaded x: only a new loader sees it */
    weft_loader_free(s.loader);
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s.x, sizeof s.x},
                     y = {WEFT_I32, 1, {ROWS}, s.y, sizeof s.y};
    assert_int_equal(
        weft_loader_new(s.ctx, &x, &y, &(weft_loader_options){.batch = 2, .in_order = true}, &s.loader),
        WEFT_OK);
    const weft_fit_options options = {.steps = 40, .on_step = on_step, .user = &w};
    assert_int_equal(weft_fit(s.net, s.opt, s.loader, &options, NULL), WEFT_ERR_NUMERIC);
    assert_int_equal(w.last, 2);
    assert_non_null(strstr(weft_last_error(s.ctx), "step 3"));
    assert_non_null(strstr(weft_last_error(s.ctx), "samples 4, 5"));
    tear_down(&s);
}

static void callbacks_and_bad_calls_end_it(void **state) {
    (void)state;
    setting s;
    set_up(&s, 8, 0.01);
    assert_int_equal(
        weft_fit(s.net, s.opt, s.loader, &(weft_fit_options){.steps = 9, .on_step = refuse}, NULL),
        WEFT_ERR_IO);
    assert_int_equal(weft_optimizer_steps(s.opt), 2);
    assert_int_equal(weft_fit(s.net, s.opt, s.loader, NULL, NULL), WEFT_ERR_ARGUMENT);
    weft_loader *blind = NULL;
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s.x, sizeof s.x};
    assert_int_equal(weft_loader_new(s.ctx, &x, NULL, &(weft_loader_options){.batch = 2}, &blind), WEFT_OK);
    assert_int_equal(weft_fit(s.net, s.opt, blind, &(weft_fit_options){.steps = 9}, NULL), WEFT_ERR_ARGUMENT);
    weft_loader_free(blind);
    tear_down(&s);
}

/* An evaluation between steps leaves training unchanged, dropout included. */
static void evaluation_does_not_change_training(void **state) {
    (void)state;
    float weights[2][WEIGHTS];
    for (int evaluates = 0; evaluates < 2; evaluates++) {
        setting s;
        double loss;
        set_up(&s, 8, 0.01);
        weft_module *net =
            weft_nn_mlp(s.ctx, (int64_t[]){INPUTS, 8, 2}, 3, &(weft_mlp_options){.dropout = 0.3});
        weft_optimizer *opt = weft_adamw(net, &(weft_adam_options){.lr = 0.01});
        s.net = net;
        for (uint64_t steps = 1; steps <= 12; steps++) {
            assert_int_equal(weft_fit(net, opt, s.loader, &(weft_fit_options){.steps = steps}, NULL),
                             WEFT_OK);
            if (evaluates)
                assert_int_equal(weft_module_evaluate(net, s.loader, WEFT_LOSS_CROSS_ENTROPY, &loss, NULL),
                                 WEFT_OK);
        }
        read_weights(&s, weights[evaluates]);
        tear_down(&s);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_and_tells),
        cmocka_unit_test(evaluation_does_not_depend_on_batches),
        cmocka_unit_test(stopping_and_going_on_is_as_if_unbroken),
        cmocka_unit_test(wherever_it_is_stopped_it_goes_on_as_if_unbroken),
        cmocka_unit_test(an_evaluation_is_left_between_two_batches),
        cmocka_unit_test(accumulation_is_the_big_batch),
        cmocka_unit_test(unequal_parts_are_the_big_batch),
        cmocka_unit_test(other_steps_are_refused),
        cmocka_unit_test(replicas_share_a_step),
        cmocka_unit_test(bad_replicas_are_refused),
        cmocka_unit_test(a_loss_that_is_no_number_names_step_and_samples),
        cmocka_unit_test(callbacks_and_bad_calls_end_it),
        cmocka_unit_test(evaluation_does_not_change_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
