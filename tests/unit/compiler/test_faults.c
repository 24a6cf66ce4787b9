/* Host memory runs out at each allocation of a scenario in turn, once or from then on. Each call must return
 * a status or a poisoned tensor, and nothing may leak. After a single failure, the same context must complete
 * the whole scenario. */
#include "unit/core_help.h"

#include <weft/profile.h>

typedef struct meter {
    int calls, fail_at, live; /* fail_at 0: never */
    bool for_good;            /* every allocation from fail_at on fails */
} meter;

static void *metered(void *user, void *old, size_t size) {
    meter *m = user;
    if (size == 0) {
        m->live -= old != NULL;
        free(old);
        return NULL;
    }
    m->calls++;
    if (m->fail_at && (m->for_good ? m->calls >= m->fail_at : m->calls == m->fail_at)) return NULL;
    void *p = realloc(old, size);
    m->live += p && !old;
    return p;
}

typedef weft_status (*scenario)(weft_context *ctx);

static weft_status open_metered(meter *m, const char *device, weft_context **ctx) {
    return weft_open(&(weft_open_options){.device = device, .threads = 1, .alloc = metered, .alloc_user = m},
                     ctx);
}

static void assert_clean(const meter *m, const char *what, int at) {
    if (m->live == 0) return;
    print_error("%s: %d allocations are lost when number %d fails\n", what, m->live, at);
    fail();
}

static void assert_status(weft_status status, const char *what, int at) {
    if (status == WEFT_OK || status == WEFT_ERR_OOM) return;
    print_error("%s: allocation %d fails: %s: %s\n", what, at, weft_status_name(status),
                weft_last_error(NULL));
    fail();
}

/* Fails each allocation of opening, the scenario and closing in turn. */
static int torture(const char *what, const char *device, scenario run, bool for_good) {
    for (int at = 1;; at++) {
        meter m = {.fail_at = at, .for_good = for_good};
        weft_context *ctx = NULL;
        weft_status status = open_metered(&m, device, &ctx);
        assert_status(status, what, at);
        if (status == WEFT_OK) {
            status = run(ctx);
            assert_status(status, what, at);
            bool reached = m.calls >= at;
            if (reached) { /* memory is available again: the context must work fully */
                m.fail_at = 0;
                weft_status again = run(ctx);
                if (again != WEFT_OK)
                    print_error("%s: after allocation %d failed: %s\n", what, at, weft_last_error(ctx));
                assert_int_equal(again, WEFT_OK);
            }
            weft_close(ctx);
            assert_clean(&m, what, at);
            if (!reached) return at - 1;
        } else {
            assert_null(ctx);
            assert_clean(&m, what, at);
        }
        assert_true(at < 20000);
    }
}

static void torture_all(const char *what, scenario run) {
    static const char *const devices[] = {"cpu", "interp"};
    for (size_t d = 0; d < COUNT(devices); d++) {
        int once = torture(what, devices[d], run, false), for_good = torture(what, devices[d], run, true);
        printf("%s on %s: %d allocations failed once, %d for good\n", what, devices[d], once, for_good);
        assert_true(once > 0 && for_good > 0);
    }
}

/* ---- scenarios; each uses a scope, so that a second run finds the same context ---- */

static weft_status value_of(weft_tensor *t, double wanted) {
    float got = 0;
    WEFT_TRY(weft_read(t, &got, sizeof got));
    return fabs((double)got - wanted) <= 1e-3 * fabs(wanted) ? WEFT_OK
                                                             : WEFT_ERR_NUMERIC; /* never a wrong value */
}

static weft_status evaluate(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return WEFT_ERR_OOM;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    weft_tensor *parts[2] = {weft_softmax(x, -1), weft_transpose(weft_reshape(x, SHAPE(3, 2)), 0, 1)};
    weft_tensor *y =
        weft_sum(weft_matmul(weft_concat(parts, 2, 0), weft_transpose(x, 0, 1)), WEFT_ALL_AXES, false);
    weft_status status = value_of(y, 179.30084);
    weft_scope_close(scope);
    return status;
}

