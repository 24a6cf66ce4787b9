/* A Llama, and PyTorch's own encoder and decoder layers, from the same weights (transformers.inc, written
 * by make_transformers.py): results, gradients, ten training steps, and the commands of their programs. */
#include "unit/core_help.h"
#include "unit/parity/transformers.inc"

enum { VOCAB = 11, TIME = 6, WIDTH = 16, HEADS = 4, HIDDEN = 12, TARGET = 4 };

static void pattern(int64_t number, int64_t n, float around, float *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((i * (5 + 2 * number) + 3 * number) % 23 - 11) / 44 + around;
}

static weft_tensor *pattern_of(weft_context *ctx, int64_t number, int64_t time, bool variable) {
    float data[2 * TIME * WIDTH];
    pattern(number, 2 * time * WIDTH, 0, data);
    return variable ? weft_variable_new(ctx, "x", WEFT_F32, SHAPE(2, time, WIDTH), data)
                    : weft_from(ctx, WEFT_F32, SHAPE(2, time, WIDTH), data);
}

/* Gives parameter p the pattern p. The weights of norms are around 1. */
static void fill(weft_module *m) {
    float data[3 * WIDTH * WIDTH];
    weft_parameter_info info;
    for (size_t p = 0; weft_parameter_get(m, p, &info); p++) {
        const bool scale = strstr(info.name, "ln_") && strstr(info.name, "weight");
        const int64_t n = weft_numel(info.tensor);
        assert_true(n <= (int64_t)COUNT(data));
        pattern((int64_t)p, n, scale ? 1 : 0, data);
        assert_ok(weft_write(info.tensor, data, (size_t)n * sizeof *data));
    }
}

static void assert_near(weft_tensor *t, const float *want, size_t n) {
    float got[3 * WIDTH * WIDTH];
    assert_ok(weft_tensor_status(t));
    assert_int_equal(weft_numel(t), n);
    assert_ok(weft_read(t, got, n * sizeof *got));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("element %zu of %zu is %.9g, PyTorch has %.9g", i, n, (double)got[i], (double)want[i]);
}
#define NEAR(t, want) assert_near(t, want, COUNT(want))

/* ---- Llama ---- */

static weft_gpt_options llama_options(void) {
    return (weft_gpt_options){.vocab = VOCAB,
                              .context = 64,
                              .layers = 2,
                              .heads = HEADS,
                              .kv_heads = 2,
                              .width = WIDTH,
                              .hidden = HIDDEN,
                              .norm = WEFT_NORM_RMS,
                              .positions = WEFT_POSITION_ROTARY,
                              .gated = true,
                              .no_bias = true,
                              .untied_head = true};
}

static weft_tensor *tokens_of(weft_context *ctx, int32_t by) {
    int32_t ids[2 * TIME];
    for (int32_t i = 0; i < 2 * TIME; i++)
        ids[i] = (i / TIME * 4 + i % TIME * by + i % TIME * (i % TIME)) % VOCAB;
    return weft_from(ctx, WEFT_I32, SHAPE(2, TIME), ids);
}

static weft_tensor *gradient_of(weft_tensor *loss, weft_module *m, const char *name) {
    weft_parameter_info info;
    weft_tensor *grad = NULL;
    assert_true(weft_parameter_find(m, name, &info));
    assert_ok(weft_gradient(loss, &info.tensor, 1, &grad));
    return grad;
}

static weft_tensor *loss_of(weft_context *ctx, weft_module *gpt, double smoothing) {
    return weft_cross_entropy(weft_forward(gpt, tokens_of(ctx, 3)), tokens_of(ctx, 5),
                              &(weft_cross_entropy_options){.smoothing = smoothing});
}

static void check_llama(weft_context *ctx) {
    weft_gpt_options o = llama_options();
    weft_module *gpt = weft_nn_gpt(ctx, &o);
    fill(gpt);
    NEAR(weft_forward(gpt, tokens_of(ctx, 3)), llama_logits);
    weft_tensor *loss = loss_of(ctx, gpt, 0);
    NEAR(gradient_of(loss, gpt, "h.0.attn.c_attn.weight"), llama_c_attn);
    NEAR(gradient_of(loss, gpt, "h.1.mlp.c_fc.weight"), llama_c_fc);
    weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
    for (size_t i = 0; i < COUNT(llama_losses); i++) {
        loss = loss_of(ctx, gpt, 0.1);
        assert_ok(weft_optimizer_step(opt, loss));
        assert_near(loss, &llama_losses[i], 1);
    }
    weft_module_free(gpt);
    if (!test_on_cpu()) return;
    o.rotation.interleaved = true;
    gpt = weft_nn_gpt(ctx, &o);
    fill(gpt);
    NEAR(weft_forward(gpt, tokens_of(ctx, 3)), llama_interleaved);
    weft_module_free(gpt);
}

