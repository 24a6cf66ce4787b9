/* Training loops on a GPU device: what is transferred and when, losses that are read late or never, a lost
 * device, and constant memory. */
#include <math.h>
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
enum { ROWS = 22, IN = 3, CLASSES = 2, BATCH = 8, STEPS = 120, WARM = 70, EVERY = 10 };

/* ---- a small classifier, and the counters of its loop ---- */

typedef struct setting {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *adam;
    weft_loader *loader;
    float x[ROWS][IN];
    int32_t y[ROWS];
} setting;

static void set_up(setting *s, const char *device, const weft_loader_options *options) {
    memset(s, 0, sizeof *s);
    assert_int_equal(weft_open(&(weft_open_options){.device = device, .seed = 3}, &s->ctx), WEFT_OK);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < IN; j++) s->x[i][j] = (float)((i * 37 + j * 11) % 19) / 10 - 1;
        s->y[i] = s->x[i][0] * s->x[i][1] > 0;
    }
    const weft_array x = {WEFT_F32, 2, {ROWS, IN}, s->x, sizeof s->x},
                     y = {WEFT_I32, 1, {ROWS}, s->y, sizeof s->y};
    s->net = weft_nn_mlp(s->ctx, (int64_t[]){IN, 8, CLASSES}, 3, NULL);
    s->adam = weft_adam(s->net, &(weft_adam_options){.lr = 0.02});
    assert_int_equal(weft_loader_new(s->ctx, &x, &y, options, &s->loader), WEFT_OK);
}

static void tear_down(setting *s) {
    weft_loader_free(s->loader);
    weft_close(s->ctx);
}

typedef struct counts {
    uint64_t uploads, downloads, submissions;
    int contexts, buffers, kernels, compiles;
} counts;

static counts count(const weft_context *ctx) {
    const weft_device *d = ctx->device;
    const weft__gpu_hooks *h = &weft__gpu_hook;
    return (counts){d->uploads, d->downloads, d->submissions, h->contexts,
                    h->buffers, h->kernels,   h->compiles};
}

typedef struct watch {
    weft_context *ctx;
    uint64_t every;      /* reads the losses every so many steps; 0: never */
    uint64_t lost_after; /* the device is lost after this step; 0: never */
    counts last, warm;
    uint64_t most_uploads; /* largest number in one step */
    double losses[STEPS];
} watch;

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    watch *w = user;
    const counts now = count(w->ctx);
    (void)stop;
    if (state->step > WARM) {
        assert_int_equal(now.submissions - w->last.submissions, 1);
        assert_int_equal(now.downloads, w->last.downloads);
        if (now.uploads - w->last.uploads > w->most_uploads) w->most_uploads = now.uploads - w->last.uploads;
    }
    if (state->step == w->lost_after) weft__gpu_hook.lose_device = 1;
    if (w->every && state->step % w->every == 0)
        WEFT_TRY(weft_fit_losses(state, &w->losses[state->step - 1], NULL));
    w->last = count(w->ctx);
    if (state->step == WARM) w->warm = w->last;
    return WEFT_OK;
}

/* ---- transfers ---- */

/* Each step has one submission, one upload of the batch and one of the learning rate. Nothing is downloaded
 * until a loss is read, and nothing is allocated after the first steps. 22 rows are batches of 8, 8 and 6, so
 * this includes padding. */
static void test_a_step_uploads_its_batch(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    for (int host = 0; host < 2; host++) {
        setting s;
        set_up(&s, test_gpu(),
               &(weft_loader_options){.batch = BATCH, .classes = CLASSES, .device_bytes = host ? -1 : 0});
        watch w = {.ctx = s.ctx, .every = EVERY};
        assert_int_equal(weft_loader_on_device(s.loader), !host);
        const weft_fit_options options = {.steps = STEPS, .on_step = on_step, .user = &w};
        assert_int_equal(weft_fit(s.net, s.adam, s.loader, &options, NULL), WEFT_OK);
        assert_int_equal(w.most_uploads, 2);
        const counts end = count(s.ctx);
        assert_true(end.contexts == w.warm.contexts && end.buffers == w.warm.buffers &&
                    end.kernels == w.warm.kernels && end.compiles == w.warm.compiles);
        tear_down(&s);
    }
}

static weft_tensor *model(weft_context *ctx, int kind, weft_module *net, weft_tensor *x, weft_tensor *y) {
    (void)ctx;
    weft_tensor *out = weft_forward(net, x);
    return kind == 0 ? weft_mse(out, y, WEFT_MEAN) : weft_bce_with_logits(out, y, WEFT_MEAN);
}

/* Linear and logistic regression and XOR on data that stay on the device. All uploads come before the second
 * step. At the end each weight is downloaded once. */
