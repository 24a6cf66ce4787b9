/* src/compiler/runtime/scalars.c on CUDA. Once a step is one launch, rows of scalars are sent for many steps.
 * Bits and counts of uploads: with Adam, a schedule and random numbers, one by one and many in one launch; if
 * the rate changes between steps; and with a scalar that nobody knows before its run. OpenCL:
 * test_gpu_fused_launch.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "gpu.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { BATCH = 4, HIDDEN = 8, VALUES = 4 * HIDDEN + 1, STEPS = 200 };

typedef enum manner {
    ONE_BY_ONE,
    RATE_CHANGES,   /* the rate changes after half of the steps */
    SCALAR_CHANGES, /* the loss has a factor of its own in each step */
    ACCUMULATED,    /* two micro-batches a step */
    MANY            /* a held step runs many times in one call */
} manner;

typedef struct run {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *adam;
    weft_tensor *x, *y, *factor;
    float parameters[VALUES];
    uint64_t uploads; /* of the second half of the steps */
} run;

static void set_up(run *r, bool fused) {
    const float x[BATCH][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, y[BATCH] = {0, 1, 1, 0};
    memset(r, 0, sizeof *r);
    weft__gpu_hook.fuse_after = fused ? 1 : INT32_MAX;
    assert_int_equal(weft_open(&(weft_open_options){.device = test_gpu(), .seed = 5}, &r->ctx), WEFT_OK);
    r->net = weft_nn_sequential(r->ctx, "net", weft_nn_linear(r->ctx, 2, HIDDEN, NULL),
                                weft_nn_activation(r->ctx, WEFT_TANH), weft_nn_dropout(r->ctx, 0.2),
                                weft_nn_linear(r->ctx, HIDDEN, 1, NULL), NULL);
    const weft_schedule cosine = {
        .kind = WEFT_SCHEDULE_COSINE, .lr = 0.05, .min_lr = 0.001, .warmup = 10, .steps = STEPS};
    r->adam = weft_adamw(r->net, &(weft_adam_options){.lr = 0.05});
    assert_int_equal(weft_optimizer_schedule(r->adam, &cosine), WEFT_OK);
    r->x = weft_keep(weft_from(r->ctx, WEFT_F32, SHAPE(BATCH, 2), x));
    r->y = weft_keep(weft_from(r->ctx, WEFT_F32, SHAPE(BATCH, 1), y));
    r->factor = weft_keep(weft_scalar(r->ctx, 1));
    assert_int_equal(weft_eval((weft_tensor *[]){r->x, r->y}, 2), WEFT_OK);
}

static weft_tensor *loss_of(run *r, manner how) {
    weft_tensor *loss = weft_mse(weft_forward(r->net, r->x), r->y, WEFT_MEAN);
    return how == SCALAR_CHANGES ? weft_mul(loss, r->factor) : loss;
}

static void step(run *r, manner how, int i) {
    weft_scope *scope = weft_scope_open(r->ctx);
    if (how == RATE_CHANGES && i == STEPS / 2)
        assert_int_equal(weft_optimizer_set_lr(r->adam, 0.01), WEFT_OK);
    if (how == SCALAR_CHANGES) assert_int_equal(weft_set_scalar(r->factor, 1 + i % 7), WEFT_OK);
    if (how == ACCUMULATED) {
        for (int k = 0; k < 2; k++)
            assert_int_equal(weft_optimizer_accumulate(r->adam, loss_of(r, how), k, 2), WEFT_OK);
    } else {
        assert_int_equal(weft_optimizer_step(r->adam, loss_of(r, how)), WEFT_OK);
    }
    weft_scope_close(scope);
}

static void many(run *r) {
    weft_program *program;
    weft_scope *scope = weft_scope_open(r->ctx);
    assert_int_equal(weft_optimizer_hold(r->adam, loss_of(r, MANY), &program), WEFT_OK);
    assert_int_equal(weft_optimizer_run_many(r->adam, program, STEPS / 2), WEFT_OK);
    const uint64_t before = r->ctx->device->uploads;
    assert_int_equal(weft_optimizer_run_many(r->adam, program, STEPS - STEPS / 2), WEFT_OK);
    r->uploads = r->ctx->device->uploads - before;
    weft_program_free(program);
    weft_scope_close(scope);
}

static void train(run *r, manner how, bool fused) {
    set_up(r, fused);
    if (how == MANY) {
        many(r);
    } else {
        uint64_t before = 0;
        for (int i = 0; i < STEPS; i++) {
            step(r, how, i);
            if (i == STEPS / 2 - 1) before = r->ctx->device->uploads;
        }
        r->uploads = r->ctx->device->uploads - before;
    }
    size_t used = 0;
    for (size_t i = 0; i < weft_parameter_count(r->net); i++) {
        weft_parameter_info info;
        assert_true(weft_parameter_get(r->net, i, &info));
        const size_t count = (size_t)weft_numel(info.tensor);
        assert_true(used + count <= VALUES);
        assert_int_equal(weft_read(info.tensor, r->parameters + used, count * sizeof(float)), WEFT_OK);
        used += count;
    }
    assert_int_equal(used, VALUES);
    weft_close(r->ctx);
    weft__gpu_hook.fuse_after = 0;
}

static void compare(manner how, uint64_t most_uploads) {
    run plain, fused;
    if (!test_on_cuda() || test_without_gpu()) return skip();
    train(&plain, how, false);
    train(&fused, how, true);
    print_message("%d steps: %d uploads, %d if the step is one launch\n", STEPS / 2, (int)plain.uploads,
                  (int)fused.uploads);
    assert_memory_equal(plain.parameters, fused.parameters, sizeof plain.parameters);
    assert_int_equal(plain.uploads, STEPS / 2 * (how == ACCUMULATED ? 2 : 1));
    assert_true(fused.uploads <= most_uploads);
}

/* 100 steps need the rows of 64 once or twice. */
static void test_one_by_one(void **state) {
    (void)state;
    compare(ONE_BY_ONE, 2);
}

static void test_the_rate_changes(void **state) {
    (void)state;
    compare(RATE_CHANGES, 3);
}

static void test_a_scalar_changes(void **state) {
    (void)state;
    compare(SCALAR_CHANGES, STEPS / 2);
}

/* Only the last micro-batch knows when it runs again. */
static void test_accumulated(void **state) {
    (void)state;
    compare(ACCUMULATED, STEPS / 2 + 2);
}

static void test_many(void **state) {
    (void)state;
    compare(MANY, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_the_rate_changes),
        cmocka_unit_test(test_a_scalar_changes),
        cmocka_unit_test(test_accumulated),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
