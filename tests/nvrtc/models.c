/* Training steps, evaluations and decoding of the models that Weft's benchmarks use. Each is recorded once on
 * a device that computes nothing; the kernel sources are then in the folder. Widths, contexts and
 * vocabularies are the real ones, since kernel sources depend on them. The number of layers does not matter,
 * so there are two. */
#include <stdlib.h>
#include <weft/weft.h>

#include "cuda_sources.h"
#include "nvrtc/models.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

typedef struct model {
    const char *name;
    int64_t batch, in, classes; /* in: numbers in a row, or tokens in a sequence */
    weft_gpt_options gpt;       /* vocab 0: not a GPT */
    double clip, dropout;
} model;

static const model models[] = {
    {.name = "xor", .batch = 4, .in = 2, .classes = 2},
    {.name = "mlp", .batch = 128, .in = 784, .classes = 10},
    {.name = "mlp with dropout", .batch = 128, .in = 784, .classes = 10, .dropout = 0.1, .clip = 1},
    {.name = "chargpt", .batch = 12, .in = 64, .gpt = {65, 64, 2, 4, 128, .dropout = 0.1}, .clip = 1},
    {.name = "gpt2", .batch = 4, .in = 1024, .gpt = {50304, 1024, 2, 12, .width = 768}, .clip = 1},
    {.name = "gpt2 bf16", .batch = 4, .in = 1024, .gpt = {50304, 1024, 2, 12, 768, .dtype = WEFT_BF16}},
};

static weft_module *module_of(weft_context *ctx, const model *m) {
    const int64_t hidden = m->in < 16 ? 8 : 512;
    if (m->gpt.vocab) return weft_nn_gpt(ctx, &m->gpt);
    return weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, m->in, hidden, NULL),
                              weft_nn_activation(ctx, m->in < 16 ? WEFT_TANH : WEFT_RELU),
                              weft_nn_dropout(ctx, m->dropout), weft_nn_linear(ctx, hidden, m->classes, NULL),
                              NULL);
}

static weft_status step(weft_context *ctx, const model *m, weft_module *module) {
    const bool gpt = m->gpt.vocab != 0;
    const int64_t rows[] = {m->batch, m->in};
    void *data = calloc((size_t)(m->batch * m->in), 4);
    if (!data) return WEFT_ERR_OOM;
    weft_tensor *x = weft_from(ctx, gpt ? WEFT_I32 : WEFT_F32, 2, rows, data);
    weft_tensor *y = weft_from(ctx, WEFT_I32, gpt ? 2 : 1, rows, data);
    free(data);
    weft_optimizer *optimizer =
        weft_adamw(module, &(weft_adam_options){.lr = 1e-3, .weight_decay = 0.1, .clip = m->clip});
    weft_tensor *loss = weft_cross_entropy(weft_forward(module, x), y, NULL);
    weft_status status = weft_optimizer_step(optimizer, loss);
    weft_module_set_training(module, false);
    weft_tensor *out = weft_argmax(weft_forward(module, x), -1, false);
    if (status == WEFT_OK) status = weft_eval(&out, 1);
    return status;
}

static weft_status decode(const model *m, weft_module *module) {
    const int32_t tokens[] = {1, 2, 3};
    float *logits = calloc((size_t)m->gpt.vocab, sizeof *logits);
    weft_decode_state *cache = weft_decode_state_new(module);
    weft_status status = cache && logits ? weft_gpt_feed(cache, tokens, 3, logits) : WEFT_ERR_OOM;
    if (status == WEFT_OK) status = weft_gpt_feed(cache, tokens, 1, logits);
    weft_decode_state_free(cache);
    free(logits);
    return status;
}