/* ---- PyTorch's layers ---- */

static void check_layers(weft_context *ctx, bool post, const float *y, const float *source_grad,
                         const float *target_grad, const float *q_attn) {
    weft_transformer_block_options o = {.hidden = HIDDEN, .activation = WEFT_RELU, .post_norm = post};
    weft_module *encoder = weft_nn_transformer_block(ctx, WIDTH, HEADS, &o);
    o.causal = o.cross = true;
    weft_module *decoder = weft_nn_transformer_block(ctx, WIDTH, HEADS, &o);
    fill(encoder);
    fill(decoder);
    weft_parameter_info info;
    assert_true(weft_parameter_find(decoder, "crossattention.q_attn.weight", &info));
    weft_tensor *in[3] = {pattern_of(ctx, 3, TIME, true), pattern_of(ctx, 8, TARGET, true), info.tensor},
                *grads[3];
    bool seen[2 * TIME];
    for (int i = 0; i < 2 * TIME; i++) seen[i] = i < TIME + 4;
    weft_tensor *mask = weft_from(ctx, WEFT_BOOL, SHAPE(2, TIME), seen);
    weft_tensor *memory = weft_attend(encoder, in[0], &(weft_attend_options){.mask = mask});
    weft_tensor *got =
        weft_attend(decoder, in[1], &(weft_attend_options){.memory = memory, .memory_mask = mask});
    weft_tensor *loss = weft_sum(weft_mul(got, pattern_of(ctx, 5, TARGET, false)), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, in, 3, grads));
    assert_near(got, y, 2 * TARGET * WIDTH);
    assert_near(grads[0], source_grad, 2 * TIME * WIDTH);
    assert_near(grads[1], target_grad, 2 * TARGET * WIDTH);
    assert_near(grads[2], q_attn, WIDTH * WIDTH);
    weft_module_free(encoder);
    weft_module_free(decoder);
}

static void test_parity(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    check_llama(ctx);
    check_layers(ctx, true, post_y, post_source, post_target, post_q_attn);
    if (test_on_cpu()) /* GPUs skip this: kernels take long to compile, and these use the same ones */
        check_layers(ctx, false, pre_y, pre_source, pre_target, pre_q_attn);
    weft_close(ctx);
}

/* ---- decoding ---- */

/* Decoding with a cache gives what the whole sequence gives, for every kind of positions, in f32 and in
 * bf16. */
static void check_cache(weft_context *ctx, weft_position_kind positions, weft_dtype compute, float within) {
    enum { LENGTH = 24 };
    weft_gpt_options o = llama_options();
    o.positions = positions;
    weft_module *gpt = weft_nn_gpt(ctx, &o);
    assert_ok(weft_module_compute(gpt, compute));
    weft_module_set_training(gpt, false);
    int32_t ids[LENGTH];
    for (int32_t i = 0; i < LENGTH; i++) ids[i] = (i * 7 + i * i) % VOCAB;
    float whole[LENGTH * VOCAB], logits[VOCAB];
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(
        weft_read(weft_forward(gpt, weft_from(ctx, WEFT_I32, SHAPE(1, LENGTH), ids)), whole, sizeof whole));
    weft_scope_close(scope);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    assert_non_null(cache);
    for (int at = 5; at <= LENGTH; at++) { /* a prompt padded to 16, then one token at a time */
        assert_ok(weft_gpt_feed(cache, at == 5 ? ids : ids + at - 1, at == 5 ? 5 : 1, logits));
        for (int i = 0; i < VOCAB; i++) assert_true(fabsf(logits[i] - whole[(at - 1) * VOCAB + i]) <= within);
    }
    weft_module_free(gpt);
}

static void test_cache(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    check_cache(ctx, WEFT_POSITION_ROTARY, WEFT_F32, 1e-5F);
    if (test_on_cpu()) {
        check_cache(ctx, WEFT_POSITION_SINUSOIDAL, WEFT_F32, 1e-5F);
        check_cache(ctx, WEFT_POSITION_NONE, WEFT_F32, 1e-5F);
        check_cache(ctx, WEFT_POSITION_ROTARY, WEFT_BF16, 0.02F);
    }
    weft_close(ctx);
}

/* PyTorch's attention with a mask that is added to the scores. One score is -inf, one row is -1e9 (its
 * gradients are those of equal weights), and one row sees nothing. `learns`: the mask has a gradient too. */
