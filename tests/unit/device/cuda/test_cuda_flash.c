/* Attention in 16 bits on tensor cores (gpu/heavy/attention/attention_tensor.cl), on a GPU or on the
 * simulated driver of tests/cuda. With WEFT_TEST_GPU=hip on AMD's matrix cores (tests/hip/matrix.h). Compares
 * results and gradients with the CPU's in f64, computed from the same rounded numbers, and checks that two
 * runs give the same bits.
 *
 * Covers packed projections, slices that no 16-byte copy can read, lengths that fill no tile, dropout, masks
 * and caches. Also checks which GPUs and shapes use this kernel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>
#include "device/cuda/dnn/dnn.h"
#include "device/gpu/heavy/heavy.h"
#include "ops/build.h"
#include "gpu.h"
#include "unit/values.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

enum { Q, K, V, DY, RESULTS = 4 }; /* y, dq, dk, dv */

typedef struct sample {
    int64_t b, h, t, s, d;
    bool causal;
    double scale, dropout;
    int odd; /* offset of q, k and v in their rows, which are longer by as much */
    enum { NO_MASK, PADDED, ADDED } mask;
} sample;

static double worst; /* largest error, in roundings of the largest number */

static const sample samples[] = {
    {1, 2, 64, 64, 32, .causal = true},
    {1, 1, 200, 200, 64, .causal = true},
    {2, 1, 130, 130, 64, .causal = false},
    {2, 1, 129, 140, 32, .causal = true}, /* like the line before, enough rows for 32 a warp */
    {2, 1, 128, 128, 96, .causal = false},
    {2, 1, 131, 131, 128, .causal = true},
    {1, 1, 70, 70, 96, .causal = true},
    {1, 1, 33, 65, 96, .causal = false},
    {1, 1, 97, 97, 128, .causal = true},
    {1, 1, 8, 150, 128, .causal = false},
    {1, 1, 17, 80, 64, .causal = true},           /* more keys than queries */
    {1, 1, 90, 20, 32, .causal = true},           /* fewer keys: the first queries see none */
    {1, 1, 1, 1, 64, .causal = true},             /* forward by a kernel for single rows */
    {1, 2, 1, 77, 64, .causal = false},           /* likewise */
    {1, 1, 40, 40, 20, .causal = true},           /* channels that fill no tile; unaligned rows */
    {1, 1, 40, 40, 72, .causal = true},           /* channels that fill no tile; aligned rows */
    {1, 1, 50, 50, 64, .causal = true, .odd = 3}, /* unaligned rows */
    {1, 1, 50, 50, 32, .odd = 8},
    {1, 1, 40, 40, 64, .causal = true, .scale = 0.7},
    {1, 1, 40, 40, 64, .scale = -0.1}, /* not on tensor cores */
    {2, 2, 40, 40, 32, .causal = true, .dropout = 0.3},
    {1, 2, 97, 131, 64, .dropout = 0.3}, /* rows begin anywhere in a block of random numbers */
    {1, 1, 150, 150, 128, .causal = true, .dropout = 0.6},
    {2, 1, 70, 150, 64, .mask = PADDED},
    {1, 2, 129, 140, 32, .causal = true, .scale = 0.3, .mask = ADDED},
};

/* The mask. PADDED: (b, 1, 1, s) of bool, where the last sequence sees few keys. ADDED: (t, s) of f32, with
 * hidden keys and rows that see none. */
static weft_tensor *mask_of(weft_context *ctx, const sample *o) {
    static bool seen[2 * 150];
    static float more[129 * 140];
    if (!o->mask) return NULL;
    if (o->mask == PADDED) {
        for (int64_t i = 0; i < o->b * o->s; i++) seen[i] = i % o->s < (i < o->s ? o->s - 3 : 20);
        return weft_from(ctx, WEFT_BOOL, 4, (int64_t[]){o->b, 1, 1, o->s}, seen);
    }
    for (int64_t i = 0; i < o->t * o->s; i++)
        more[i] = (i % o->s + i / o->s * 3) % 7 == 0 || i / o->s % 11 == 5 ? -INFINITY
                                                                           : (float)(i % o->s % 5) * -0.25F;
    return weft_from(ctx, WEFT_F32, 2, (int64_t[]){o->t, o->s}, more);
}