/* Attention with head sizes that no model above has, forward and backward. */
static weft_status attend(weft_context *ctx) {
    static const struct {
        int64_t channels;
        weft_dtype dtype;
        double dropout;
        weft_dtype mask; /* bool: padding, f32: added, i32: no mask */
    } heads[] = {{32, WEFT_BF16, 0.1, WEFT_I32}, {64, WEFT_F16, 0, WEFT_I32},
                 {96, WEFT_BF16, 0, WEFT_I32},   {128, WEFT_BF16, 0, WEFT_I32},
                 {64, WEFT_BF16, 0, WEFT_BOOL},  {128, WEFT_BF16, 0.1, WEFT_F32},
                 {64, WEFT_F32, 0, WEFT_BOOL}};
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < sizeof heads / sizeof *heads && status == WEFT_OK; i++) {
        weft_tensor *in[3], *results[4];
        for (int k = 0; k < 3; k++)
            in[k] =
                weft_variable_new(ctx, "part", heads[i].dtype, SHAPE(4, 32, 1024, heads[i].channels), NULL);
        weft_attention_options options = {.causal = true, .dropout = heads[i].dropout};
        if (heads[i].mask == WEFT_BOOL)
            options.mask = weft_variable_new(ctx, "mask", WEFT_BOOL, SHAPE(4, 1, 1, 1024), NULL);
        if (heads[i].mask == WEFT_F32)
            options.mask = weft_variable_new(ctx, "mask", WEFT_F32, SHAPE(32, 1024, 1024), NULL);
        results[3] = weft_attention(in[0], in[1], in[2], &options);
        status = weft_gradient(weft_sum(results[3], WEFT_ALL_AXES, false), in, 3, results);
        if (status == WEFT_OK) status = weft_eval(results, 4);
    }
    return status;
}

/* Convolutions with and without a stride, and depthwise, forward and backward. */
static weft_status convolve(weft_context *ctx) {
    static const struct {
        int64_t in, out, groups, stride;
        weft_dtype dtype;
    } layers[] = {{3, 64, 1, 1, WEFT_F32},
                  {64, 128, 1, 2, WEFT_F32},
                  {64, 128, 1, 2, WEFT_BF16},
                  {64, 64, 64, 1, WEFT_F32}};
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < sizeof layers / sizeof *layers && status == WEFT_OK; i++) {
        const weft_conv_options o = {
            .stride = {layers[i].stride, layers[i].stride}, .padding = {1, 1}, .groups = layers[i].groups};
        weft_tensor *in[2] = {
            weft_variable_new(ctx, "image", layers[i].dtype, SHAPE(32, layers[i].in, 32, 32), NULL),
            weft_variable_new(ctx, "weight", layers[i].dtype,
                              SHAPE(layers[i].out, layers[i].in / layers[i].groups, 3, 3), NULL)};
        weft_tensor *results[3] = {NULL, NULL, weft_conv2d(in[0], in[1], NULL, &o)};
        status = weft_gradient(weft_sum(results[2], WEFT_ALL_AXES, false), in, 2, results);
        if (status == WEFT_OK) status = weft_eval(results, 3);
    }
    return status;
}

/* Two matmuls of one phase, which a concurrent fused launch computes, with tiles that use all the local
 * memory that a source may declare. */
static weft_status multiply_concurrently(weft_context *ctx) {
    enum { SIDE = 128, BYTES = SIDE * SIDE * 2 };
    const weft_heavy matmul = {.kind = WEFT_HEAVY_MATMUL,
                               .as.matmul = {.dtype = WEFT_BF16,
                                             .out_dtype = WEFT_BF16,
                                             .m = SIDE,
                                             .n = SIDE,
                                             .k = SIDE,
                                             .a_m = SIDE,
                                             .a_k = 1,
                                             .b_k = SIDE,
                                             .b_n = 1,
                                             .c_m = SIDE}};
    weft_operand first[3] = {{0, 0}, {1, 0}, {2, 0}}, second[3] = {{0, 0}, {1, 0}, {3, 0}};
    weft_operand copy[2] = {{2, 0}, {4, 0}};
    weft_command list[] = {{.kind = WEFT_COMMAND_HEAVY, .heavy = matmul, .n_operands = 3, .operands = first},
                           {.kind = WEFT_COMMAND_HEAVY, .heavy = matmul, .n_operands = 3, .operands = second},
                           {.kind = WEFT_COMMAND_COPY,
                            .after = true,
                            .sink = true,
                            .bytes = BYTES,
                            .n_operands = 2,
                            .operands = copy}};
    const weft_commands commands = {.count = 3, .n_slots = 5, .list = list};
    weft_executable *e;
    WEFT_TRY(ctx->device->ops->build(ctx->device, &commands, &e));
    ctx->device->ops->executable_free(ctx->device, e);
    return WEFT_OK;
}

