/* What programs consist of: the number of kernels and library calls, where memory is saved, and what is never
 * copied. The design promises these numbers. A test that fails prints the plan. */
#include "unit/core_help.h"
#include "plan_race.h"

static int setup(void **state) {
    *state = open_device("cpu", false);
    return 0;
}

static int teardown(void **state) {
    weft_close(*state);
    return 0;
}

static weft_tensor *total(weft_tensor *t) { return weft_sum(t, WEFT_ALL_AXES, false); }

/* Evaluates the gradients of sum(y * seed) with respect to the inputs, and y itself if with_loss. */
static weft_program *gradients(weft_tensor *y, weft_tensor *seed, weft_tensor *const *wrt, size_t n,
                               bool with_loss) {
    weft_tensor *out[8], *loss = total(weft_mul(y, seed));
    assert_ok(weft_gradient(loss, wrt, n, out));
    out[n] = y;
    assert_ok(weft_eval(out, n + with_loss));
    return newest(weft_context_of(y));
}

/* ---- [B,M,K] x [K,N]: one matmul forward and one for each gradient ---- */

static void test_linear_is_one_product(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(6, 10, 32)), *w = numbers(ctx, true, 2, SHAPE(32, 24));
    weft_tensor *seed = numbers(ctx, false, 3, SHAPE(6, 10, 24)), *y = weft_matmul(x, w);
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 0, 1);
    assert_int_equal(newest(ctx)->commands.list[0].heavy.as.matmul.m, 60);
    weft_program *program = gradients(weft_matmul(x, w), seed, &x, 1, false);
    assert_plan(program, 0, 1); /* no transposed copy */
    program = gradients(weft_matmul(x, w), seed, &w, 1, false);
    assert_plan(program, 0, 1); /* no sum over the batch */
    assert_int_equal(program->commands.list[0].heavy.as.matmul.k, 60);
    assert_int_equal(program->commands.list[0].heavy.as.matmul.batch_rank, 0);
    assert_int_equal(copies(program), 0);
}

static void test_transposed_weight(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(6, 10, 32)), *w = numbers(ctx, true, 2, SHAPE(24, 32));
    weft_tensor *seed = numbers(ctx, false, 3, SHAPE(6, 10, 24)), *both[2] = {x, w};
    weft_program *program = gradients(weft_matmul(x, weft_transpose(w, 0, 1)), seed, both, 2, true);
    assert_plan(program, 0, 3);
    assert_int_equal(copies(program), 0);
}

static void test_bias_and_activation(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 32)), *w = numbers(ctx, true, 2, SHAPE(32, 24));
    weft_tensor *b = numbers(ctx, true, 3, SHAPE(24)), *y = weft_gelu(weft_add(weft_matmul(x, w), b));
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 1, 1); /* bias and gelu are one kernel */
}

/* ---- row kernels ---- */

static void test_row_kernels(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(128, 100)), *seed = numbers(ctx, false, 2, SHAPE(128, 100));
    weft_tensor *forward[] = {weft_softmax(x, -1), weft_log_softmax(x, -1), weft_logsumexp(x, -1, false),
                              weft_argmax(x, -1, false), weft_var(x, -1, 0, false)};
    for (size_t i = 0; i < COUNT(forward); i++) {
        assert_ok(weft_eval(&forward[i], 1));
        assert_plan(newest(ctx), 1, 0);
    }
    assert_plan(gradients(weft_softmax(x, -1), seed, &x, 1, true), 1, 0); /* one read, one write */
    assert_plan(gradients(weft_log_softmax(x, -1), seed, &x, 1, true), 1, 0);
}

/* One row kernel, and one kernel that writes the class numbers which the targets are compared with. */
static void test_cross_entropy(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(128, 100)), *out[2];
    weft_tensor *target = weft_from(ctx, WEFT_I32, SHAPE(128), (int32_t[128]){0});
    out[0] = weft_cross_entropy(x, target, &(weft_cross_entropy_options){.reduction = WEFT_NONE});
    assert_ok(weft_gradient(total(out[0]), &x, 1, &out[1]));
    weft_tensor *forward =
        weft_cross_entropy(x, target, &(weft_cross_entropy_options){.reduction = WEFT_NONE});
    assert_ok(weft_eval(&forward, 1));
    assert_plan(newest(ctx), 2, 0);
    assert_ok(weft_eval(out, 2));
    assert_plan(newest(ctx), 2, 0);
    assert_int_equal(newest(ctx)->commands.list[0].kernel->n_args, 1);
    assert_int_equal(newest(ctx)->commands.list[0].kernel->args[0].elements, 100);
}