static weft_status differentiate(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return WEFT_ERR_OOM;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    weft_tensor *index = weft_from(ctx, WEFT_I32, SHAPE(4), (int32_t[]){1, 0, 1, 1}), *grad = NULL;
    weft_tensor *y = weft_sum(weft_square(weft_gather(x, index, 0)), WEFT_ALL_AXES, false);
    weft_status status = weft_gradient(y, &x, 1, &grad);
    if (status == WEFT_OK) status = value_of(weft_sum(grad, WEFT_ALL_AXES, false), 102);
    weft_scope_close(scope);
    return status;
}

/* A variable is incremented through kept and assigned values, and freed at the end. */
static weft_status assign(weft_context *ctx) {
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(1), (float[]){1}), *kept = NULL;
    weft_status status = weft_tensor_status(v);
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        if (!scope) {
            status = WEFT_ERR_OOM;
            break;
        }
        weft_tensor *next = weft_mul(v, weft_scalar(ctx, 3));
        weft_free(kept);
        kept = weft_keep(weft_add_scalar(v, 1));
        status = weft_assign(&v, &next, 1);
        weft_scope_close(scope);
    }
    if (status == WEFT_OK) status = value_of(v, 9);
    if (status == WEFT_OK) status = value_of(kept, 4);
    weft_free(kept);
    weft_free(v);
    return status;
}

static weft_status hold(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return WEFT_ERR_OOM;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(1), (float[]){2}), *y = weft_exp(weft_sub(x, x));
    weft_program *program = NULL;
    weft_status status = weft_compile(&y, 1, NULL, NULL, 0, &program);
    if (status == WEFT_OK) status = weft_program_run(program);
    if (status == WEFT_OK) status = value_of(y, 1);
    weft_program_free(program);
    weft_scope_close(scope);
    return status;
}

static weft_status train(weft_context *ctx) {
    weft_module *net =
        weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 2, 3, NULL), weft_nn_activation(ctx, WEFT_TANH),
                           weft_nn_linear(ctx, 3, 1, NULL), NULL);
    weft_optimizer *adam = net ? weft_adam(net, &(weft_adam_options){.lr = 0.01F}) : NULL;
    weft_status status = adam ? WEFT_OK : weft_last_status(ctx);
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        if (!scope) {
            status = WEFT_ERR_OOM;
            break;
        }
        weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 2), (float[]){1, 2, 3, 4});
        status =
            weft_optimizer_step(adam, weft_mean(weft_square(weft_forward(net, x)), WEFT_ALL_AXES, false));
        weft_scope_close(scope);
    }
    return status;
}

/* Convolution, pooling and norm, and the gradients of all three. */
static weft_status image(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return WEFT_ERR_OOM;
    const float pixels[16] = {1, 5, 2, 0, 3, -1, 4, 2, 0, 1, 7, -3, 2, 2, 1, 6}, taps[4] = {1, -1, 2, 0.5F};
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(1, 1, 4, 4), pixels), *grad = NULL;
    weft_tensor *weight = weft_from(ctx, WEFT_F32, SHAPE(1, 1, 2, 2), taps);
    weft_tensor *y = weft_conv2d(x, weight, NULL, &(weft_conv_options){.padding = {1, 1}});
    y = weft_max_pool2d(y, &(weft_pool_options){.size = {3, 3}, .stride = {2, 2}});
    y = weft_sum(weft_exp(weft_batch_norm(y, NULL, NULL, NULL)), WEFT_ALL_AXES, false);
    weft_status status = weft_gradient(y, &weight, 1, &grad);
    if (status == WEFT_OK) status = value_of(weft_sum(weft_square(grad), WEFT_ALL_AXES, false), 0.4924732);
    weft_scope_close(scope);
    return status;
}

