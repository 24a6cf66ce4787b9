/* Activation checkpointing changes the memory of a step, but never its bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <weft/weft.h>
#include "compiler/program.h"
#include "device.h"
#include "gpu.h"

enum { VOCAB = 17, CONTEXT = 32, WIDTH = 32, BATCH = 6, STEPS = 4 };

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

static void train(weft_recompute recompute, const char *device, outcome *out) {
    weft_context *ctx;
    assert_int_equal(test_open(&(weft_open_options){.device = device, .seed = 5}, &ctx), WEFT_OK);
    weft_gpt_options options = {
        .vocab = VOCAB, .context = CONTEXT, .layers = 4, .heads = 2, .width = WIDTH, .dropout = 0.1};
    weft_module *net = weft_nn_gpt(ctx, &options);
    assert_int_equal(weft_module_recompute(net, recompute), WEFT_OK);
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-2, .clip = 1.0});
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = loss_of(ctx, net);
        assert_int_equal(weft_optimizer_step(adam, loss), WEFT_OK);
        assert_int_equal(weft_read(loss, &out->losses[step], sizeof(float)), WEFT_OK);
        weft_scope_close(scope);
    }
    assert_int_equal((int)ctx->compiler->compiles, 1); /* every step reuses the first program */
    out->arena = ctx->compiler->newest->arena_bytes;
    weft_parameter_info wte;
    assert_true(weft_parameter_find(net, "wte.weight", &wte));
    assert_int_equal(weft_read(wte.tensor, out->weights, sizeof out->weights), WEFT_OK);
    weft_close(ctx);
}

/* Every policy must compute the same as no recomputation, dropout included, and use less memory. With
 * `same` it must give the same bits. Recomputed norms do not: other kernels then compute the column sums of
 * their gradients, in another order. */
static void check(const char *device, weft_recompute first, bool same) {
    static outcome kept, again;
    train(WEFT_RECOMPUTE_NONE, device, &kept);
    assert_true(kept.losses[STEPS - 1] < kept.losses[0]);
    for (weft_recompute what = first; what <= WEFT_RECOMPUTE_BLOCK; what++) {
        train(what, device, &again);
        for (int i = 0; i < STEPS; i++) assert_float_equal(kept.losses[i], again.losses[i], 1e-4f);
        if (same && what != WEFT_RECOMPUTE_NORM) {
            assert_memory_equal(kept.losses, again.losses, sizeof kept.losses);
            assert_memory_equal(kept.weights, again.weights, sizeof kept.weights);
        }
        if (again.arena >= kept.arena)
            fail_msg("policy %d takes %lld bytes, none %lld", (int)what, (long long)again.arena,
                     (long long)kept.arena);
    }
    assert_true(again.arena < kept.arena * 9 / 10);
}

static void test_cpu(void **state) {
    (void)state;
    check("cpu", WEFT_RECOMPUTE_GELU, true);
}

/* interp rounds wherever a value is stored, and recomputation stores other values. */
static void test_interp(void **state) {
    (void)state;
    check("interp", WEFT_RECOMPUTE_GELU, false);
}

/* On CUDA the epilogue of a matmul decides how the matmul is split, or which library computes it. Compilers
 * of WebGPU may join a multiplication and a sum in one kernel and not in another. */
static void test_card(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    check(test_gpu(), WEFT_RECOMPUTE_BLOCK, !test_on_cuda() && !test_on_webgpu());
}

static void test_unknown(void **state) {
    weft_context *ctx;
    (void)state;
    assert_int_equal(weft_open(NULL, &ctx), WEFT_OK);
    weft_module *net = weft_nn_mlp(ctx, (int64_t[]){2, 3, 1}, 3, NULL);
    assert_int_equal(weft_module_recompute(net, (weft_recompute)4), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_recompute(NULL, WEFT_RECOMPUTE_GELU), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

/* ---- GPT-2, planned for a GPU ---- */

enum { GPT2_BATCH = 64, GPT2_TIME = 1024, GPT2_WIDTH = 768, GPT2_VOCAB = 50304 };

static weft_memory_plan plan(int layers, weft_recompute what, int chunks) {
    weft_context *ctx;
    weft_memory_plan made;
    const int64_t shape[2] = {GPT2_BATCH, GPT2_TIME};
    assert_int_equal(weft_open(&(weft_open_options){.device = "null:cuda"}, &ctx), WEFT_OK);
    weft_module *net = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = GPT2_VOCAB,
                                                            .context = GPT2_TIME,
                                                            .layers = layers,
                                                            .heads = 12,
                                                            .width = GPT2_WIDTH,
                                                            .head_chunks = chunks});
    assert_int_equal(weft_module_compute(net, WEFT_BF16), WEFT_OK);
    assert_int_equal(weft_module_recompute(net, what), WEFT_OK);
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-3, .clip = 1.0});
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_I32, 2, shape, NULL);
    weft_tensor *loss = weft_cross_entropy(weft_forward(net, x), x, NULL);
    assert_int_equal(weft_optimizer_plan(adam, loss, 1, &made), WEFT_OK);
    weft_close(ctx);
    return made;
}

/* What a layer keeps for the backward pass. The unit is the size of one activation (batch, time, width) in
 * bf16. */
static double a_layer(weft_recompute what) {
    const double unit = 2.0 * (GPT2_BATCH * GPT2_TIME * GPT2_WIDTH);
    const uint64_t more = plan(8, what, 8).kinds[WEFT_MEMORY_ACTIVATIONS],
                   less = plan(4, what, 8).kinds[WEFT_MEMORY_ACTIVATIONS];
    return (double)(more - less) / 4 / unit;
}

static void test_gpt2(void **state) {
    (void)state;
    assert_true(a_layer(WEFT_RECOMPUTE_NONE) < 17.4);
    assert_true(a_layer(WEFT_RECOMPUTE_GELU) < 13.4);
    assert_true(a_layer(WEFT_RECOMPUTE_NORM) < 10.4);
    assert_true(a_layer(WEFT_RECOMPUTE_BLOCK) < 1.2);
    const uint64_t whole = plan(12, WEFT_RECOMPUTE_NONE, 1).work,
                   parts = plan(12, WEFT_RECOMPUTE_NONE, 8).work;
    const uint64_t logits = UINT64_C(2) * GPT2_BATCH * GPT2_TIME * GPT2_VOCAB;
    assert_true(parts < whole - logits * 8 / 10);
    assert_true(plan(12, WEFT_RECOMPUTE_GELU, 8).work < UINT64_C(18000000000));
    assert_true(plan(12, WEFT_RECOMPUTE_NORM, 8).work < UINT64_C(14200000000));
    const weft_memory_plan least = plan(12, WEFT_RECOMPUTE_BLOCK, 0);
    assert_true(least.work < UINT64_C(3600000000));
    assert_true(least.work == least.kinds[WEFT_MEMORY_ACTIVATIONS] + least.kinds[WEFT_MEMORY_GRADIENTS] +
                                  least.kinds[WEFT_MEMORY_SCRATCH]);
    assert_true(weft_memory_total(&least) > least.work + least.parameters + least.states);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_interp),
                                       cmocka_unit_test(test_card), cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_gpt2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
