/* Activation checkpointing changes the memory of a step, never its bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <weft/weft.h>
#include "compiler/program.h"
#include "device.h"

enum { VOCAB = 17, CONTEXT = 16, WIDTH = 32, BATCH = 3, STEPS = 4 };

typedef struct outcome {
    float losses[STEPS];
    float weights[VOCAB * WIDTH];
    int64_t arena;
} outcome;

static weft_tensor *loss_of(weft_context *ctx, weft_module *net) {
    int32_t x[BATCH * CONTEXT], y[BATCH * CONTEXT];
    for (int i = 0; i < BATCH * CONTEXT; i++) {
        x[i] = i * 7 % VOCAB;
        y[i] = (i * 5 + 1) % VOCAB;
    }
    int64_t shape[2] = {BATCH, CONTEXT};
    weft_tensor *input = weft_from(ctx, WEFT_I32, 2, shape, x),
                *target = weft_from(ctx, WEFT_I32, 2, shape, y);
    return weft_cross_entropy(weft_forward(net, input), target, NULL);
}

static void train(bool recompute, const char *device, outcome *out) {
    weft_context *ctx;
    assert_int_equal(test_open(&(weft_open_options){.device = device, .seed = 5}, &ctx), WEFT_OK);
    weft_gpt_options options = {
        .vocab = VOCAB, .context = CONTEXT, .layers = 4, .heads = 2, .width = WIDTH, .dropout = 0.1};
    weft_module *net = weft_gpt(ctx, &options);
    for (size_t i = 0; weft_module_child_at(net, i); i++)
        weft_module_recompute(weft_module_child_at(net, i), recompute);
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-2, .clip = 1.0});
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = loss_of(ctx, net);
        assert_int_equal(weft_optimizer_step(adam, loss), WEFT_OK);
        assert_int_equal(weft_read(loss, &out->losses[step], sizeof(float)), WEFT_OK);
        weft_scope_close(scope);
    }
    assert_int_equal((int)ctx->compiler->compiles, 1); /* every step finds the first one's program */
    out->arena = ctx->compiler->newest->arena_bytes;
    weft_parameter_info wte;
    assert_true(weft_parameter_find(net, "wte.weight", &wte));
    assert_int_equal(weft_read(wte.tensor, out->weights, sizeof out->weights), WEFT_OK);
    weft_close(ctx);
}

static void test_cpu(void **state) {
    (void)state;
    static outcome kept, again;
    train(false, NULL, &kept);
    train(true, NULL, &again);
    assert_memory_equal(kept.losses, again.losses, sizeof kept.losses);
    assert_memory_equal(kept.weights, again.weights, sizeof kept.weights);
    assert_true(kept.losses[STEPS - 1] < kept.losses[0]);
    assert_true(again.arena < kept.arena * 8 / 10);
}

/* interp rounds where a value is stored, and recomputation stores other ones. */
static void test_interp(void **state) {
    (void)state;
    static outcome kept, again;
    train(false, "interp", &kept);
    train(true, "interp", &again);
    for (int i = 0; i < STEPS; i++) assert_float_equal(kept.losses[i], again.losses[i], 1e-4f);
    assert_true(again.arena < kept.arena * 8 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_interp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