/* The gradient of an LSTM's weights. */
static weft_status sequence(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return WEFT_ERR_OOM;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2, 1, 4), (float[]){1, 2, -1, 0.5F, 0, 1, 1, -2});
    weft_tensor *weight = weft_from(ctx, WEFT_F32, SHAPE(4, 1), (float[]){1, -1, 2, 0.5F}), *grad = NULL;
    weft_tensor *y = weft_recurrent(x, weight, &(weft_recurrent_options){.kind = WEFT_LSTM}, NULL);
    weft_status status = weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &weight, 1, &grad);
    if (status == WEFT_OK) status = value_of(weft_sum(weft_square(grad), WEFT_ALL_AXES, false), 2.0503685e-4);
    weft_scope_close(scope);
    return status;
}

/* A failure leaves the cache unchanged. The same input then gives the result of a new cache. */
static weft_status decode(weft_context *ctx) {
    const weft_recurrent_lm_options options = {.kind = WEFT_LSTM, .vocab = 5, .layers = 1, .width = 2};
    weft_module *lm = weft_nn_recurrent_lm(ctx, &options);
    weft_decode_state *cache = weft_decode_state_new(lm), *fresh = weft_decode_state_new(lm);
    float got[5], wanted[5];
    weft_status status = cache && fresh ? WEFT_OK : weft_last_status(ctx);
    if (status == WEFT_OK) status = weft_gpt_feed(cache, (int32_t[]){1, 4, 2}, 3, got);
    if (status == WEFT_ERR_OOM && cache && fresh) status = weft_gpt_feed(cache, (int32_t[]){1, 4, 2}, 3, got);
    if (status == WEFT_OK) status = weft_gpt_feed(fresh, (int32_t[]){1, 4, 2}, 3, wanted);
    if (status == WEFT_OK && memcmp(got, wanted, sizeof got) != 0) status = WEFT_ERR_NUMERIC;
    weft_decode_state_free(cache);
    weft_decode_state_free(fresh);
    weft_module_free(lm);
    return status;
}

/* Training with a profile, which may run out of memory too. A trace is then truncated. */
static weft_status profile(weft_context *ctx) {
    weft_profile *profile = NULL;
    size_t count = 0;
    weft_status status = weft_profile_start(ctx, &(weft_profile_options){.trace = true}, &profile);
    if (status == WEFT_OK) status = train(ctx);
    if (status == WEFT_OK && !weft_profile_entries(profile, &count)) status = weft_last_status(ctx);
    if (status == WEFT_OK && count == 0) status = WEFT_ERR_INTERNAL;
    weft_profile_free(profile);
    return status;
}

static void test_evaluate(void **state) {
    (void)state;
    torture_all("evaluate", evaluate);
}
static void test_differentiate(void **state) {
    (void)state;
    torture_all("differentiate", differentiate);
}
static void test_assign(void **state) {
    (void)state;
    torture_all("assign", assign);
}
static void test_hold(void **state) {
    (void)state;
    torture_all("hold", hold);
}
static void test_train(void **state) {
    (void)state;
    torture_all("train", train);
}
static void test_image(void **state) {
    (void)state;
    torture_all("image", image);
}
static void test_sequence(void **state) {
    (void)state;
    torture_all("sequence", sequence);
}
static void test_decode(void **state) {
    (void)state;
    torture_all("decode", decode);
}
static void test_profile(void **state) {
    (void)state;
    torture_all("profile", profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_evaluate), cmocka_unit_test(test_differentiate),
                                       cmocka_unit_test(test_assign),   cmocka_unit_test(test_hold),
                                       cmocka_unit_test(test_train),    cmocka_unit_test(test_image),
                                       cmocka_unit_test(test_sequence), cmocka_unit_test(test_decode),
                                       cmocka_unit_test(test_profile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
