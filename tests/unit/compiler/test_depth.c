/* Depth of graphs and of module trees. Long sequences of ops need no more C stack than short ones. A tree of
 * modules that is too deep gives a clear error. All tests run in a thread with a small stack. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <weft/weft.h>

#ifdef WEFT_SANITIZED
enum { STACK = 1 << 20 }; /* sanitizers put extra bytes around each local variable */
#else
enum { STACK = 256 << 10 };
#endif
enum { OPS = 100000, MODULES = 40000 };

/* cmocka's asserts use longjmp, so a thread only returns a status. */
static void *run(void *scenario) {
    weft_status (*call)(void) = *(weft_status(**)(void))scenario;
    return (void *)(intptr_t)call();
}

static weft_status in_small_stack(weft_status (*scenario)(void)) {
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, run, &scenario), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    pthread_attr_destroy(&attr);
    return (weft_status)(intptr_t)result;
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const weft_status status_ = (call);                                                                  \
        if (status_ != WEFT_OK) print_error("line %d: %s\n", __LINE__, weft_last_error(NULL));               \
        if (status_ != WEFT_OK) return status_;                                                              \
    } while (0)

static weft_tensor *link(weft_tensor *x, int i) { return i % 2 ? weft_tanh(x) : weft_neg(x); }

/* ---- long sequences of ops ---- */

static weft_status chain(void) {
    weft_context *ctx;
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_F32, 1, (int64_t[]){4}, NULL), *y = x, *g = NULL;
    TRY(weft_write(x, (float[]){1e-3f, 2e-3f, 3e-3f, 4e-3f}, 16));
    for (int i = 0; i < OPS; i++) y = link(y, i);
    weft_tensor *loss = weft_sum(y, 0, false);
    TRY(weft_gradient(loss, &x, 1, &g));
    TRY(weft_eval((weft_tensor *[]){loss, g}, 2));
    float slopes[4];
    TRY(weft_read(g, slopes, sizeof slopes));
    for (int i = 0; i < 4; i++)
        if (!(slopes[i] > 0.0f && slopes[i] <= 1.0f)) return WEFT_ERR_NUMERIC;
    weft_close(ctx);
    return WEFT_OK;
}

/* Casts are cheap, so none of them is stored. */
static weft_status casts(void) {
    weft_context *ctx;
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_F32, 1, (int64_t[]){4}, NULL), *y = x;
    TRY(weft_write(x, (float[]){1, 2, 3, 4}, 16));
    for (int i = 0; i < OPS; i++) y = weft_cast(y, i % 2 ? WEFT_F32 : WEFT_F16);
    y = weft_sum(weft_permute(weft_reshape(y, 2, (int64_t[]){2, 2}), (int[]){1, 0}), 0, false);
    float sums[2];
    TRY(weft_read(y, sums, sizeof sums));
    weft_close(ctx);
    return sums[0] == 3.0f && sums[1] == 7.0f ? WEFT_OK : WEFT_ERR_NUMERIC;
}

static weft_tensor *long_forward(weft_module *m, weft_tensor *x) {
    weft_tensor *w = weft_parameter(m, "w");
    x = weft_mul(x, w);
    for (int i = 0; i < OPS / 10; i++) x = link(x, i);
    return x;
}

/* A custom layer as one checkpoint region. */
static weft_status recomputed(void) {
    weft_context *ctx;
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    weft_module *m = weft_module_new(ctx, "long", long_forward, NULL);
    TRY(weft_module_parameter(m, "w", WEFT_F32, 1, (int64_t[]){4}, &(weft_init){WEFT_INIT_ONES, 0}));
    TRY(weft_module_recompute(m, WEFT_RECOMPUTE_BLOCK));
    weft_optimizer *sgd = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});
    weft_tensor *x = weft_from(ctx, WEFT_F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4});
    TRY(weft_optimizer_step(sgd, weft_sum(weft_forward(m, x), 0, false)));
    weft_close(ctx);
    return WEFT_OK;
}

static void test_chain(void **state) {
    (void)state;
    assert_int_equal(in_small_stack(chain), WEFT_OK);
}

static void test_casts(void **state) {
    (void)state;
    assert_int_equal(in_small_stack(casts), WEFT_OK);
}

static void test_recomputed(void **state) {
    (void)state;
    assert_int_equal(in_small_stack(recomputed), WEFT_OK);
}

/* ---- trees of modules ---- */

/* `levels` modules, each the only child of the module before. */
static weft_module *nested(weft_context *ctx, int levels) {
    weft_module *m = weft_nn_linear(ctx, 4, 4, NULL);
    for (int i = 1; i < levels; i++) m = weft_nn_sequential(ctx, NULL, m, NULL);
    return m;
}

static weft_status deepest(void) {
    weft_context *ctx;
    char summary[64];
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    weft_module *m = nested(ctx, 256);
    TRY(weft_module_recompute(m, WEFT_RECOMPUTE_NORM));
    weft_optimizer *sgd = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){1, 4}, (float[]){1, 2, 3, 4});
    TRY(weft_optimizer_step(sgd, weft_sum(weft_sum(weft_forward(m, x), 0, false), 0, false)));
    if (weft_summary(m, summary, sizeof summary) < 0 || weft_parameter_count(m) != 2) return WEFT_ERR_STATE;
    weft_close(ctx);
    return WEFT_OK;
}

static weft_status too_deep(void) {
    weft_context *ctx;
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    const weft_status status = weft_module_status(nested(ctx, MODULES));
    const bool says = strstr(weft_last_error(ctx), "257 levels deep, the limit is 256") != NULL;
    weft_close(ctx);
    return says ? status : WEFT_ERR_INTERNAL;
}

/* Built from the root on, where each new child has no height. */
static weft_status too_deep_downwards(void) {
    weft_context *ctx;
    TRY(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx));
    weft_module *root = weft_nn_sequential(ctx, NULL, NULL), *m = root;
    for (int i = 0; i < 300 && weft_module_status(m) == WEFT_OK; i++)
        m = weft_module_child(m, "next", weft_nn_sequential(ctx, NULL, NULL));
    int levels = 0;
    for (m = root; m; m = weft_module_child_get(m, 0)) levels++;
    weft_close(ctx);
    return levels == 256 ? WEFT_OK : WEFT_ERR_INTERNAL;
}

static void test_deepest_modules(void **state) {
    (void)state;
    assert_int_equal(in_small_stack(deepest), WEFT_OK);
}

static void test_modules_too_deep(void **state) {
    (void)state;
    assert_int_equal(in_small_stack(too_deep), WEFT_ERR_ARGUMENT);
    assert_int_equal(in_small_stack(too_deep_downwards), WEFT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain), cmocka_unit_test(test_casts), cmocka_unit_test(test_recomputed),
        cmocka_unit_test(test_deepest_modules), cmocka_unit_test(test_modules_too_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