/* A variable (b, t, h, odd + d) of numbers that are exact in dtype. Returns its slice as (b, h, t, d). */
static weft_tensor *operand(weft_context *ctx, weft_dtype dtype, weft_dtype as, const sample *o, int which,
                            weft_tensor **part) {
    const int64_t t = which == K || which == V ? o->s : o->t, shape[] = {o->b, t, o->h, o->odd + o->d};
    const int64_t n = shape[0] * shape[1] * shape[2] * shape[3];
    void *x = random_values(dtype, n, 7 + (uint64_t)which), *y = malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) set_value(as, y, i, value(dtype, x, i));
    weft_tensor *all = weft_variable_new(ctx, "operand", as, 4, shape, y);
    free(x), free(y);
    *part = weft_permute(weft_narrow(all, 3, o->odd, o->d), (const int[]){0, 2, 1, 3});
    return all;
}

/* Computes y and the gradients of q, k and v in the dtype `as`. */
static void compute(weft_context *ctx, weft_dtype dtype, weft_dtype as, const sample *o, void *out[RESULTS],
                    int64_t counts[RESULTS]) {
    weft_tensor *in[4], *part[4], *results[RESULTS];
    for (int i = 0; i < 4; i++) in[i] = operand(ctx, dtype, as, o, i, &part[i]);
    results[0] = weft_attention(
        part[Q], part[K], part[V],
        &(weft_attention_options){
            .causal = o->causal, .scale = o->scale, .dropout = o->dropout, .mask = mask_of(ctx, o)});
    weft_tensor *loss = weft_sum(weft_cast(weft_mul(results[0], part[DY]), WEFT_F32), WEFT_ALL_AXES, false);
    assert_int_equal(weft_gradient(loss, in, 3, results + 1), WEFT_OK);
    if (weft_eval(results, RESULTS) != WEFT_OK) fail_msg("%s", weft_last_error(ctx));
    for (int i = 0; i < RESULTS; i++) {
        counts[i] = o->b * o->h * (i == 0 ? o->t * o->d : (i == 1 ? o->t : o->s) * (o->odd + o->d));
        const size_t bytes = (size_t)counts[i] * weft_dtype_size(as);
        out[i] = malloc(bytes);
        assert_int_equal(weft_read(results[i], out[i], bytes), WEFT_OK);
    }
}

/* Each result must be within two roundings of the largest number of its tensor, and two runs must give the
 * same bits. */
static void check(const sample *o, weft_dtype dtype, weft_context *ctx, weft_context *cpu) {
    void *got[RESULTS], *again[RESULTS], *want[RESULTS];
    int64_t counts[RESULTS];
    const double u = dtype == WEFT_BF16 ? 0x1p-8 : 0x1p-11;
    compute(cpu, dtype, WEFT_F64, o, want, counts);
    compute(ctx, dtype, dtype, o, got, counts);
    if (o->dropout == 0) compute(ctx, dtype, dtype, o, again, counts); /* else it differs */
    for (int r = 0; r < RESULTS; r++) {
        double largest = 1e-3; /* the terms of the sums are of magnitude 1 */
        for (int64_t i = 0; i < counts[r]; i++) largest = fmax(largest, fabs(value(WEFT_F64, want[r], i)));
        for (int64_t i = 0; i < counts[r]; i++) {
            const double x = value(dtype, got[r], i), y = value(WEFT_F64, want[r], i);
            worst = fmax(worst, fabs(x - y) / (u * (largest + fabs(y)) + 1e-300));
            if (!(fabs(x - y) <= 2 * u * (largest + fabs(y))))
                fail_msg("%s of sample %d, result %d, element %d: %g, not %g (largest %g)",
                         dtype == WEFT_BF16 ? "bf16" : "f16", (int)(o - samples), r, (int)i, x, y, largest);
        }
        if (o->dropout == 0) {
            assert_memory_equal(got[r], again[r], (size_t)counts[r] * 2);
            free(again[r]);
        }
        free(got[r]), free(want[r]);
    }
}

/* More pairs of batch and head than a launch may have work-groups along its second dimension: on tensor
 * cores, and by the kernels for work-items and for single rows. */
static void test_many_pairs(void **state) {
    static const sample some[] = {{3, 3, 20, 20, 32, .causal = true},
                                  {5, 2, 1, 9, 32, .causal = false},
                                  {3, 3, 20, 20, 136, .causal = false}};
    weft_context *ctx, *cpu;
    (void)state;
    if (test_without_gpu() || !test_on_cores()) return skip();
    assert_int_equal(weft_open(&(weft_open_options){.device = test_gpu()}, &ctx), WEFT_OK);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &cpu), WEFT_OK);
    weft__gpu_of(ctx->device)->target.groups_most = 4; /* not a divisor of the pairs */
    for (int i = 0; i < COUNT(some); i++) check(&some[i], WEFT_BF16, ctx, cpu);
    weft_close(ctx);
    weft_close(cpu);
}