static void check_masked(weft_context *ctx, bool learns) {
    enum { B = 2, H = 2, T = 3, S = 5, D = 4 };
    float x[B * H * S * D], more[H * T * S];
    weft_tensor *in[4], *grads[4];
    for (int64_t i = 0; i < 3; i++) {
        const int64_t time = i ? S : T;
        pattern(i + 1, B * H * time * D, 0, x);
        in[i] = weft_variable_new(ctx, "x", WEFT_F32, 4, (int64_t[]){B, H, time, D}, x);
    }
    pattern(4, H * T * S, 0, more);
    for (int j = 0; j < S; j++) more[S + j] = -1e9F, more[(T + 2) * S + j] = -INFINITY;
    more[2] = -INFINITY;
    in[3] = weft_variable_new(ctx, "mask", WEFT_F32, 3, (int64_t[]){H, T, S}, more);
    weft_tensor *y = weft_attention(in[0], in[1], in[2], &(weft_attention_options){.mask = in[3]});
    pattern(5, B * H * T * D, 0, x);
    for (int i = 0; i < B * H * T * D; i++) x[i] *= 100;
    weft_tensor *weights = weft_from(ctx, WEFT_F32, 4, (int64_t[]){B, H, T, D}, x);
    weft_tensor *loss = weft_sum(weft_mul(y, weights), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, in, learns ? 4 : 3, grads));
    weft_tensor *all[5] = {y, grads[0], grads[1], grads[2], learns ? grads[3] : y};
    assert_ok(weft_eval(all, 5));
    int fused = 0;
    const weft_program *program = newest(ctx);
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *c = &program->commands.list[i];
        fused += c->kind == WEFT_COMMAND_HEAVY && c->heavy.kind == WEFT_HEAVY_ATTENTION &&
                 c->heavy.as.attention.masked;
    }
    assert_int_equal(fused, learns ? 1 : 2);
    NEAR(y, masked_y);
    NEAR(grads[0], masked_q);
    NEAR(grads[1], masked_k);
    NEAR(grads[2], masked_v);
    if (learns) NEAR(grads[3], masked_mask);
}

/* Attention over no keys, with a learned mask. */
static void check_no_keys(weft_context *ctx) {
    enum { T = 3, D = 4 };
    const float y[T * D] = {0};
    weft_tensor *in[2] = {weft_variable_new(ctx, "x", WEFT_F32, 4, (int64_t[]){1, 1, T, D}, NULL),
                          weft_variable_new(ctx, "mask", WEFT_F32, 2, (int64_t[]){T, 0}, NULL)},
                *none = weft_variable_new(ctx, "x", WEFT_F32, 4, (int64_t[]){1, 1, 0, D}, NULL), *grads[2];
    weft_tensor *got = weft_attention(in[0], none, none, &(weft_attention_options){.mask = in[1]});
    assert_ok(weft_gradient(weft_sum(got, WEFT_ALL_AXES, false), in, 2, grads));
    NEAR(got, y);
    NEAR(grads[0], y);
    assert_int_equal(weft_numel(grads[1]), 0);
}

static void test_masked(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    check_masked(ctx, false);
    if (test_on_cpu()) {
        check_masked(ctx, true);
        check_no_keys(ctx);
    }
    weft_close(ctx);
}

/* ---- what is stored, and what is refused ---- */

/* An encoder never stores its attention scores, with padding or without. */
static void test_padding(void **state) {
    enum { LONG = 512 };
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_module *encoder = weft_nn_transformer_block(ctx, WIDTH, HEADS, NULL);
    uint64_t peaks[2];
    for (int i = 0; i < 2; i++) {
        weft_tensor *x = weft_variable_new(ctx, "x", WEFT_F32, SHAPE(1, LONG << i, WIDTH), NULL),
                    *mask = weft_variable_new(ctx, "mask", WEFT_BOOL, SHAPE(1, LONG << i), NULL);
        weft_parameter_info info;
        assert_true(weft_parameter_find(encoder, "attn.c_attn.weight", &info));
        weft_tensor *grad, *y = weft_attend(encoder, x, &(weft_attend_options){.mask = mask});
        assert_ok(weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &info.tensor, 1, &grad));
        assert_ok(weft_eval(&grad, 1));
        peaks[i] = ctx->device->bytes_peak;
    }
    assert_true(peaks[1] < LONG * LONG * 4 * HEADS); /* a quarter of the scores of the longer sequence */
    assert_true(peaks[1] > peaks[0]);
    weft_close(ctx);
}

/* Grouped-query attention reads shared keys and values in place: in the output of the projection and of the
 * rotation. */
