/* What a training step compiles to: one update kernel for any number of parameters, no copies in a GPT step,
 * and no new compilation if only numbers change. */
#include "compiler/program.h"
#include "unit/nn_help.h"

/* ---- counting ---- */

/* The number of commands that change variables. *kernels: how many of them are kernels. */
static int sinks_of(const weft_program *program, int *kernels) {
    int n = 0;
    *kernels = 0;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *command = &program->commands.list[i];
        n += command->sink;
        *kernels += command->sink && command->kind == WEFT_COMMAND_KERNEL;
    }
    return n;
}

static void explain(const weft_program *program) {
    char text[20000];
    weft__program_print(program, DEBUG_PLAN, text, sizeof text);
    print_error("%s\n", text);
}

static weft_tensor *mlp_loss(weft_context *ctx, weft_module *net, int64_t in, int64_t out) {
    weft_tensor *x = weft_keep(weft_full(ctx, WEFT_F32, SHAPE(8, in), 0.5));
    weft_tensor *t = weft_full_i64(ctx, WEFT_I32, SHAPE(8), out - 1);
    return weft_cross_entropy(weft_forward(net, x), t, NULL);
}

/* The held step of an MLP with `layers` layers. */
static weft_program *step_of(weft_context *ctx, int layers, const weft_adam_options *o) {
    int64_t sizes[12];
    for (int i = 0; i <= layers; i++) sizes[i] = 6 + i;
    weft_module *net = weft_nn_mlp(ctx, sizes, layers + 1, NULL);
    weft_program *program = NULL;
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(weft_optimizer_hold(weft_adamw(net, o), mlp_loss(ctx, net, sizes[0], sizes[layers]), &program));
    weft_scope_close(scope);
    return program;
}

static void test_one_update_kernel(void **state) {
    weft_context *ctx = *state;
    int clipped_sinks = 0;
    for (int layers = 1; layers <= 9; layers += 4) {
        const weft_adam_options plain = {.lr = 0.1, .weight_decay = 0.1};
        weft_program *program = step_of(ctx, layers, &plain);
        int kernels, sinks = sinks_of(program, &kernels);
        if (sinks != 1 || kernels != 1) explain(program);
        assert_int_equal(sinks, 1); /* updates parameters and both states */
        assert_int_equal(kernels, 1);
        weft_program_free(program);
        /* parameter groups by range, clipping and the norm: as many commands for one layer as for nine */
        const weft_adam_options clipped = {
            .lr = 0.1, .weight_decay = 0.1, .clip = 1.0, .decay_matrices_only = true};
        program = step_of(ctx, layers, &clipped);
        sinks = sinks_of(program, &kernels);
        if (layers == 1) clipped_sinks = sinks;
        if (kernels > 2 || sinks != clipped_sinks) explain(program);
        assert_true(kernels <= 2);
        assert_int_equal(sinks, clipped_sinks);
        weft_program_free(program);
    }
}

static weft_module *gpt_of(weft_context *ctx) {
    return weft_nn_gpt(ctx,
                       &(weft_gpt_options){.vocab = 17, .context = 16, .layers = 2, .heads = 2, .width = 16});
}

static weft_tensor *gpt_loss(weft_context *ctx, weft_module *gpt, int salt) {
    int32_t x[32], y[32];
    for (int i = 0; i < 32; i++) x[i] = (i * 5 + salt) % 17, y[i] = (i * 5 + salt + 5) % 17;
    weft_tensor *logits = weft_forward(gpt, weft_from(ctx, WEFT_I32, SHAPE(2, 16), x));
    return weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, SHAPE(2, 16), y), NULL);
}

static void test_gpt_without_copies(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
    weft_program *program = NULL;
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(weft_optimizer_hold(opt, gpt_loss(ctx, gpt, 0), &program));
    weft_scope_close(scope);
    if (program->n_copies) explain(program);
    assert_int_equal(program->n_copies, 0);
    weft_program_free(program);
}

