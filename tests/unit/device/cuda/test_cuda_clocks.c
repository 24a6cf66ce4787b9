/* How long launches of small nets would take, in clocks of a multiprocessor: an estimate by the interpreter
 * of PTX (tests/ptx/clock.c). What a small net waits for shows in no count of bytes or products.
 *
 *     test_cuda_clocks            compares with the bars in clocks.tsv: more clocks fail, and so do far
 *                                 fewer
 *     UPDATE=1 test_cuda_clocks   writes the bars: review what changes
 *
 * Skipped unless kernels run as PTX, and unless NVRTC has the major version of the table. Read next:
 * bars.h, clocks.tsv. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bars.h"

enum { ROWS_MOST = 32, STEPS = 64 };

static bar_row rows[ROWS_MOST]; /* the clocks of the slowest launch of each case */
static int n_rows;
static char file[] = "/tmp/weft-clocks-XXXXXX";

/* Takes the slowest launch since the last call, which computed `times` steps. Returns the number of launches.
 */
static int take_clocks(const char *name, int times) {
    char line[200];
    double clocks, most = 0;
    int launches = 0;
    FILE *from = fopen(file, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from))
        if (sscanf(line, "%*s %lf", &clocks) == 1) {
            launches++;
            if (clocks > most) most = clocks;
        }
    fclose(from);
    assert_int_equal(truncate(file, 0), 0);
    if (most == 0) return launches; /* kernels do not run as PTX */
    assert_true(n_rows < ROWS_MOST);
    snprintf(rows[n_rows].name, sizeof rows->name, "%s", name);
    rows[n_rows++].value = most / times;
    return launches;
}

/* ---- what is timed ---- */

/* Nets whose whole step is one launch, which computes STEPS steps. */
static void time_nets(weft_context *ctx) {
    static const struct {
        const char *name;
        int64_t samples, in, hidden, out;
        bool adam;
    } nets[] = {{"a step of 2-8-1, 4 samples, SGD", 4, 2, 8, 1, false},
                {"a step of 2-8-1, 4 samples, Adam", 4, 2, 8, 1, true},
                {"a step of 10-32-3, 32 samples, Adam", 32, 10, 32, 3, true}};
    weft__gpu_hook.fuse_after = 1;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        weft_module *net = weft_nn_sequential(
            ctx, "net", weft_nn_linear(ctx, nets[i].in, nets[i].hidden, NULL),
            weft_nn_activation(ctx, WEFT_TANH), weft_nn_linear(ctx, nets[i].hidden, nets[i].out, NULL), NULL);
        weft_optimizer *optimizer = nets[i].adam ? weft_adam(net, &(weft_adam_options){.lr = 0.1})
                                                 : weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
        weft_tensor *x = weft_keep(weft_random_normal(ctx, 2, (int64_t[]){nets[i].samples, nets[i].in}));
        weft_tensor *y = weft_keep(weft_random_normal(ctx, 2, (int64_t[]){nets[i].samples, nets[i].out}));
        assert_int_equal(weft_eval((weft_tensor *[]){x, y}, 2), WEFT_OK);
        weft_tensor *loss = weft_bce_with_logits(weft_forward(net, x), weft_sigmoid(y), WEFT_MEAN);
        weft_program *step;
        assert_int_equal(weft_optimizer_hold(optimizer, loss, &step), WEFT_OK);
        assert_int_equal(weft_optimizer_run_many(optimizer, step, 1), WEFT_OK);
        assert_int_equal(weft_synchronize(ctx), WEFT_OK);
        assert_int_equal(truncate(file, 0), 0);
        assert_int_equal(weft_optimizer_run_many(optimizer, step, STEPS), WEFT_OK);
        assert_int_equal(weft_synchronize(ctx), WEFT_OK);
        assert_true(take_clocks(nets[i].name, STEPS) <= 1);
        weft_program_free(step);
    }
    weft__gpu_hook.fuse_after = 0;
}

/* The matmuls of a step of the MLP 784-512-512-10 with 128 samples, in f32, and tiny ones. */
static void time_matmuls(weft_context *ctx) {
    static const struct {
        int64_t m, n, k;
        const char *layout;
    } cases[] = {{128, 512, 784, "nt"}, {128, 512, 512, "nt"}, {128, 10, 512, "nt"},  {10, 512, 128, "tn"},
                 {128, 512, 10, "nn"},  {512, 512, 128, "tn"}, {128, 512, 512, "nn"}, {512, 784, 128, "tn"},
                 {16, 16, 16, "nn"},    {8, 2, 4, "tn"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k;
        char name[80];
        weft_tensor *a = bars_matrix(ctx, WEFT_F32, m, k, cases[i].layout[0] == 't');
        weft_tensor *b = bars_matrix(ctx, WEFT_F32, k, n, cases[i].layout[1] == 't');
        weft_tensor *c = weft_matmul(a, b);
        bars_eval(ctx, file, &c, 1);
        snprintf(name, sizeof name, "matmul f32 %lldx%lldx%lld %s", (long long)m, (long long)n, (long long)k,
                 cases[i].layout);
        (void)take_clocks(name, 1);
    }
}

static bool fits(double clocks, double bar) { return clocks <= 1.05 * bar && clocks >= 0.8 * bar; }

static void test_clocks(void **state) {
    (void)state;
    weft_context *ctx = bars_open("FAKE_PTX_CLOCKS", file);
    if (!ctx) return skip();
    time_nets(ctx);
    time_matmuls(ctx);
    weft_close(ctx);
    unlink(file);
    if (!n_rows) return skip(); /* kernels do not run as PTX */
    for (int i = 0; i < n_rows; i++)
        printf("%-40s %6.0f clocks: %.2f us at 1.98 GHz\n", rows[i].name, rows[i].value,
               rows[i].value / 1980);
    bars_check("tests/unit/device/cuda/clocks.tsv",
               "estimated clocks of a block; UPDATE=1 test_cuda_clocks writes them", rows, n_rows, fits);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