static void test_resident_data_are_uploaded_once(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    for (int kind = 0; kind < 3; kind++) {
        weft_context *ctx;
        weft_program *program;
        float x[ROWS * 2], y[ROWS], values[16];
        for (int i = 0; i < ROWS; i++) {
            x[2 * i] = (float)(i % 2), x[2 * i + 1] = (float)(i / 2 % 2);
            y[i] = kind == 2 ? (float)(i % 2 != i / 2 % 2) : (float)(i % 2);
        }
        assert_int_equal(weft_open(&(weft_open_options){.device = test_gpu(), .seed = 1}, &ctx), WEFT_OK);
        weft_module *net = kind == 2 ? weft_nn_sequential(ctx, "xor", weft_nn_linear(ctx, 2, 8, NULL),
                                                          weft_nn_activation(ctx, WEFT_TANH),
                                                          weft_nn_linear(ctx, 8, 1, NULL), NULL)
                                     : weft_nn_linear(ctx, 2, 1, NULL);
        weft_optimizer *sgd = weft_sgd(net, &(weft_sgd_options){.lr = 0.5});
        weft_tensor *loss = model(ctx, kind, net, weft_from(ctx, WEFT_F32, SHAPE(ROWS, 2), x),
                                  weft_from(ctx, WEFT_F32, SHAPE(ROWS, 1), y));
        assert_int_equal(weft_optimizer_hold(sgd, loss, &program), WEFT_OK);
        assert_int_equal(weft_optimizer_run(sgd, program), WEFT_OK);
        const counts first = count(ctx);
        assert_int_equal(first.uploads, 4); /* x, y, the weights, the rate */
        for (int i = 0; i < 300; i++) assert_int_equal(weft_optimizer_run(sgd, program), WEFT_OK);
        assert_int_equal(weft_optimizer_run_many(sgd, program, 300), WEFT_OK);
        const counts last = count(ctx);
        assert_int_equal(last.uploads, first.uploads);
        assert_int_equal(last.downloads, first.downloads);
        assert_int_equal(last.submissions - first.submissions, 301);
        assert_true(last.buffers == first.buffers && last.compiles == first.compiles);
        const size_t n = weft_parameter_count(net);
        for (size_t i = 0; i < n; i++) {
            weft_parameter_info info;
            assert_true(weft_parameter_get(net, i, &info));
            assert_int_equal(weft_read(info.tensor, values, (size_t)weft_numel(info.tensor) * sizeof *values),
                             WEFT_OK);
        }
        assert_int_equal(count(ctx).downloads - last.downloads, n);
        assert_true(weft_item(loss) < (kind == 0 ? 1e-4 : 0.05));
        weft_program_free(program);
        weft_close(ctx);
    }
}

/* A data set used as a single batch in its order is uploaded only once too. */
static void test_one_batch_is_uploaded_once(void **state) {
    (void)state;
    setting s;
    if (test_without_gpu()) return skip();
    set_up(&s, test_gpu(), &(weft_loader_options){.batch = ROWS, .in_order = true});
    weft_optimizer *sgd = weft_sgd(s.net, &(weft_sgd_options){.lr = 0.1});
    assert_int_equal(weft_fit(s.net, sgd, s.loader, &(weft_fit_options){.steps = 1}, NULL), WEFT_OK);
    const uint64_t uploads = s.ctx->device->uploads;
    assert_int_equal(weft_fit(s.net, sgd, s.loader, &(weft_fit_options){.steps = 50}, NULL), WEFT_OK);
    assert_int_equal(s.ctx->device->uploads, uploads);
    tear_down(&s);
}

/* ---- losses ---- */

/* Losses read every step, every tenth step, and on the CPU are the same numbers, with equal bits on one
 * device. */
static void test_losses_do_not_depend_on_looking(void **state) {
    (void)state;
    static watch w[3];
    if (test_without_gpu()) return skip();
    for (int i = 0; i < 3; i++) {
        setting s;
        set_up(&s, i == 2 ? "cpu" : test_gpu(), &(weft_loader_options){.batch = BATCH});
        w[i] = (watch){.ctx = s.ctx, .every = i == 1 ? EVERY : 1};
        const weft_fit_options options = {.steps = WARM, .accumulate = 2, .on_step = on_step, .user = &w[i]};
        assert_int_equal(weft_fit(s.net, s.adam, s.loader, &options, NULL), WEFT_OK);
        tear_down(&s);
    }
    for (int i = EVERY - 1; i < WARM; i += EVERY) {
        assert_true(w[0].losses[i] == w[1].losses[i]);
        assert_true(fabs(w[0].losses[i] - w[2].losses[i]) <= 2e-5 * w[2].losses[i]);
    }
    assert_true(w[0].losses[WARM - 1] < 0.9 * w[0].losses[0]);
}

