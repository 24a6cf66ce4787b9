/* The size of a training step on a large GPU, counted from its plan, without a GPU: launches (each is a node
 * of the step's graph), bytes that are moved, and operations. Upper bounds are the reached values, so that
 * growth fails. Lower bounds detect a step that lost some of its work. */
#include "device/null/null.h"
#include "graph/graph.h"
#include "unit/nn_help.h"

typedef struct net {
    weft_context *ctx;
    weft_optimizer *optimizer;
    weft_tensor *loss;
} net;

static weft_context *open_card(void **state) {
    weft_context *ctx = NULL;
    assert_ok(weft_open(&(weft_open_options){.device = *state, .seed = 1}, &ctx));
    return ctx;
}

/* A variable of zeros. */
static weft_tensor *zeros(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    return weft_variable_new(ctx, "input", dtype, rank, shape, NULL);
}

static weft_program_work plan(net *n, weft_null_counts *counts) {
    weft_memory_plan made;
    assert_ok(weft_optimizer_plan(n->optimizer, n->loss, 1, &made));
    *counts = *weft__null_counts(n->ctx->device);
    assert_int_equal(made.program.launches, counts->launches);
    return made.program;
}

/* GPT-2 of 124 million parameters, 64 x 1,024 tokens, in bf16 with f32 weights, AdamW with clipping. Bytes
 * moved outside of matmuls and attention: residuals and norms 9.7 GB, their gradients as much, the loss 13.2
 * GB, the optimizer 3.5 GB, tables 0.4 GB. */
static void test_gpt2(void **state) {
    enum { BATCH = 64, TIME = 1024, VOCAB = 50304, ROWS = BATCH * TIME };
    net n = {.ctx = open_card(state)};
    weft_module *gpt = weft_nn_gpt(
        n.ctx, &(weft_gpt_options){.vocab = VOCAB, .context = TIME, .layers = 12, .heads = 12, .width = 768});
    assert_ok(weft_module_compute(gpt, WEFT_BF16));
    n.optimizer = weft_adamw(
        gpt, &(weft_adam_options){
                 .lr = 6e-4, .beta2 = 0.95, .weight_decay = 0.1, .decay_matrices_only = true, .clip = 1.0});
    weft_tensor *logits = weft_forward(gpt, zeros(n.ctx, WEFT_I32, SHAPE(BATCH, TIME)));
    n.loss = weft_cross_entropy(weft_reshape(logits, SHAPE(ROWS, VOCAB)), zeros(n.ctx, WEFT_I32, SHAPE(ROWS)),
                                NULL);
    weft_null_counts counts;
    const weft_program_work work = plan(&n, &counts);
    /* one weight gradient of each layer has few tiles, so its sum over rows is split into parts */
    const bool cuda = strcmp(*state, "null:cuda") == 0; /* many blocks: the loss and the gradient norm do not
                                                         * share a second stage, and there are more sums */
    const int sorted = cuda ? 7 : 0; /* the gradient of the embedding takes 8 launches, not one */
    const int apart = cuda ? 11 : 0; /* sums of many biases: three launches of 96 blocks took 0.43 ms on an
                                      * H200, where 14 share the card */
    assert_in_range(work.launches, 148 + 24, 245 + 12 + cuda + sorted + apart);
    assert_true(work.bytes[WEFT_WORK_OTHER] < (cuda ? 38.8e9 : 38.4e9));
    assert_true(work.bytes[WEFT_WORK_OTHER] > 30e9);
    assert_true(fabs(work.flops[WEFT_WORK_MATMUL] / (6.0 * 123.57e6 * (double)ROWS) - 1) < 0.01);
    assert_true(fabs(work.flops[WEFT_WORK_ATTENTION] / 4.334e12 - 1) < 0.01);
    weft_close(n.ctx);
}

/* The step of an MLP on digit images. */
static void test_mlp(void **state) {
    enum { BATCH = 128, IN = 784, HIDDEN = 512, OUT = 10 };
    net n = {.ctx = open_card(state)};
    weft_module *mlp = weft_nn_mlp(n.ctx, (int64_t[]){IN, HIDDEN, OUT}, 3, NULL);
    n.optimizer = weft_adam(mlp, &(weft_adam_options){.lr = 1e-3});
    n.loss = weft_cross_entropy(weft_forward(mlp, zeros(n.ctx, WEFT_F32, SHAPE(BATCH, IN))),
                                zeros(n.ctx, WEFT_I32, SHAPE(BATCH)), NULL);
    weft_null_counts counts;
    const weft_program_work work = plan(&n, &counts);
    const double product = 2.0 * (BATCH * IN * HIDDEN), head = 2.0 * (BATCH * HIDDEN * OUT);
    /* CUDA: concurrent launches, and the sums of three matmuls whose k is split */
    assert_in_range(counts.fused, 1, strcmp(*state, "null:cuda") == 0 ? 6 + 3 : 10);
    assert_true(fabs(work.flops[WEFT_WORK_MATMUL] / (2 * product + 3 * head) - 1) < 0.01);
    weft_close(n.ctx);
}

/* After some 200 runs, one launch does 64 whole steps of XOR. */
static void test_xor(void **state) {
    for (int adam = 0; adam <= 1; adam++) {
        net n = {.ctx = open_card(state)};
        weft_module *mlp = weft_nn_mlp(n.ctx, (int64_t[]){2, 8, 1}, 3, NULL);
        n.optimizer = adam ? weft_adam(mlp, &(weft_adam_options){.lr = 0.1})
                           : weft_sgd(mlp, &(weft_sgd_options){.lr = 0.1});
        n.loss = weft_mse(weft_forward(mlp, zeros(n.ctx, WEFT_F32, SHAPE(4, 2))),
                          zeros(n.ctx, WEFT_F32, SHAPE(4, 1)), WEFT_MEAN);
        weft_null_counts counts;
        plan(&n, &counts);
        assert_int_equal(counts.fused, 1);
        assert_true(counts.repeats);
        weft_close(n.ctx);
    }
}

static void test_unknown_card(void **state) {
    weft_context *ctx = NULL;
    (void)state;
    assert_int_equal(weft_open(&(weft_open_options){.device = "null:abacus"}, &ctx), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(NULL), "null:cuda"));
}

int main(void) {
    static char cuda[] = "null:cuda", opencl[] = "null:opencl";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gpt2, cuda),  cmocka_unit_test_prestate(test_mlp, cuda),
        cmocka_unit_test_prestate(test_xor, cuda),   cmocka_unit_test_prestate(test_gpt2, opencl),
        cmocka_unit_test_prestate(test_mlp, opencl), cmocka_unit_test_prestate(test_xor, opencl),
        cmocka_unit_test(test_unknown_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
