/* Runs the graphs of the golden kernels with known inputs on a device and on the interpreter, and compares
 * what they compute. The device is the CPU, or $WEFT_TEST_GPU. Read next: graphs.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "golden/graphs.h"

enum { SKIPPED = 77, RESULTS_MOST = 1 << 17 };

typedef struct results {
    double values[RESULTS_MOST];
    int count;
} results;

static void add_results(results *r, weft_context *ctx, weft_tensor *t) {
    const int64_t n = weft_numel(t);
    weft_tensor *wide = weft_cast(t, WEFT_F64);
    if (r->count + n > RESULTS_MOST ||
        weft_read(wide, r->values + r->count, (size_t)n * sizeof *r->values) != WEFT_OK)
        fail_msg("%s", weft_last_error(ctx));
    r->count += (int)n;
}

static void compute(const golden_graph *graph, const char *device, results *r) {
    golden_board s = {0};
    r->count = 0;
    if (weft_open(&(weft_open_options){.device = device}, &s.ctx) != WEFT_OK) {
        printf("skipped, no device %s: %s\n", device, weft_last_error(NULL));
        exit(SKIPPED);
    }
    weft_scope *scope = weft_scope_open(s.ctx);
    golden_fill(&s, true);
    graph->make(&s);
    const weft_status status =
        s.n_assign ? weft_assign(s.variable, s.value, (size_t)s.n_assign) : weft_eval(s.out, (size_t)s.n);
    if (status != WEFT_OK) fail_msg("%s: %s", graph->name, weft_last_error(s.ctx));
    for (int i = 0; i < s.n; i++) add_results(r, s.ctx, s.out[i]);
    for (int i = 0; i < s.n_assign; i++) add_results(r, s.ctx, s.variable[i]);
    weft_scope_close(scope);
    weft_close(s.ctx);
}

/* Sums of up to 80,000 numbers in f32, in different orders; f16 results may differ by a rounding. */
static bool is_near(double x, double expected) {
    return x == expected || (isnan(x) && isnan(expected)) ||
           fabs(x - expected) <= 1e-4 * fmax(fabs(expected), 0.1);
}

static void test_values(void **state) {
    static results is, expected;
    const char *named = getenv("WEFT_TEST_GPU"), *device = named && *named ? named : "cpu";
    int bad = 0;
    (void)state;
    for (int g = 0; g < golden_count; g++) {
        compute(&golden_graphs[g], "interp", &expected);
        compute(&golden_graphs[g], device, &is);
        assert_int_equal(is.count, expected.count);
        assert_true(is.count > 0);
        for (int i = 0; i < is.count; i++) {
            if (is_near(is.values[i], expected.values[i])) continue;
            print_error("%s: element %d is %g, not %g\n", golden_graphs[g].name, i, is.values[i],
                        expected.values[i]);
            bad++;
            break;
        }
    }
    printf("golden values: graphs=%d fail=%d device=%s\n", golden_count, bad, device);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