/* 16-bit matmuls in each tile that the tuner may choose: of matrices that it reads in place and of turned
 * ones, the latter with sums in two levels and sums of rows. */
static weft_status multiply_in_tiles(weft_context *ctx) {
    enum { SIDE = 256 };
    for (int i = 0; i < 2 * WEFT_TUNER_VARIANTS; i++) {
        const bool turned = i % 2;
        weft_operand operands[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
        weft_command command = {.kind = WEFT_COMMAND_HEAVY,
                                .sink = true,
                                .heavy = {.kind = WEFT_HEAVY_MATMUL,
                                          .as.matmul = {.dtype = turned ? WEFT_BF16 : WEFT_F16,
                                                        .out_dtype = turned ? WEFT_F32 : WEFT_F16,
                                                        .sums = turned,
                                                        .m = SIDE,
                                                        .n = SIDE,
                                                        .k = SIDE,
                                                        .a_m = turned ? 1 : SIDE,
                                                        .a_k = turned ? SIDE : 1,
                                                        .b_k = turned ? SIDE : 1,
                                                        .b_n = turned ? 1 : SIDE,
                                                        .c_m = SIDE}},
                                .n_operands = turned ? 4 : 3,
                                .operands = operands};
        const weft_commands commands = {.count = 1, .n_slots = 4, .list = &command};
        weft_executable *e;
        cuda_sources.tuner.forced = i / 2 + 1;
        const weft_status status = ctx->device->ops->build(ctx->device, &commands, &e);
        cuda_sources.tuner.forced = 0;
        WEFT_TRY(status);
        ctx->device->ops->executable_free(ctx->device, e);
    }
    return WEFT_OK;
}

static bool write_operation_sources(const char *folder, const char *name,
                                    weft_status (*compute)(weft_context *)) {
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.device = "null"}, &ctx) != WEFT_OK) return false;
    cuda_sources_write(ctx, folder);
    const weft_status status = compute(ctx);
    if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", name, weft_last_error(ctx));
    weft_close(ctx);
    return status == WEFT_OK && !cuda_sources.failed;
}

bool write_model_sources(const char *folder, const char *device) {
    cuda_sources.hip = !strcmp(device, "hip");
    cuda_sources.wgsl = !strcmp(device, "webgpu");
    bool all = write_operation_sources(folder, "attention", attend);
    all = write_operation_sources(folder, "convolution", convolve) && all;
    if (!cuda_sources.wgsl)
        all = write_operation_sources(folder, "concurrent matmuls", multiply_concurrently) && all;
    if (cuda_sources.hip) all = write_operation_sources(folder, "tiles", multiply_in_tiles) && all;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        weft_context *ctx;
        if (weft_open(&(weft_open_options){.device = "null"}, &ctx) != WEFT_OK) return false;
        cuda_sources_write(ctx, folder);
        weft_scope *scope = weft_scope_open(ctx);
        weft_module *module = module_of(ctx, &models[i]);
        weft_status status = step(ctx, &models[i], module);
        if (status == WEFT_OK && models[i].gpt.vocab) status = decode(&models[i], module);
        if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", models[i].name, weft_last_error(ctx));
        all = all && status == WEFT_OK && !cuda_sources.failed;
        weft_scope_close(scope);
        weft_close(ctx);
    }
    return all;
}
