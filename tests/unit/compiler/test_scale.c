/* The time to compile must be proportional to the size of the graph. A graph of 16 times as many nodes may
 * take up to 64 times as long. This allows for sorting and for small caches. It does not allow a pass that
 * compares all pairs of nodes, which takes 256 times as long. Measures the CPU time of this process, on one
 * thread. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* M_PERTURB */
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdlib.h>
#include <time.h>
#include <weft/weft.h>

enum { MORE = 16, MOST = 100 };

typedef weft_tensor *(*record)(weft_context *ctx, weft_tensor *x, int n);

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weft_tensor *total(weft_tensor *x) { return weft_sum(x, 0, false); }

/* ---- graphs of n parts: each returns a loss ---- */

static weft_tensor *chain(weft_context *ctx, weft_tensor *x, int n) {
    (void)ctx;
    for (int i = 0; i < n; i++) x = weft_tanh(x);
    return total(x);
}

static weft_tensor *branches(weft_context *ctx, weft_tensor *x, int n) {
    weft_tensor *sum = x;
    (void)ctx;
    for (int i = 0; i < n; i++) sum = weft_add(sum, weft_tanh(weft_mul_scalar(x, 1 + 1e-4 * i)));
    return total(sum);
}

static weft_tensor *stacked(weft_context *ctx, weft_tensor *x, int n) {
    weft_tensor **list = malloc((size_t)n * sizeof *list);
    (void)ctx;
    assert_non_null(list);
    for (int i = 0; i < n; i++) list[i] = total(weft_tanh(weft_mul_scalar(x, 1 + 1e-4 * i)));
    weft_tensor *all = weft_stack(list, n, 0);
    free(list);
    return total(weft_mul(all, all));
}

/* Each layer has its own reductions, which could join those of all other layers. */
static weft_tensor *softmaxes(weft_context *ctx, weft_tensor *x, int n) {
    (void)ctx;
    for (int i = 0; i < n; i++) x = weft_softmax(x, 0);
    return total(weft_mul(x, x));
}

static weft_tensor *scalars(weft_context *ctx, weft_tensor *x, int n) {
    weft_tensor **list = malloc((size_t)n * sizeof *list);
    assert_non_null(list);
    for (int i = 0; i < n; i++) list[i] = weft_scalar(ctx, (float)i);
    weft_tensor *all = weft_stack(list, n, 0);
    free(list);
    return weft_add(total(all), total(x));
}

static weft_tensor *matmuls(weft_context *ctx, weft_tensor *x, int n) {
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_F32, 2, (int64_t[]){4, 4}, NULL);
    x = weft_reshape(x, 2, (int64_t[]){1, 4});
    for (int i = 0; i < n; i++) x = weft_tanh(weft_matmul(x, w));
    return total(total(x));
}

/* ---- measuring ---- */

/* Time of gradient, compilation and one run. */
static double seconds(record what, int n) {
    weft_context *ctx;
    weft_tensor *g = NULL;
    float slopes[4];
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx), WEFT_OK);
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_F32, 1, (int64_t[]){4}, NULL);
    assert_int_equal(weft_write(x, (float[]){0.1f, 0.2f, 0.3f, 0.4f}, 16), WEFT_OK);
    const double start = cpu_seconds();
    weft_tensor *loss = what(ctx, x, n);
    assert_int_equal(weft_gradient(loss, &x, 1, &g), WEFT_OK);
    assert_int_equal(weft_eval((weft_tensor *[]){loss, g}, 2), WEFT_OK);
    assert_int_equal(weft_read(g, slopes, sizeof slopes), WEFT_OK);
    const double took = cpu_seconds() - start;
    weft_close(ctx);
    return took;
}

/* A step of an optimizer over n linear layers. */
static double seconds_of_step(int n) {
    weft_context *ctx;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx), WEFT_OK);
    weft_module **layers = malloc((size_t)n * sizeof(weft_module *));
    assert_non_null(layers);
    const double start = cpu_seconds();
    for (int i = 0; i < n; i++) layers[i] = weft_nn_linear(ctx, 4, 4, NULL);
    weft_module *net = weft_nn_sequential_of(ctx, "net", layers, (size_t)n);
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-3, .clip = 1.0});
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){1, 4}, (float[]){1, 2, 3, 4});
    assert_int_equal(weft_optimizer_step(adam, total(total(weft_forward(net, x)))), WEFT_OK);
    const double took = cpu_seconds() - start;
    free(layers);
    weft_close(ctx);
    return took;
}

/* The least of three measurements: other load can only add time. */
static double least(record what, int n) {
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        const double took = what ? seconds(what, n) : seconds_of_step(n);
        if (took < best) best = took;
    }
    return best;
}

static void check(record what, int n) {
    const double few = least(what, n), many = least(what, MORE * n);
    print_message("%d: %.3f s, %d: %.3f s, %.1f times as long\n", n, few, MORE * n, many, many / few);
    assert_true(many < (double)MOST * few);
}

static void test_chain(void **state) {
    (void)state;
    check(chain, 1250);
}

static void test_branches(void **state) {
    (void)state;
    check(branches, 500);
}

static void test_stacked(void **state) {
    (void)state;
    check(stacked, 200);
}

static void test_softmaxes(void **state) {
    (void)state;
    check(softmaxes, 100);
}

static void test_scalars(void **state) {
    (void)state;
    check(scalars, 2048);
}

static void test_matmuls(void **state) {
    (void)state;
    check(matmuls, 375);
}

static void test_step(void **state) {
    (void)state;
    check(NULL, 125);
}

int main(void) {
#ifdef M_PERTURB
    /* With MALLOC_PERTURB_, glibc fills the rest of a large free block each time a part of it is
     * allocated. */
    mallopt(M_PERTURB, 0);
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain),   cmocka_unit_test(test_branches),
                                       cmocka_unit_test(test_stacked), cmocka_unit_test(test_softmaxes),
                                       cmocka_unit_test(test_scalars), cmocka_unit_test(test_matmuls),
                                       cmocka_unit_test(test_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