static void test_results(void **state) {
    weft_context *ctx, *cpu;
    (void)state;
    if (test_without_gpu() || !test_on_cores()) return skip();
    for (weft_dtype dtype = WEFT_F16; dtype <= WEFT_BF16; dtype++) {
        assert_int_equal(weft_open(&(weft_open_options){.device = test_gpu()}, &ctx), WEFT_OK);
        assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &cpu), WEFT_OK);
        worst = 0;
        for (int i = 0; i < COUNT(samples); i++) check(&samples[i], dtype, ctx, cpu);
        print_message("%s: at most %.2f roundings\n", dtype == WEFT_BF16 ? "bf16" : "f16", worst);
        weft_close(ctx);
        weft_close(cpu);
    }
}

/* Queries after the keys that a cache already holds. The mask depends on a number on the device. */
static void test_cache(void **state) {
    enum { H = 2, T = 11, S = 150, D = 64, AT = 70 };
    const int64_t queries[] = {1, H, T, D}, keys[] = {1, H, S, D};
    const int32_t position = AT;
    static char device_cpu[] = "cpu";
    void *read[2];
    (void)state;
    if (test_without_gpu() || !test_on_cores()) return skip();
    for (int c = 0; c < 2; c++) {
        weft_context *ctx;
        assert_int_equal(weft_open(&(weft_open_options){.device = c ? test_gpu() : device_cpu}, &ctx),
                         WEFT_OK);
        void *q = random_values(WEFT_BF16, H * T * D, 1), *k = random_values(WEFT_BF16, H * S * D, 2);
        weft_tensor *y = weft__attention_over_cache(
            "test", weft_from(ctx, WEFT_BF16, 4, queries, q), weft_from(ctx, WEFT_BF16, 4, keys, k),
            weft_from(ctx, WEFT_BF16, 4, keys, k), weft_from(ctx, WEFT_I32, 0, NULL, &position),
            &(weft_attention_options){0});
        read[c] = malloc(sizeof(uint16_t) * H * T * D);
        if (weft_read(y, read[c], sizeof(uint16_t) * H * T * D) != WEFT_OK)
            fail_msg("%s", weft_last_error(ctx));
        weft_close(ctx);
        free(q), free(k);
    }
    for (int i = 0; i < H * T * D; i++)
        assert_true(fabs(value(WEFT_BF16, read[0], i) - value(WEFT_BF16, read[1], i)) <= 2 * 0x1p-8);
    free(read[0]), free(read[1]);
}

/* Does the kernel for this attention use the cores of a card? *asked: the shared memory that it requests. */
static bool uses_cores(weft_target target, weft_heavy_attention at, int *asked) {
    const weft_heavy heavy = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = at};
    weft_context ctx = {0};
    weft_arena arena;
    weft__arena_init(&arena, &ctx);
    weft_launches launches = {.ctx = &ctx, .arena = &arena, .target = &target};
    assert_true(weft__gpu_attention_takes(&target, &at));
    assert_int_equal(weft__gpu_attention(&launches, &heavy, false), WEFT_OK);
    assert_int_equal(launches.count, at.backward ? 2 : 1);
    const bool on = strstr(launches.list[0].source, "w_mma_bf16") != NULL;
    const unsigned prelude = target.matrix_lanes ? WEFT_PRELUDE_MATRIX : WEFT_PRELUDE_TENSOR;
    assert_true((launches.list[0].prelude & WEFT_PRELUDE_CORES) == (on ? prelude : 0));
    if (on) assert_int_equal(launches.list[0].items[0], 4 * (target.matrix_lanes ? target.matrix_lanes : 32));
    if (asked) *asked = launches.list[0].shared_bytes;
    weft__free(&ctx, launches.list);
    weft__arena_free(&arena);
    return on;
}

static bool on_cores(int capability, weft_heavy_attention at, int64_t most, int *asked) {
    return uses_cores((weft_target){.dialect = WEFT_DIALECT_CUDA,
                                    .lanes = 256,
                                    .units = 100,
                                    .local_bytes = 48 << 10,
                                    .most_local_bytes = most,
                                    .capability = capability},
                      at, asked);
}

