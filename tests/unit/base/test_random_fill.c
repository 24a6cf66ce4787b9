/* Random initial values: every instruction set and any number of threads gives the numbers of base/random.c.
 * Values are computed only where they are needed. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/isa.h"
#include "base/random_fill.h"
#include "device/device.h"
#include "graph/graph.h"
#include <weft/nn.h>

static void test_draws_are_the_defined_numbers(void **state) {
    (void)state;
    static const char *const caps[] = {"baseline", "avx2", "avx512"};
    enum { MOST = 140001 };
    const int64_t sizes[] = {1, 2, 3, 255, 256, 257, 65536, MOST};
    float *out = malloc((MOST + 1) * sizeof *out);
    assert_non_null(out);
    for (int kind = WEFT_RANDOM_NORMAL; kind <= WEFT_RANDOM_UNIFORM; kind++)
        for (size_t cap = 0; cap < 3; cap++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                int64_t n = sizes[s];
                out[n] = 7;
                setenv("WEFT_CPU_ISA", caps[cap], 1);
                weft__random_fill((weft_random_kind)kind, 5, 9, 0.02, n, out, (int)(s % 4));
                for (int64_t i = 0; i < n; i++) {
                    double unit = (double)weft__unit_float(weft__random_u32(5, 9, 0, (uint64_t)i));
                    double x =
                        kind == WEFT_RANDOM_NORMAL ? weft__random_normal(5, 9, 0, (uint64_t)i) : 2 * unit - 1;
                    assert_true(out[i] == (float)(0.02 * x));
                }
                assert_true(out[n] == 7);
            }
    unsetenv("WEFT_CPU_ISA");
    free(out);
}

static void test_values_come_late(void **state) {
    (void)state;
    for (int written = 0; written < 2; written++) {
        weft_context *ctx;
        assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .seed = 3}, &ctx), WEFT_OK);
        weft_module *m = weft_nn_linear(ctx, 64, 64, NULL);
        assert_int_equal(weft_module_prepare(m), WEFT_OK);
        weft_tensor *w = weft_parameter(m, "weight");
        assert_int_equal(weft_tensor_status(w), WEFT_OK);
        assert_int_equal(ctx->device->bytes_in_use, 0);
        weft_seed(ctx, 4, 0); /* too late to change them */
        float zeros[64 * 64] = {0}, first[64 * 64], again[64 * 64];
        if (written) assert_int_equal(weft_write(w, zeros, sizeof zeros), WEFT_OK);
        assert_int_equal(weft_read(w, first, sizeof first), WEFT_OK);
        assert_int_equal(ctx->device->bytes_in_use, sizeof first);
        assert_int_equal(memcmp(first, zeros, sizeof zeros) == 0, written);
        weft_close(ctx);
        if (written) continue;
        assert_int_equal(weft_open(&(weft_open_options){.device = "interp", .seed = 3}, &ctx), WEFT_OK);
        w = weft_parameter(weft_nn_linear(ctx, 64, 64, NULL), "weight");
        assert_int_equal(weft_read(w, again, sizeof again), WEFT_OK);
        assert_memory_equal(first, again, sizeof first);
        weft_close(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_are_the_defined_numbers),
        cmocka_unit_test(test_values_come_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