static void test_divergence_names_its_step(void **state) {
    (void)state;
    setting s;
    if (test_without_gpu()) return skip();
    set_up(&s, test_gpu(), &(weft_loader_options){.batch = BATCH});
    weft_loader_free(s.loader);
    s.x[5][1] = NAN;
    const weft_array x = {WEFT_F32, 2, {ROWS, IN}, s.x, sizeof s.x},
                     y = {WEFT_I32, 1, {ROWS}, s.y, sizeof s.y};
    assert_int_equal(
        weft_loader_new(s.ctx, &x, &y, &(weft_loader_options){.batch = 2, .in_order = true}, &s.loader),
        WEFT_OK);
    watch w = {.ctx = s.ctx, .every = EVERY};
    const weft_fit_options options = {.steps = STEPS, .on_step = on_step, .user = &w};
    assert_int_equal(weft_fit(s.net, s.adam, s.loader, &options, NULL), WEFT_ERR_NUMERIC);
    assert_non_null(
        strstr(weft_last_error(s.ctx), "step 3: the loss is nan (seen after step 10), on samples 4, 5"));
    tear_down(&s);
}

static void test_device_is_lost_in_a_loop(void **state) {
    (void)state;
    setting s;
    if (test_without_gpu()) return skip();
    set_up(&s, test_gpu(), &(weft_loader_options){.batch = BATCH});
    watch w = {.ctx = s.ctx, .lost_after = 7};
    const weft_fit_options options = {.steps = STEPS, .on_step = on_step, .user = &w};
    assert_int_equal(weft_fit(s.net, s.adam, s.loader, &options, NULL), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(s.ctx), "the device is lost"));
    tear_down(&s); /* and nothing hangs */
    weft__gpu_hook.lose_device = 0;
}

/* ---- memory ---- */

enum { VOCABULARY = 11, CONTEXT = 8, SOAK = 5000 };

/* A step on a batch whose sizes differ from the last one's. */
static weft_status soak_step(weft_context *ctx, weft_module *gpt, weft_optimizer *adam, int i) {
    int32_t ids[3 * (CONTEXT + 1)];
    const int64_t batch = 1 + i % 3, length = CONTEXT - i / 3 % 4;
    for (int k = 0; k < batch * length; k++) ids[k] = (i * 31 + k * 7) % VOCABULARY;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_from(ctx, WEFT_I32, SHAPE(batch, length), ids);
    weft_tensor *loss = weft_cross_entropy(weft_forward(gpt, x), x, NULL);
    weft_status status = weft_optimizer_step(adam, loss);
    if (status == WEFT_OK && i % 100 == 0 && !isfinite(weft_item(loss))) status = WEFT_ERR_NUMERIC;
    weft_scope_close(scope);
    return status;
}

/* With changing batch and sequence lengths, 5,000 steps need as much memory, and as many compiled kernels, as
 * 100 steps. */
static void soak(const char *device) {
    weft_context *ctx;
    uint64_t in_use = 0;
    int compiles = 0;
    assert_int_equal(weft_open(&(weft_open_options){.device = device, .seed = 1}, &ctx), WEFT_OK);
    weft_module *gpt = weft_nn_gpt(
        ctx,
        &(weft_gpt_options){.vocab = VOCABULARY, .context = CONTEXT, .layers = 1, .heads = 2, .width = 8});
    weft_optimizer *adam = weft_adam(gpt, &(weft_adam_options){.lr = 0.01});
    for (int i = 0; i < SOAK; i++) {
        assert_int_equal(soak_step(ctx, gpt, adam, i), WEFT_OK);
        if (i == 99) in_use = ctx->device->bytes_in_use, compiles = weft__gpu_hook.compiles;
    }
    assert_int_equal(ctx->device->bytes_in_use, in_use);
    assert_int_equal(weft__gpu_hook.compiles, compiles);
    weft_close(ctx);
}

static void test_soak_on_the_cpu(void **state) {
    (void)state;
    soak("cpu");
}

static void test_soak_on_gpu(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    soak(test_gpu());
}

int main(void) {
    weft__gpu_hook.fuse_after = INT32_MAX; /* fused launches: test_gpu_fused_launch.c */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_uploads_its_batch),
        cmocka_unit_test(test_resident_data_are_uploaded_once),
        cmocka_unit_test(test_one_batch_is_uploaded_once),
        cmocka_unit_test(test_losses_do_not_depend_on_looking),
        cmocka_unit_test(test_divergence_names_its_step),
        cmocka_unit_test(test_device_is_lost_in_a_loop),
        cmocka_unit_test(test_soak_on_the_cpu),
        cmocka_unit_test(test_soak_on_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