static bool on_matrix_cores(int lanes, weft_heavy_attention at) {
    int asked;
    const bool on = uses_cores((weft_target){.dialect = WEFT_DIALECT_CUDA,
                                             .lanes = 256,
                                             .units = 100,
                                             .local_bytes = 64 << 10,
                                             .most_local_bytes = 64 << 10,
                                             .matrix_lanes = lanes},
                               at, &asked);
    assert_int_equal(asked, 0); /* source may declare all of a group's memory */
    return on;
}

static void test_amd_cards(void **state) {
    (void)state;
    weft_heavy_attention at = {
        .dtype = WEFT_BF16, .scale = 0.1, .batch = 2, .heads = 2, .t_q = 900, .t_k = 900};
    for (int back = 0; back < 2; back++)
        for (int lanes = 0; lanes <= 64; lanes += 32) {
            at.backward = back;
            for (at.d = 1; at.d <= 256; at.d++)
                assert_true(on_matrix_cores(lanes, at) ==
                            (lanes && at.d <= (back && lanes == 32 ? 64 : 128))); /* as registers allow */
            at.d = 64;
            at.dtype = WEFT_F16;
            assert_true(on_matrix_cores(lanes, at) == (lanes > 0));
            at.dtype = WEFT_F32;
            assert_false(on_matrix_cores(lanes, at));
            at.dtype = WEFT_BF16;
        }
}

static void test_who_gets_it(void **state) {
    (void)state;
    weft_heavy_attention at = {.dtype = WEFT_BF16, .scale = 0.1, .batch = 2, .heads = 2, .t_q = 9, .t_k = 9};
    for (int back = 0; back < 2; back++) {
        at.backward = back;
        for (at.d = 1; at.d <= 256; at.d++) assert_true(on_cores(80, at, 0, NULL) == (at.d <= 128));
        at.d = 64;
        assert_true(on_cores(120, at, 0, NULL));
        assert_false(on_cores(75, at, 0, NULL));
        at.dtype = WEFT_F16;
        assert_true(on_cores(75, at, 0, NULL));
        assert_false(on_cores(70, at, 0, NULL));
        at.dtype = WEFT_F32;
        assert_false(on_cores(90, at, 0, NULL));
        at.dtype = WEFT_BF16;
        at.scale = -0.1; /* the largest score does not have the largest weight */
        assert_false(on_cores(90, at, 0, NULL));
        at.scale = 0.1;
        at.t_q = 1;
        assert_true(on_cores(90, at, 0, NULL) == back);
        at.t_q = 9;
    }
}

/* With wide heads, the backward pass requests more shared memory if two groups still fit on a
 * multiprocessor. */
static void test_local_memory(void **state) {
    (void)state;
    int asked;
    weft_heavy_attention at = {
        .dtype = WEFT_BF16, .scale = 0.1, .batch = 2, .heads = 2, .t_q = 9, .t_k = 9, .d = 128};
    at.backward = true;
    assert_true(on_cores(90, at, 227 << 10, &asked));
    assert_int_equal(asked, 64 << 10);
    assert_true(on_cores(86, at, 99 << 10, &asked));
    assert_int_equal(asked, 0);
    at.backward = false;
    assert_true(on_cores(90, at, 227 << 10, &asked));
    assert_int_equal(asked, 0);
}

/* f16 on GPUs of the previous generation, which the tests' driver can simulate. */
static void test_older_card(void **state) {
    weft_context *ctx, *cpu;
    (void)state;
    if (test_without_gpu() || !test_on_cuda()) return skip();
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    weft__cuda_forget();
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &cpu), WEFT_OK);
    check(&samples[0], WEFT_F16, ctx, cpu);
    check(&samples[0], WEFT_BF16, ctx, cpu); /* by the other kernel source */
    weft_close(ctx);
    weft_close(cpu);
    unsetenv("FAKE_CUDA_CAPABILITY");
    weft__cuda_forget();
}

int main(void) {
    weft__dnn_file = "libabsent.so"; /* cuDNN would compute all of these */
    weft__dnn_forget();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),      cmocka_unit_test(test_many_pairs),
        cmocka_unit_test(test_cache),        cmocka_unit_test(test_who_gets_it),
        cmocka_unit_test(test_local_memory), cmocka_unit_test(test_older_card),
        cmocka_unit_test(test_amd_cards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
