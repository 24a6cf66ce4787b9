/* Attention on the first OpenCL device, through the public functions. Memory grows with the length of the
 * sequence, not with its square. Heads too wide for the kernels are computed by the expansion, as on the
 * CPU. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>
#include "opencl.h"

/* Attention of one head over t positions, and its gradients. The caller frees the results, which are
 * concatenated. *peak: bytes used on the device. */
static float *attention(const char *device, int64_t t, int64_t d, uint64_t *peak) {
    weft_context *ctx;
    const int64_t shape[] = {1, 1, t, d};
    const size_t count = (size_t)(t * d);
    float *out = malloc(4 * count * sizeof *out), *x = malloc(count * sizeof *x);
    assert_int_equal(weft_open(&(weft_open_options){.device = device}, &ctx), WEFT_OK);
    weft_tensor *in[3], *results[4];
    for (int i = 0; i < 3; i++) {
        for (size_t e = 0; e < count; e++)
            x[e] = (float)((e * 2654435761u + (size_t)i * 97) >> 7 & 1023) / 512 - 1;
        in[i] = weft_variable_new(ctx, "input", WEFT_F32, 4, shape, x);
    }
    results[0] = weft_attention(in[0], in[1], in[2], &(weft_attention_options){.causal = true});
    weft_tensor *loss = weft_sum(weft_mul(results[0], results[0]), WEFT_ALL_AXES, false);
    assert_int_equal(weft_gradient(loss, in, 3, results + 1), WEFT_OK);
    assert_int_equal(weft_eval(results, 4), WEFT_OK);
    *peak = ctx->device->bytes_peak;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(weft_read(results[i], out + i * count, count * sizeof *out), WEFT_OK);
    weft_close(ctx);
    free(x);
    return out;
}

static void test_memory_is_linear(void **state) {
    (void)state;
    enum { D = 64 };
    uint64_t peaks[3];
    if (test_without_opencl()) return skip();
    for (int i = 0; i < 3; i++) free(attention("opencl", 2048 << i, D, &peaks[i]));
    const uint64_t first = peaks[1] - peaks[0], second = peaks[2] - peaks[1];
    assert_true(second <= 2 * first + (1 << 20));
    assert_true(peaks[2] < 8192ULL * 8192 * 4 / 4); /* a quarter of one matrix of attention weights */
}

static void test_wide_heads(void **state) {
    (void)state;
    enum { T = 20, D = 300 };
    uint64_t peak;
    if (test_without_opencl()) return skip();
    float *got = attention("opencl", T, D, &peak), *want = attention("cpu", T, D, &peak);
    for (int r = 0; r < 4; r++) {
        float largest = 0;
        for (int e = 0; e < T * D; e++) largest = fmaxf(largest, fabsf(want[r * T * D + e]));
        assert_true(largest > 0);
        for (int e = r * T * D; e < (r + 1) * T * D; e++)
            if (!(fabsf(got[e] - want[e]) <= 1e-4f * largest)) /* dp - delta cancels */
                fail_msg("result %d: %g, the processor has %g (largest %g)", r, got[e], want[e], largest);
    }
    free(got), free(want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_linear),
                                       cmocka_unit_test(test_wide_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
