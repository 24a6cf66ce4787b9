/* Cross-entropy whose logits are computed in chunks must equal cross-entropy of the whole logits: loss,
 * gradients, ignored targets, evaluation. It must never hold all logits. On the CPU and on a GPU device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include <weft/weft.h>

#include "compiler/program.h"
#include "device.h"
#include "gpu.h"

enum { VOCAB = 48, TIME = 20, WIDTH = 16, BATCH = 3, ROWS = BATCH * TIME, STEPS = 3 };

typedef struct outcome {
    float losses[STEPS], table[VOCAB * WIDTH];
    int64_t products;
} outcome;

typedef struct form {
    const char *device;
    int parts;
    bool untied, bf16;
    weft_cross_entropy_options loss;
} form;

static weft_tensor *loss_of(weft_context *ctx, weft_module *net, const form *f) {
    int32_t x[ROWS], y[ROWS];
    const int64_t shape[2] = {BATCH, TIME};
    for (int i = 0; i < ROWS; i++) {
        x[i] = i * 7 % VOCAB;
        y[i] = (i * 5 + 1) % VOCAB;
    }
    weft_tensor *logits = weft_forward(net, weft_from(ctx, WEFT_I32, 2, shape, x));
    weft_tensor *loss = weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, 2, shape, y), &f->loss);
    return f->loss.reduction == WEFT_NONE ? weft_mean(loss, WEFT_ALL_AXES, false) : loss;
}

static int64_t products(const weft_program *program) {
    int64_t n = 0;
    for (int i = 0; i < program->commands.count; i++)
        n += program->commands.list[i].kind == WEFT_COMMAND_HEAVY;
    return n;
}

static void train(const form *f, outcome *out) {
    weft_context *ctx;
    assert_int_equal(weft_open(&(weft_open_options){.device = f->device, .seed = 5}, &ctx), WEFT_OK);
    weft_module *net = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = VOCAB,
                                                            .context = TIME,
                                                            .layers = 1,
                                                            .heads = 2,
                                                            .width = WIDTH,
                                                            .untied_head = f->untied,
                                                            .head_chunks = f->parts});
    if (f->bf16) assert_int_equal(weft_module_compute(net, WEFT_BF16), WEFT_OK);
    weft_optimizer *sgd = weft_sgd(net, &(weft_sgd_options){.lr = 0.5});
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *loss = loss_of(ctx, net, f);
        assert_int_equal(weft_optimizer_step(sgd, loss), WEFT_OK);
        assert_int_equal(weft_read(loss, &out->losses[step], sizeof(float)), WEFT_OK);
        weft_scope_close(scope);
    }
    out->products = products(ctx->compiler->newest);
    weft_parameter_info wte;
    assert_true(weft_parameter_find(net, "wte.weight", &wte));
    assert_int_equal(weft_read(wte.tensor, out->table, sizeof out->table), WEFT_OK);
    weft_close(ctx);
}

/* The numbers agree up to the rounding of sums, and a second run gives the same bits. 60 rows make 7
 * chunks, of which the last is shorter. */
static void check(form f, int most) {
    static outcome whole, made, once_more;
    const float loss = f.bf16 ? 2e-3f : 2e-5f, weight = f.bf16 ? 2e-2f : 1e-4f;
    f.parts = 1;
    train(&f, &whole);
    for (f.parts = 4; f.parts <= most; f.parts += 3) {
        train(&f, &made);
        train(&f, &once_more);
        assert_memory_equal(made.losses, once_more.losses, sizeof made.losses);
        assert_memory_equal(made.table, once_more.table, sizeof made.table);
        assert_int_equal(made.products, whole.products + 3 * (f.parts - 1));
        for (int i = 0; i < STEPS; i++)
            assert_float_equal(made.losses[i], whole.losses[i], loss * (1 + fabsf(whole.losses[i])));
        for (int i = 0; i < VOCAB * WIDTH; i++) assert_float_equal(made.table[i], whole.table[i], weight);
    }
}

static void check_device(const char *device) {
    const weft_cross_entropy_options mean = {.reduction = WEFT_MEAN}, sum = {.reduction = WEFT_SUM},
                                     ignoring = {.use_ignore = true, .ignore = 6, .smoothing = 0.1},
                                     none = {.reduction = WEFT_NONE, .use_ignore = true, .ignore = 6};
    if (strcmp(device, "cpu") != 0) {
        check((form){.device = device, .loss = ignoring, .bf16 = true}, 4);
        return;
    }
    check((form){.device = device, .loss = mean}, 7);
    check((form){.device = device, .loss = mean, .bf16 = true}, 7);
    check((form){.device = device, .loss = ignoring, .untied = true}, 7);
    check((form){.device = device, .loss = none}, 7);
    form f = {.device = device, .loss = sum, .parts = 1};
    outcome whole, parts;
    train(&f, &whole); /* the training soon diverges, so only the first loss (a sum) is compared */
    f.parts = 3;
    train(&f, &parts);
    assert_float_equal(parts.losses[0], whole.losses[0], 1e-5f * whole.losses[0]);
}

static void test_cpu(void **state) {
    (void)state;
    check_device("cpu");
}

static void test_card(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    check_device(test_gpu());
}

/* Evaluation also computes its logits in chunks, for losses and for right answers. */
static void test_evaluation(void **state) {
    double loss[2], right[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        weft_context *ctx;
        int32_t ids[200];
        for (int i = 0; i < 200; i++) ids[i] = i * i % VOCAB;
        assert_int_equal(weft_open(&(weft_open_options){.seed = 5}, &ctx), WEFT_OK);
        weft_module *net = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = VOCAB,
                                                                .context = TIME,
                                                                .layers = 1,
                                                                .heads = 2,
                                                                .width = WIDTH,
                                                                .head_chunks = k ? 8 : 1});
        weft_loader *loader = NULL;
        assert_int_equal(
            weft_loader_tokens(ctx, ids, 200, TIME, &(weft_loader_options){.batch = BATCH}, &loader),
            WEFT_OK);
        assert_int_equal(weft_module_evaluate(net, loader, WEFT_LOSS_CROSS_ENTROPY, &loss[k], &right[k]),
                         WEFT_OK);
        weft_loader_free(loader);
        weft_close(ctx);
    }
    assert_float_equal(loss[0], loss[1], 1e-6);
    assert_float_equal(right[0], right[1], 1e-9);
}

static void test_parts_of(void **state) {
    weft_context *ctx;
    (void)state;
    assert_int_equal(weft_open(NULL, &ctx), WEFT_OK);
    weft_module *net = weft_nn_gpt(
        ctx, &(weft_gpt_options){
                 .vocab = 8, .context = 4, .layers = 1, .heads = 1, .width = 4, .head_chunks = -1});
    assert_int_equal(weft_module_status(net), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_card),
                                       cmocka_unit_test(test_evaluation), cmocka_unit_test(test_parts_of)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