static void test_layer_norm(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(128, 100)), *seed = numbers(ctx, false, 2, SHAPE(128, 100));
    weft_tensor *gamma = numbers(ctx, true, 3, SHAPE(100)), *beta = numbers(ctx, true, 4, SHAPE(100)),
                *all[3] = {x, gamma, beta};
    weft_tensor *y = weft_layer_norm(x, gamma, beta, 1e-5);
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 1, 0);
    assert_plan(gradients(weft_layer_norm(x, gamma, beta, 1e-5), seed, &x, 1, true), 1, 0);
    /* with the gradients of gamma and beta: one column kernel more */
    weft_program *program = gradients(weft_layer_norm(x, gamma, beta, 1e-5), seed, all, 3, true);
    assert_true(program->n_kernels <= 3);
    assert_plan(gradients(weft_rms_norm(x, gamma, 1e-5), seed, &x, 1, true), 1, 0);
}

/* ---- steps ---- */

static weft_program *mlp_step(weft_context *ctx, int rows) {
    weft_module *net =
        weft_nn_sequential(ctx, "mlp", weft_nn_linear(ctx, 20, 32, NULL), weft_nn_activation(ctx, WEFT_RELU),
                           weft_nn_linear(ctx, 32, 10, NULL), NULL);
    weft_optimizer *optimizer = weft_adamw(net, &(weft_adam_options){.lr = 1e-3F});
    int32_t *classes = calloc((size_t)rows, sizeof *classes);
    uint64_t after_first = 0;
    for (int i = 0; i < 4; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = numbers(ctx, false, i, SHAPE(rows, 20)),
                    *y = weft_from(ctx, WEFT_I32, SHAPE(rows), classes);
        assert_ok(weft_optimizer_step(optimizer, weft_cross_entropy(weft_forward(net, x), y, NULL)));
        weft_scope_close(scope);
        if (i == 1) after_first = ctx->compiler->compiles;
    }
    assert_int_equal(ctx->compiler->compiles, after_first); /* nothing is compiled twice, in any step */
    free(classes);
    return newest(ctx);
}

static void test_mlp_step(void **state) {
    weft_context *ctx = *state;
    weft_program *program = mlp_step(ctx, 64);
    assert_int_equal(heavies(program, WEFT_HEAVY_MATMUL), 5); /* the gradient of the input is not computed */
    assert_true(program->n_kernels <= 8);
    int updates = 0;
    for (int i = 0; i < program->commands.count; i++) updates += program->commands.list[i].sink;
    assert_true(updates >= 1 && program->n_copies == 0); /* in place */
}

/* AdamW's update of one block of parameters and two blocks of state. */
static void test_update_is_one_kernel(void **state) {
    weft_context *ctx = *state;
    weft_tensor *p = numbers(ctx, true, 1, SHAPE(5000)), *m = numbers(ctx, true, 2, SHAPE(5000)),
                *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(5000), NULL);
    weft_tensor *g = numbers(ctx, false, 3, SHAPE(5000)), *rate = weft_scalar(ctx, 0.01F);
    weft_tensor *next_m = weft_add(weft_mul_scalar(m, 0.9), weft_mul_scalar(g, 0.1));
    weft_tensor *next_v = weft_add(weft_mul_scalar(v, 0.99), weft_mul_scalar(weft_square(g), 0.01));
    weft_tensor *change =
        weft_add(weft_div(next_m, weft_add_scalar(weft_sqrt(next_v), 1e-8)), weft_mul_scalar(p, 0.01));
    weft_tensor *variables[3] = {p, m, v}, *values[3] = {weft_sub(p, weft_mul(rate, change)), next_m, next_v};
    assert_ok(weft_assign(variables, values, 3));
    weft_program *program = newest(ctx);
    assert_plan(program, 1, 0);
    assert_int_equal(program->n_copies, 0);
    assert_int_equal(program->commands.count, 1);
    assert_int_equal(program->arena_bytes, 0);
}

