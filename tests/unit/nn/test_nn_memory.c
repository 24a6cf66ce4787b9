/* Fails every allocation of making, training, decoding and freeing a model in turn. Each failure must give
 * a status and must leak nothing. A scenario that still succeeds must give the same values as without
 * failures. */
#include "unit/nn_help.h"

typedef struct counted {
    long calls, fail_at, live;
    bool for_good; /* all later allocations fail too */
} counted;

static void *counted_alloc(void *user, void *old, size_t size) {
    counted *c = user;
    if (size == 0) {
        c->live -= old != NULL;
        free(old);
        return NULL;
    }
    c->calls++;
    if (c->fail_at && (c->for_good ? c->calls >= c->fail_at : c->calls == c->fail_at)) return NULL;
    void *p = realloc(old, size);
    c->live += p && !old;
    return p;
}

/* The result of a scenario. */
static struct outcome {
    float values[16];
    char summary[500];
} outcome;

/* Remembers the first failure of several calls. */
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        weft_status status_ = (call);                                                                        \
        if (status_ != WEFT_OK) return status_;                                                              \
    } while (0)

static weft_status train(weft_context *ctx) {
    weft_module *net =
        weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 2, 3, NULL), weft_nn_activation(ctx, WEFT_TANH),
                           weft_nn_dropout(ctx, 0.1), weft_nn_linear(ctx, 3, 1, NULL), NULL);
    weft_optimizer *opt =
        weft_adamw(net, &(weft_adam_options){.lr = 0.1, .clip = 1.0, .decay_matrices_only = true});
    TRY(weft_optimizer_status(opt));
    TRY(weft_optimizer_group(opt, &(weft_group_options){.pattern = "3.*", .lr_scale = 0.5}));
    for (int step = 0; step < 2; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        if (!scope) return WEFT_ERR_OOM;
        weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 2), (float[]){1, 2, 3, 4});
        weft_tensor *y = weft_from(ctx, WEFT_F32, SHAPE(2, 1), (float[]){0, 1});
        weft_tensor *loss = weft_bce_with_logits(weft_forward(net, x), y, WEFT_MEAN);
        weft_status status = weft_optimizer_accumulate(opt, loss, step, 2);
        weft_scope_close(scope);
        TRY(status);
    }
    weft_parameter_info weight;
    if (!weft_parameter_find(net, "0.weight", &weight)) return WEFT_ERR_INTERNAL;
    return weft_read(weight.tensor, outcome.values, 6 * sizeof(float));
}

static weft_status decode(weft_context *ctx) {
    weft_module *gpt =
        weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 3, .context = 4, .layers = 1, .heads = 1, .width = 2});
    TRY(weft_module_status(gpt));
    if (weft_summary(gpt, outcome.summary, sizeof outcome.summary) < 0) return weft_last_status(ctx);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    if (!cache) return weft_last_status(ctx);
    TRY(weft_gpt_feed(cache, (int32_t[]){1, 2}, 2, outcome.values));
    weft_decode_state_free(cache);
    weft_module_free(gpt);
    return WEFT_OK;
}

/* Repeats the scenario until no allocation is left to fail. */
static void fail_each(weft_status (*scenario)(weft_context *ctx), bool for_good) {
    struct outcome whole = {0};
    for (long at = 0;; at++) {
        memset(&outcome, 0, sizeof outcome);
        counted c = {.fail_at = at, .for_good = for_good};
        weft_context *ctx = NULL;
        weft_status status =
            weft_open(&(weft_open_options){.alloc = counted_alloc, .alloc_user = &c, .threads = 1}, &ctx);
        if (status == WEFT_OK) status = scenario(ctx);
        if (status != WEFT_OK && status != WEFT_ERR_OOM)
            print_error("allocation %ld: %s\n", at, weft_last_error(NULL));
        assert_true(status == WEFT_OK || status == WEFT_ERR_OOM);
        weft_close(ctx);
        if (at == 0) whole = outcome;
        if (status == WEFT_OK && memcmp(&whole, &outcome, sizeof whole) != 0)
            fail_msg("allocation %ld: other values than without a failure:\n%s", at, outcome.summary);
        if (c.live) print_error("allocation %ld: %ld blocks are left\n", at, c.live);
        assert_int_equal(c.live, 0);
        if (at > 0 && c.calls < at) {
            assert_int_equal(status, WEFT_OK);
            print_message("%ld allocations\n", at - 1);
            return;
        }
    }
}

static void test_training(void **state) {
    (void)state;
    fail_each(train, false);
}

static void test_training_for_good(void **state) {
    (void)state;
    fail_each(train, true);
}

static void test_decoding(void **state) {
    (void)state;
    fail_each(decode, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_for_good),
        cmocka_unit_test(test_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