/* ---- the cache ---- */

static void test_nothing_is_compiled_again(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    weft_optimizer *opt =
        weft_adamw(gpt, &(weft_adam_options){.lr = 0.01, .weight_decay = 0.1, .decay_matrices_only = true});
    const weft_schedule cosine = {.kind = WEFT_SCHEDULE_COSINE, .lr = 0.01, .warmup = 2, .steps = 8};
    assert_ok(weft_optimizer_schedule(opt, &cosine));
    uint64_t before = 0;
    double first = 0.0, last = 0.0;
    for (int step = 0; step < 8; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = gpt_loss(ctx, gpt, step);
        assert_ok(weft_optimizer_step(opt, loss));
        last = weft_item(loss);
        if (step == 0) first = last;
        weft_scope_close(scope);
        if (step == 0) before = ctx->compiler->compiles;
    }
    assert_true(before > 0);
    assert_int_equal(ctx->compiler->compiles, before);
    assert_true(last < first);
    /* decoding: one program for each padded length, and one for all single tokens */
    weft_decode_state *cache = weft_decode_state_new(gpt);
    float logits[17];
    const int32_t prompt[3] = {1, 6, 11};
    before = ctx->compiler->compiles;
    for (int round = 0; round < 2; round++) {
        weft_decode_state_reset(cache);
        assert_ok(weft_gpt_feed(cache, prompt, 3 - round, logits));
        for (int i = 0; i < 8; i++) assert_ok(weft_gpt_feed(cache, prompt, 1, logits));
    }
    assert_int_equal(ctx->compiler->compiles, before + 2);
}

/* Programs of a step with accumulated gradients: first, middle and last micro-batch. */
static void test_accumulation_programs(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = gpt_of(ctx);
    weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
    uint64_t before = ctx->compiler->compiles;
    for (int step = 0; step < 3; step++)
        for (int k = 0; k < 5; k++) {
            weft_scope *scope = weft_scope_open(ctx);
            assert_ok(weft_optimizer_accumulate(opt, gpt_loss(ctx, gpt, step + k), k, 5));
            weft_scope_close(scope);
        }
    assert_int_equal(ctx->compiler->compiles, before + 3);
}

/* Planning runs nothing, but reports how much memory the device will need. After a step, all of it is
 * allocated. */
static void test_memory_is_told_before(void **state) {
    weft_context *ctx = *state;
    for (int of = 1; of <= 2; of++) {
        weft_module *gpt = gpt_of(ctx);
        weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.1});
        weft_memory_plan plan, after;
        assert_int_equal(weft_optimizer_plan(opt, NULL, of, &plan), WEFT_ERR_ARGUMENT);
        uint64_t runs = ctx->compiler->runs;
        for (int k = 0; k < of; k++) {
            weft_scope *scope = weft_scope_open(ctx);
            weft_tensor *loss = gpt_loss(ctx, gpt, of);
            if (k == 0) {
                assert_int_equal(weft_optimizer_plan(opt, loss, 0, &plan), WEFT_ERR_ARGUMENT);
                assert_ok(weft_optimizer_plan(opt, loss, of, &plan));
                assert_true(ctx->compiler->runs == runs && plan.work > 0);
                assert_true(plan.states == (of > 1 ? 3 : 2) * plan.parameters);
                assert_true(plan.pending >= plan.states);
            }
            assert_ok(weft_optimizer_accumulate(opt, loss, k, of));
            weft_scope_close(scope);
        }
        weft_scope *scope = weft_scope_open(ctx);
        assert_ok(weft_optimizer_plan(opt, gpt_loss(ctx, gpt, of), of, &after));
        weft_scope_close(scope);
        assert_true(after.pending == 0 && after.work == plan.work && after.states == plan.states);
        weft_optimizer_free(opt);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_update_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gpt_without_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_compiled_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accumulation_programs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_told_before, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