/* An attention layer of a GPT reads q, k and v in place, where the packed projection wrote them. */
static void test_packed_projection_is_not_copied(void **state) {
    weft_context *ctx = *state;
    enum { B = 2, T = 16, H = 4, D = 8, E = H * D };
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(B, T, E)), *w = numbers(ctx, true, 2, SHAPE(E, 3 * E)),
                *o = numbers(ctx, true, 3, SHAPE(E, E));
    weft_tensor *packed = weft_matmul(x, w), *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = weft_transpose(weft_reshape(weft_narrow(packed, -1, i * E, E), SHAPE(B, T, H, D)), 1, 2);
    weft_tensor *y = weft_attention(part[0], part[1], part[2], &(weft_attention_options){.causal = true});
    y = weft_matmul(weft_reshape(weft_transpose(y, 1, 2), SHAPE(B, T, E)), o);
    assert_ok(weft_eval(&y, 1));
    weft_program *program = newest(ctx);
    assert_int_equal(heavies(program, WEFT_HEAVY_ATTENTION), 1);
    assert_plan(program, 0, 2);
}

static void test_gpt_step(void **state) {
    weft_context *ctx = *state;
    enum { B = 2, T = 16, H = 4, D = 8, E = H * D };
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(B, T, E)), *w = numbers(ctx, true, 2, SHAPE(E, 3 * E)),
                *o = numbers(ctx, true, 3, SHAPE(E, E));
    weft_tensor *packed = weft_matmul(x, w), *part[3], *wrt[2] = {w, o},
                *seed = numbers(ctx, false, 4, SHAPE(B, T, E));
    for (int i = 0; i < 3; i++)
        part[i] = weft_transpose(weft_reshape(weft_narrow(packed, -1, i * E, E), SHAPE(B, T, H, D)), 1, 2);
    weft_tensor *y = weft_attention(part[0], part[1], part[2], &(weft_attention_options){.causal = true});
    y = weft_matmul(weft_reshape(weft_transpose(y, 1, 2), SHAPE(B, T, E)), o);
    weft_program *program = gradients(y, seed, wrt, 2, true);
    assert_int_equal(heavies(program, WEFT_HEAVY_ATTENTION), 2);
    /* the three gradients are written into the gradient of the packed projection, so nothing is copied */
    assert_plan(program, 0, 5);
}

/* A token of a GPT with a cache. The caches are written in place, although attention reads them later. */
static void test_decoding_copies_nothing(void **state) {
    weft_context *ctx = *state;
    enum { VOCAB = 9, LAYERS = 3 };
    weft_module *gpt = weft_nn_gpt(
        ctx, &(weft_gpt_options){.vocab = VOCAB, .context = 64, .layers = LAYERS, .heads = 2, .width = 16});
    weft_decode_state *cache = weft_decode_state_new(gpt);
    assert_non_null(cache);
    float logits[VOCAB];
    assert_ok(weft_gpt_feed(cache, &(int32_t){4}, 1, logits));
    const weft_program *program = newest(ctx);
    int in_place = 0;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *command = &program->commands.list[i];
        if (command->kind == WEFT_COMMAND_HEAVY && command->heavy.kind == WEFT_HEAVY_UPDATE)
            in_place += command->heavy.as.update.in_place && command->sink;
    }
    assert_int_equal(in_place, 2 * LAYERS);
    assert_int_equal(heavies(program, WEFT_HEAVY_ATTENTION), LAYERS);
    assert_int_equal(program->n_copies, 0);
    assert_int_equal(copies(program), 0);
    weft_decode_state_free(cache);
}

/* ---- memory ---- */

static void test_arena_is_reused(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 64)), *w = numbers(ctx, true, 2, SHAPE(64, 64)), *y = x;
    for (int i = 0; i < 10; i++) y = weft_tanh(weft_matmul(y, w));
    assert_ok(weft_eval(&y, 1));
    weft_program *program = newest(ctx);
    assert_plan(program, 10, 10);
    int64_t sum = 19 * 64 * 64 * 4; /* all values except the last */
    assert_true(program->arena_bytes > 0);
    assert_true(program->arena_bytes * 4 < sum);
}

