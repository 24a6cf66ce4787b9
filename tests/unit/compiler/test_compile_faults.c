/* Memory runs out anywhere in a training step, with and without recomputation. This is an ordinary error:
 * nothing is recorded partly, nothing leaks, and the context works when there is memory again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <weft/weft.h>
#include "unit/failing_alloc.h"

enum { VOCAB = 5, CONTEXT = 4, WIDTH = 4 };

static weft_tensor *loss_of(weft_context *ctx, weft_module *net) {
    const int32_t x[CONTEXT] = {0, 1, 2, 3}, y[CONTEXT] = {1, 2, 3, 4};
    const int64_t shape[2] = {1, CONTEXT};
    weft_tensor *input = weft_from(ctx, WEFT_I32, 2, shape, x);
    weft_tensor *target = weft_from(ctx, WEFT_I32, 2, shape, y);
    return weft_cross_entropy(weft_forward(net, input), target, NULL);
}

static weft_status step(weft_context *ctx, weft_module *net, weft_optimizer *adam) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return weft_last_status(ctx);
    const weft_status status = weft_optimizer_step(adam, loss_of(ctx, net));
    weft_scope_close(scope);
    return status;
}

/* Makes a step in a new context, where allocation number `at` of the step fails. Returns false once the step
 * succeeds. */
static bool fail_at(weft_recompute recompute, int at) {
    failing_alloc f = {0};
    weft_context *ctx;
    const weft_open_options options = {
        .device = "cpu", .threads = 1, .alloc = failing_realloc, .alloc_user = &f};
    assert_int_equal(weft_open(&options, &ctx), WEFT_OK);
    weft_module *net = weft_nn_gpt(
        ctx,
        &(weft_gpt_options){.vocab = VOCAB, .context = CONTEXT, .layers = 1, .heads = 2, .width = WIDTH});
    assert_int_equal(weft_module_recompute(net, recompute), WEFT_OK);
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-2, .clip = 1.0});
    f.calls = 0, f.fail_at = at;
    const weft_status status = step(ctx, net, adam);
    const bool failed = f.calls >= at;
    f.fail_at = 0;
    if (status != WEFT_OK && (status != WEFT_ERR_OOM || !failed))
        fail_msg("policy %d, allocation %d: %s", (int)recompute, at, weft_last_error(NULL));
    if (step(ctx, net, adam) != WEFT_OK)
        fail_msg("policy %d, after allocation %d failed: %s", (int)recompute, at, weft_last_error(NULL));
    weft_close(ctx);
    if (f.live) fail_msg("policy %d, allocation %d: %d blocks leak", (int)recompute, at, f.live);
    return failed;
}

static void fail_each(weft_recompute recompute) {
    int at = 1;
    while (fail_at(recompute, at)) at++;
    assert_true(at > 100);
}

static void test_none(void **state) {
    (void)state;
    fail_each(WEFT_RECOMPUTE_NONE);
}

static void test_gelu(void **state) {
    (void)state;
    fail_each(WEFT_RECOMPUTE_GELU);
}

static void test_norm(void **state) {
    (void)state;
    fail_each(WEFT_RECOMPUTE_NORM);
}

static void test_block(void **state) {
    (void)state;
    fail_each(WEFT_RECOMPUTE_BLOCK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none), cmocka_unit_test(test_gelu),
                                       cmocka_unit_test(test_norm), cmocka_unit_test(test_block)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