static void test_shared(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_gpt_options o = llama_options();
    weft_module *gpt = weft_nn_gpt(ctx, &o);
    weft_module_set_training(gpt, false);
    weft_tensor *logits = weft_forward(gpt, tokens_of(ctx, 3));
    assert_ok(weft_eval(&logits, 1));
    const weft_program *program = newest(ctx);
    int attentions = 0;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *c = &program->commands.list[i];
        if (c->kind != WEFT_COMMAND_HEAVY || c->heavy.kind != WEFT_HEAVY_ATTENTION) continue;
        attentions++;
        assert_int_equal(c->heavy.as.attention.query_group, 2);
        assert_int_equal(c->heavy.as.attention.heads, HEADS);
        assert_int_equal(c->heavy.as.attention.v[2], 2 * WIDTH); /* the row length of the packed projection */
    }
    assert_int_equal(attentions, 2);
    weft_close(ctx);
}

/* For tokens (B, T) the classes are stored innermost, like the channels of an image. So logits keep their
 * layout, and the matmuls read them without a copy. */
static void test_copies(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_gpt_options o = llama_options();
    weft_module *gpt = weft_nn_gpt(ctx, &o);
    weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
    assert_ok(weft_optimizer_step(opt, loss_of(ctx, gpt, 0)));
    const weft_program *program = newest(ctx);
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *c = &program->commands.list[i];
        assert_false(c->kind == WEFT_COMMAND_KERNEL && strcmp(c->kernel->name, "copy") == 0 &&
                     weft__kernel_rows(c->kernel) * weft__kernel_row_length(c->kernel) >= 2 * TIME * VOCAB);
    }
    weft_close(ctx);
}

/* Recomputation and bf16 train the same network: the first loss is the same, and later losses are lower. */
static void test_training(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    for (int kind = test_on_cpu() ? 0 : 2; kind < 3; kind++) {
        weft_gpt_options o = llama_options();
        weft_module *gpt = weft_nn_gpt(ctx, &o);
        fill(gpt);
        if (kind == 1) assert_ok(weft_module_recompute(gpt, WEFT_RECOMPUTE_BLOCK));
        if (kind == 2) assert_ok(weft_module_compute(gpt, WEFT_BF16));
        weft_optimizer *opt = weft_adamw(gpt, &(weft_adam_options){.lr = 0.01});
        for (size_t i = 0; i < COUNT(llama_losses); i++) {
            weft_tensor *loss = loss_of(ctx, gpt, 0.1);
            float value = 0;
            assert_ok(weft_optimizer_step(opt, loss));
            assert_ok(weft_read(loss, &value, sizeof value));
            assert_true(fabsf(value - llama_losses[i]) <= (kind == 2 ? 0.05F : 1e-5F));
        }
        weft_module_free(gpt);
    }
    weft_close(ctx);
}

static void refused(weft_module *m, weft_status status, const char *words) {
    assert_int_equal(weft_module_status(m), status);
    assert_non_null(strstr(weft_last_error(NULL), words));
}

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    refused(weft_nn_multihead_attention(ctx, 12, 4, &(weft_multihead_attention_options){.rotary = true}),
            WEFT_ERR_ARGUMENT, "pairs of channels");
    refused(weft_nn_multihead_attention(ctx, 12, 4, &(weft_multihead_attention_options){.kv_heads = 3}),
            WEFT_ERR_ARGUMENT, "multiple of kv_heads");
    refused(weft_nn_cross_attention(ctx, 8, 0, 2, NULL), WEFT_ERR_ARGUMENT, "memory width");
    refused(weft_nn_cross_attention(ctx, 8, 8, 2, &(weft_multihead_attention_options){.causal = true}),
            WEFT_ERR_ARGUMENT, "causal");
    refused(
        weft_nn_transformer_block(ctx, 8, 2, &(weft_transformer_block_options){.norm = (weft_norm_kind)7}),
        WEFT_ERR_ARGUMENT, "norm");
    weft_gpt_options o = llama_options();
    o.positions = (weft_position_kind)9;
    refused(weft_nn_gpt(ctx, &o), WEFT_ERR_ARGUMENT, "positions");
    weft_module *cross = weft_nn_cross_attention(ctx, WIDTH, 8, 2, NULL);
    weft_tensor *x = pattern_of(ctx, 3, TIME, false);
    assert_int_equal(weft_tensor_status(weft_forward(cross, x)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_attend(cross, x, &(weft_attend_options){.memory = x})),
                     WEFT_ERR_SHAPE);
    assert_int_equal(weft_tensor_status(weft_attend(NULL, x, &(weft_attend_options){.memory = x})),
                     WEFT_ERR_ARGUMENT);
    weft_module *block = weft_nn_transformer_block(ctx, WIDTH, 2, NULL);
    assert_ok(weft_tensor_status(weft_attend(block, x, NULL)));
    assert_int_equal(weft_tensor_status(weft_attend(block, x, &(weft_attend_options){.mask = x})),
                     WEFT_ERR_SHAPE);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parity),   cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_shared),   cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_masked),   cmocka_unit_test(test_padding),
                                       cmocka_unit_test(test_training), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