/* tanh overwrites its operand, unless the operand is read again. */
static void test_memory_is_handed_over(void **state) {
    weft_context *ctx = *state;
    const int64_t bytes = 64 * 64 * 4;
    for (int again = 0; again < 2; again++) {
        weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 64)), *w = numbers(ctx, true, 2, SHAPE(64, 64));
        weft_tensor *a = weft_matmul(x, w), *y = weft_matmul(weft_tanh(a), w);
        if (again) y = weft_matmul(y, a);
        assert_ok(weft_eval(&y, 1));
        weft_program *program = newest(ctx);
        assert_plan(program, 1, again ? 3 : 2);
        assert_int_equal(program->arena_bytes, again ? 3 * bytes : bytes);
        const weft_kernel *kernel = program->commands.list[1].kernel;
        assert_non_null(kernel);
        assert_int_equal(kernel->n_args, again ? 2 : 1);
    }
}

/* ---- scatter-add onto a base ---- */

static const weft_command *scatter_of(const weft_program *program) {
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *command = &program->commands.list[i];
        if (command->kind == WEFT_COMMAND_HEAVY && command->heavy.kind == WEFT_HEAVY_SCATTER) return command;
    }
    fail_msg("no scatter-add");
    return NULL;
}

/* A token table that is also the head of the net. The head's gradient is written into the optimizer's block,
 * and the gradient of the gathered rows is added there. */
static void test_tied_gradients_meet_in_place(void **state) {
    weft_context *ctx = *state;
    enum { VOCAB = 50, WIDTH = 8, N = 12 };
    weft_module *gpt = weft_nn_gpt(
        ctx, &(weft_gpt_options){.vocab = VOCAB, .context = N, .layers = 1, .heads = 2, .width = WIDTH});
    weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
    weft_tensor *tokens = weft_from(ctx, WEFT_I32, SHAPE(1, N), (int32_t[N]){1, 2, 1});
    weft_program *program = NULL;
    assert_ok(
        weft_optimizer_hold(opt, weft_cross_entropy(weft_forward(gpt, tokens), tokens, NULL), &program));
    const weft_command *scatter = scatter_of(program);
    assert_true(scatter->heavy.as.scatter.based && scatter->heavy.as.scatter.in_place);
    int products = 0;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *command = &program->commands.list[i];
        const weft_heavy_matmul *mm = &command->heavy.as.matmul;
        if (command->kind != WEFT_COMMAND_HEAVY || command->heavy.kind != WEFT_HEAVY_MATMUL) continue;
        if (mm->m != VOCAB || mm->k != N) continue;
        products++;
        for (int k = 2; k < 4; k++) { /* result, base and sum are in the same memory */
            assert_int_equal(command->operands[2].slot, scatter->operands[k].slot);
            assert_int_equal(command->operands[2].offset, scatter->operands[k].offset);
        }
    }
    assert_int_equal(products, 1);
    weft_program_free(program);
}

/* Scatter-add works in place if nothing else reads the base. A leaf is copied. A base that is read again is
 * copied too, and the addition costs no more than this copy. */
static void test_scatters_have_a_base(void **state) {
    weft_context *ctx = *state;
    int32_t rows[4] = {3, 0, 3, 63};
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 64)), *w = numbers(ctx, true, 2, SHAPE(64, 64));
    weft_tensor *index = weft_from(ctx, WEFT_I32, SHAPE(4), rows),
                *more = numbers(ctx, false, 3, SHAPE(4, 64));
    for (int way = 0; way < 3; way++) {
        weft_tensor *base = way == 1 ? w : weft_matmul(x, w), *y = weft_scatter_add(base, index, more, 0);
        y = weft_matmul(way == 2 ? weft_mul(y, base) : y, w);
        assert_ok(weft_eval(&y, 1));
        const weft_heavy_scatter *scatter = &scatter_of(newest(ctx))->heavy.as.scatter;
        assert_true(scatter->based == (way != 2) && scatter->in_place == (way == 0));
        assert_int_equal(newest(ctx)->n_kernels, way == 2);
    }
}

/* ---- barriers ---- */

static void assert_barriers(const weft_program *program) {
    int first, second;
    if (plan_race(program, &first, &second))
        fail_msg("commands %d and %d meet without a barrier", first, second);
}

static void test_barriers(void **state) {
    weft_context *ctx = *state;
    assert_barriers(mlp_step(ctx, 8));
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 64)), *w = numbers(ctx, true, 2, SHAPE(64, 64)), *y = x;
    for (int i = 0; i < 4; i++) y = weft_softmax(weft_matmul(weft_layer_norm(y, NULL, NULL, 1e-5), w), -1);
    assert_barriers(gradients(y, x, &w, 1, true));
    assert_true(newest(ctx)->commands.list[1].after); /* there is at least one barrier */
}

/* The gradient of w2 is the last reader of the activations. It must run first, so that the gradient of the
 * activations can overwrite them. */
static void test_phases_are_split_where_it_saves_memory(void **state) {
    (void)state;
    weft_context *ctx = open_device("null", false);
    enum { ROWS = 1024, IN = 64, HIDDEN = 4096 };
    float *data = calloc(ROWS * HIDDEN, sizeof *data);
    assert_non_null(data);
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(ROWS, IN), data);
    weft_tensor *w1 = weft_variable_new(ctx, "w1", WEFT_F32, SHAPE(IN, HIDDEN), NULL),
                *w2 = weft_variable_new(ctx, "w2", WEFT_F32, SHAPE(HIDDEN, IN), NULL), *wrt[2] = {w1, w2};
    weft_tensor *y = weft_matmul(weft_gelu(weft_matmul(x, w1)), w2), *out[2];
    assert_ok(weft_gradient(total(weft_square(y)), wrt, 2, out));
    assert_ok(weft_eval(out, 2));
    weft_program *program = newest(ctx);
    int64_t hidden = (int64_t)ROWS * HIDDEN * 4;
    assert_true(program->arena_bytes >= 2 * hidden && program->arena_bytes < 3 * hidden);
    assert_barriers(program);
    weft_close(ctx);
    free(data);
}

static void test_no_fusion_is_one_kernel_a_node(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", true);
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64)), *y = weft_mul(weft_exp(weft_add(x, x)), weft_neg(x));
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 4, 0);
    weft_close(ctx);
}

/* Cheap values that two kernels need are computed in both, not stored. */
static void test_cheap_values_are_recomputed(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(64, 300)), *y = weft_relu(weft_add_scalar(x, 0.5));
    weft_tensor *out[2] = {weft_sum(y, 0, false), weft_sum(y, 1, false)};
    assert_ok(weft_eval(out, 2));
    weft_program *program = newest(ctx);
    for (int i = 0; i < program->commands.count; i++)
        assert_true(program->commands.list[i].kind != WEFT_COMMAND_KERNEL ||
                    program->commands.list[i].kernel->n_reduce);
    assert_true(program->arena_bytes < 64 * 300 * 4); /* y is not stored */
}

static void test_printed_form(void **state) {
    weft_context *ctx = *state;
    char text[4096];
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(4, 4)), *y = weft_exp(weft_matmul(x, x));
    assert_ok(weft_eval(&y, 1));
    size_t length = weft__program_print(newest(ctx), DEBUG_PLAN | DEBUG_KERNELS, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "matmul f32 1x 4x4x4 nn"));
    assert_non_null(strstr(text, "map_exp"));
    assert_int_equal(weft__program_print(newest(ctx), DEBUG_PLAN | DEBUG_KERNELS, NULL, 0), length);
    char small[20];
    assert_int_equal(weft__program_print(newest(ctx), DEBUG_PLAN | DEBUG_KERNELS, small, sizeof small),
                     length);
    assert_int_equal(strlen(small), sizeof small - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_linear_is_one_product, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transposed_weight, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bias_and_activation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_row_kernels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cross_entropy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_layer_norm, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mlp_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_update_is_one_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_packed_projection_is_not_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gpt_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_decoding_copies_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arena_is_reused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_handed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tied_gradients_meet_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scatters_have_a_base, setup, teardown),
        cmocka_unit_test_setup_teardown(test_barriers, setup, teardown),
        cmocka_unit_test(test_phases_are_split_where_it_saves_memory),
        cmocka_unit_test(test_no_fusion_is_one_kernel_a_node),
        cmocka_unit_test_setup_teardown(test_cheap_values_are_recomputed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_printed_form, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
