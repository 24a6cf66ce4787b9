/* src/device/gpu/driver/blas, and src/device/hip/blas.c with WEFT_TEST_GPU=hip. If cublasLt.h and the library
 * are installed, compares declarations and descriptors with them. With the simulated library
 * (tests/cuda/blas.c, tests/hip/blas.c), checks:
 * - which matmuls become library calls, with which epilogues, and that the values equal the CPU's;
 * - how an algorithm is chosen and kept;
 * - what happens with matmuls that the library declines, and with a forged choice.
 *
 * With a GPU and the real library, checks the values. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#include <weft/weft.h>

#include "base/base.h"
#include "component.h"
#include "cuda/fake.h"
#include "device/cuda/cuda.h"
#include "device/gpu/driver/blas/blas_plan.h"
#include "device/hip/hip.h"

#if __has_include(<cublasLt.h>)
#define BLAS_FUNCTION(result, name, hip, arguments)                                                          \
    _Static_assert(__builtin_types_compatible_p(result(*) arguments, __typeof__(&name)),                     \
                   #name " is declared otherwise");
#define BLAS_CONSTANT(name, value) _Static_assert((int)(name) == (value), #name " has another value");
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_FUNCTION
#undef BLAS_CONSTANT
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, "an algorithm is kept as 64 bytes");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96 &&
                   offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64 &&
                   offsetof(cublasLtMatmulHeuristicResult_t, state) == 72,
               "a proposal lies otherwise");
#endif

/* of device/hip/hip.h, which may not be included with cublasLt.h: both define its types */
extern weft_blas weft__hipblas;
int weft__hip_devices(const weft__cuda_found **list, const char **why);
void weft__hip_forget(void);

static bool on_hip(void) {
    const char *named = getenv("WEFT_TEST_GPU");
    return named && strcmp(named, "hip") == 0;
}

static weft_blas *library(void) { return on_hip() ? &weft__hipblas : &weft__cublas; }
static const char *device(void) { return on_hip() ? "hip" : "cuda"; }

static bool has_card(const weft__cuda_found **list) {
    const char *why;
    return (on_hip() ? weft__hip_devices(list, &why) : weft__cuda_devices(list, NULL)) &&
           !(*list)[0].gpu.reason[0];
}

static const weft_device_module *kind(void) { return on_hip() ? &weft__device_hip : &weft__device_cuda; }

static void forget(void) {
    if (on_hip())
        weft__hip_forget();
    else
        weft__cuda_forget();
}

/* The counters of the simulated library. NULL if the library is real, or missing. */
static fake_blas_state *counts(void) {
    const weft__cuda_found *list;
    if (!has_card(&list)) return NULL;
    void *file = dlopen(on_hip() ? "libhipblaslt.so.0" : "libcublasLt.so.13", RTLD_NOLOAD | RTLD_NOW);
    return file ? dlsym(file, "fake_blas") : NULL;
}

/* Is there a GPU, real or simulated, and a library for it? */
static bool ready(void) {
    const weft__cuda_found *list;
    return has_card(&list) && !weft__blas_open(library());
}

static weft_open_options on_gpu;
static char folder[] = "/tmp/weft_test_blas_XXXXXX";

static int setup(void **state) {
    (void)state;
    weft__driver_hook.call_worth = 1;
    on_gpu.device = device();
    return mkdtemp(folder) && setenv("WEFT_KERNEL_CACHE", folder, 1) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    char command[sizeof folder + 16];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- matmuls ---- */

typedef enum follows {
    NOTHING,
    BIAS,      /* in the dtype of the result */
    WIDE_BIAS, /* f32, rounded to the dtype of the result */
    BASE,      /* plus a matrix */
    BIAS_BASE,
    SCALED,
    WIDENED, /* stored as f32 */
    GELU,
    BIAS_GELU,
    BIAS_GELU_AUX, /* also stores the operand of GELU */
    DGELU,
    SUMS, /* also the row sums of a, in f32 */
    RELU
} follows;

typedef struct product {
    const char *name;
    weft_dtype dtype;
    int64_t batch, m, n, k;
    bool at, bt, once; /* stored transposed; b serves the whole batch */
    int64_t margin;    /* columns of a that are not used */
    follows then;
    bool call, epilogue;                     /* expected: a library call, with an epilogue */
    enum { SAME, NO_CALL, NO_EPILOGUE } hip; /* expected of hipBLASLt */
} product;

static const product products[] = {
    {"nn", WEFT_F32, 1, 24, 17, 40, .call = true},
    {"nt", WEFT_F32, 1, 24, 17, 40, .bt = true, .call = true},
    {"tn", WEFT_F32, 1, 24, 17, 40, .at = true, .call = true},
    {"tt", WEFT_F32, 1, 24, 17, 40, .at = true, .bt = true, .call = true},
    {"f64", WEFT_F64, 1, 9, 33, 21, .bt = true, .call = true, .hip = NO_CALL},
    {"f16", WEFT_F16, 1, 24, 16, 40, .call = true},
    {"bf16", WEFT_BF16, 1, 24, 16, 40, .at = true, .call = true},
    {"batch", WEFT_F32, 3, 12, 10, 14, .bt = true, .call = true},
    {"batch of one b", WEFT_F32, 3, 12, 10, 14, .at = true, .once = true, .call = true, .hip = NO_CALL},
    {"part of a", WEFT_F32, 1, 24, 17, 40, .margin = 3, .call = true, .hip = NO_CALL},
    {"column", WEFT_F32, 1, 24, 1, 40, .then = NOTHING},
    {"row", WEFT_F32, 1, 1, 24, 40, .then = NOTHING},
    {"integers", WEFT_I32, 1, 24, 17, 40, .then = NOTHING},
    {"bias", WEFT_F32, 1, 24, 17, 40, .then = BIAS, .call = true, .epilogue = true},
    {"bias of a batch", WEFT_F32, 3, 12, 10, 14, .then = BIAS, .call = true, .epilogue = true},
    {"bf16 bias", WEFT_BF16, 1, 24, 16, 40, .then = BIAS, .call = true, .epilogue = true},
    {"f32 bias", WEFT_BF16, 1, 24, 16, 40, .then = WIDE_BIAS, .call = true, .epilogue = true},
    {"f32 bias", WEFT_F16, 1, 24, 16, 40, .then = WIDE_BIAS, .call = true, .epilogue = true},
    {"base", WEFT_F32, 1, 24, 17, 40, .bt = true, .then = BASE, .call = true, .epilogue = true},
    {"base", WEFT_BF16, 2, 24, 17, 40, .then = BASE, .call = true, .epilogue = true},
    {"bias, base", WEFT_F32, 1, 24, 17, 40, .then = BIAS_BASE, .call = true, .epilogue = true},
    {"scaled", WEFT_F64, 1, 24, 17, 40, .then = SCALED, .call = true, .hip = NO_CALL},
    {"scaled f32", WEFT_F32, 1, 24, 17, 40, .then = SCALED, .call = true},
    {"widened", WEFT_BF16, 1, 24, 16, 40, .at = true, .then = WIDENED, .call = true},
    {"gelu", WEFT_BF16, 1, 24, 16, 40, .then = GELU, .call = true, .epilogue = true, .hip = NO_EPILOGUE},
    {"gelu of f32", WEFT_F32, 1, 24, 16, 40, .then = GELU, .call = true},
    {"bias, gelu", WEFT_F16, 1, 24, 16, 40, .then = BIAS_GELU, .call = true, .epilogue = true,
     .hip = NO_EPILOGUE},
    {"bias, gelu, aux", WEFT_BF16, 1, 24, 16, 40, .then = BIAS_GELU_AUX, .call = true, .epilogue = true,
     .hip = NO_EPILOGUE},
    {"odd bias, gelu, aux", WEFT_BF16, 1, 24, 15, 40, .then = BIAS_GELU_AUX, .call = true},
    {"dgelu", WEFT_BF16, 1, 24, 16, 40, .bt = true, .then = DGELU, .call = true, .epilogue = true,
     .hip = NO_EPILOGUE},
    {"sums", WEFT_F32, 1, 24, 17, 40, .at = true, .then = SUMS, .call = true, .epilogue = true},
    {"sums of bf16", WEFT_BF16, 1, 24, 16, 40, .at = true, .then = SUMS, .call = true, .epilogue = true},
    {"relu", WEFT_F32, 1, 24, 17, 40, .then = RELU, .call = true},
};

static weft_tensor *filled(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape, int seed) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= shape[d];
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)((i * 37 + seed * 11) % 101) / 50 - 1;
    weft_tensor *t = weft_keep(weft_cast(weft_from(ctx, WEFT_F32, rank, shape, x), dtype));
    assert_int_equal(weft_eval(&t, 1), WEFT_OK);
    free(x);
    return t;
}

/* A matrix (batch, rows, columns), which is a view of transposed memory or of wider rows. */
static weft_tensor *matrix(weft_context *ctx, const product *p, int64_t batch, int64_t rows, int64_t columns,
                           bool transposed, int64_t margin, int seed) {
    const int64_t lines = transposed ? columns : rows, length = (transposed ? rows : columns) + margin;
    const int64_t shape[] = {batch, lines, length}, start[] = {0, 0, margin ? 1 : 0};
    weft_tensor *t = filled(ctx, p->dtype, 3, shape, seed);
    if (margin) t = weft_slice(t, start, (int64_t[]){batch, lines, length - margin + 1}, NULL);
    return transposed ? weft_transpose(t, 1, 2) : t;
}

static weft_tensor *after(weft_context *ctx, const product *p, weft_tensor *y, weft_tensor **aux) {
    const int64_t shape[] = {p->batch, p->m, p->n};
    const bool wide = p->then == WIDE_BIAS;
    weft_tensor *bias = filled(ctx, wide ? WEFT_F32 : p->dtype, 1, &p->n, 3);
    weft_tensor *base = filled(ctx, p->dtype, 3, shape, 4);
    if (wide) bias = weft_cast(bias, p->dtype);
    switch (p->then) {
    case NOTHING: return y;
    case BIAS:
    case WIDE_BIAS: return weft_add(y, bias);
    case BASE: return weft_add(base, y);
    case BIAS_BASE: return weft_add(base, weft_add(y, bias));
    case SCALED: return weft_mul(y, weft_full(ctx, p->dtype, 0, NULL, 0.125));
    case SUMS:
    case WIDENED: return weft_cast(y, WEFT_F32);
    case GELU: return weft_gelu_tanh(y);
    case BIAS_GELU: return weft_gelu_tanh(weft_add(y, bias));
    case BIAS_GELU_AUX: *aux = weft_keep(weft_add(y, bias)); return weft_gelu_tanh(*aux);
    case DGELU: return weft_mul(y, weft_gelu_tanh_slope(base));
    case RELU: return weft_relu(y);
    }
    return NULL;
}

static void read_as_f32(weft_tensor *t, float *to, size_t count) {
    assert_int_equal(weft_read(weft_cast(t, WEFT_F32), to, count * sizeof *to), WEFT_OK);
}

enum { MOST = 4096 };
typedef struct values {
    float y[MOST], aux[MOST];
} values;

/* Computes several times. The last runs are graphs on the GPU. */
static void compute(weft_context *ctx, const product *p, values *to) {
    const size_t count = (size_t)(p->batch * p->m * p->n);
    for (int run = 0; run < 4; run++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *out[2] = {NULL, NULL};
        weft_tensor *a = matrix(ctx, p, p->batch, p->m, p->k, p->at, p->margin, 1);
        weft_tensor *b = matrix(ctx, p, p->once ? 1 : p->batch, p->k, p->n, p->bt, 0, 2);
        memset(to, 0, sizeof *to);
        out[0] = weft_keep(after(ctx, p, weft_matmul(a, b), &out[1]));
        if (p->then == SUMS) out[1] = weft_keep(weft_sum(weft_transpose(a, 1, 2), 1, false));
        if (weft_eval(out, out[1] ? 2 : 1) != WEFT_OK) fail_msg("%s: %s", p->name, weft_last_error(ctx));
        read_as_f32(out[0], to->y, count);
        if (out[1]) read_as_f32(out[1], to->aux, (size_t)weft_numel(out[1]));
        weft_scope_close(scope);
    }
}

static void compare(const product *p, const float *x, const float *y) {
    const double bound = p->dtype == WEFT_F64   ? 1e-6 /* as far as f32 shows it */
                         : p->dtype == WEFT_F32 ? 1e-5
                         : p->dtype == WEFT_F16 ? 4e-3
                                                : 3e-2;
    for (int i = 0; i < MOST; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= bound * (1 + fabs((double)y[i]))))
            fail_msg("%s: element %d is %g, not %g", p->name, i, (double)x[i], (double)y[i]);
}

static void test_products(void **state) {
    static values own, right;
    (void)state;
    weft_context *gpu, *cpu;
    fake_blas_state *c = counts(), before = {0};
    if (!ready()) return skip();
    assert_int_equal(weft_open(&(weft_open_options){.device = device()}, &gpu), WEFT_OK);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &cpu), WEFT_OK);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        if (c) before = *c;
        compute(cpu, p, &right);
        compute(gpu, p, &own);
        const bool call = p->call && !(on_hip() && p->hip == NO_CALL);
        const bool epilogue = p->epilogue && !(on_hip() && p->hip != SAME);
        if (c && ((c->products > before.products) != call || (c->epilogues > before.epilogues) != epilogue))
            fail_msg("%s: %ld calls, %ld with epilogues", p->name, c->products - before.products,
                     c->epilogues - before.epilogues);
        compare(p, own.y, right.y);
        compare(p, own.aux, right.aux);
    }
    weft_close(gpu);
    weft_close(cpu);
    if (!c) return;
    assert_int_equal(c->objects, 0);
    assert_int_equal(c->refused, 0);
}

/* ---- choice of an algorithm ---- */

enum { SIDE = 200, LARGE = 1024 }; /* worth a choice; so large that TF32 is faster than f32 on a real card */

/* Multiplies two square matrices. Returns the number of the algorithm. */
static long multiply_of(int64_t side, const weft_open_options *options, float *to, int *choices) {
    weft_context *ctx;
    const int64_t shape[] = {side, side};
    assert_int_equal(weft_open(options, &ctx), WEFT_OK);
    weft_tensor *a = filled(ctx, WEFT_F32, 2, shape, 1), *b = filled(ctx, WEFT_F32, 2, shape, 2);
    assert_int_equal(weft_read(weft_matmul(a, b), to, (size_t)(side * side) * sizeof *to), WEFT_OK);
    if (choices) *choices = ctx->device->n_choices;
    weft_close(ctx);
    return counts() ? counts()->last : 0;
}

static long multiply(const weft_open_options *options, float *to, int *choices) {
    return multiply_of(SIDE, options, to, choices);
}

static float first[SIDE * SIDE], second[SIDE * SIDE];

/* How often is the library asked for proposals to check an algorithm that was kept? */
static long checks(void) { return library()->functions->cublasLtMatmulAlgoCheck ? 0 : 1; }

static void test_choices(void **state) {
    (void)state;
    int choices;
    fake_blas_state *c = counts();
    if (!c) return skip();
    const long asked = c->heuristics, done = c->products;
    const long chosen = multiply(&on_gpu, first, &choices);
    assert_int_equal(c->heuristics, asked + 1);
    assert_true(c->products > done + 3 * 2); /* it was measured */
    assert_int_equal(choices, 1);
    const fake_blas_state before = *c;
    assert_int_equal(multiply(&on_gpu, second, &choices), chosen);
    assert_int_equal(c->heuristics, before.heuristics + checks());
    assert_int_equal(c->products, before.products + 1);
    assert_int_equal(choices, 1);
    assert_memory_equal(first, second, sizeof first);
    weft_context *ctx; /* a given choice has priority over the disk's, and nothing is measured */
    const int64_t shape[] = {SIDE, SIDE};
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    weft_tensor *a = filled(ctx, WEFT_F32, 2, shape, 1), *b = filled(ctx, WEFT_F32, 2, shape, 2);
    assert_int_equal(weft_read(weft_matmul(a, b), second, sizeof second), WEFT_OK);
    weft_tile_choice given = ctx->device->choices[0];
    weft_close(ctx);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    ctx->device->given = &given;
    ctx->device->n_given = 1;
    a = filled(ctx, WEFT_F32, 2, shape, 1), b = filled(ctx, WEFT_F32, 2, shape, 2);
    const long known = c->heuristics;
    assert_int_equal(weft_read(weft_matmul(a, b), second, sizeof second), WEFT_OK);
    assert_int_equal(c->heuristics, known + checks());
    assert_int_equal(c->last, chosen);
    assert_memory_equal(first, second, sizeof first);
    weft_close(ctx);
    const long multiplied = c->products; /* without either, nothing may be measured */
    assert_int_equal(multiply(&on_gpu, second, &choices), 0);
    assert_int_equal(c->products, multiplied + 1);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
}

/* One step with a given choice, on a device that cannot keep choices itself. */
static void multiply_given(const weft_tile_choice *given, bool taken) {
    weft_context *ctx;
    const int64_t shape[] = {SIDE, SIDE};
    const fake_blas_state before = *counts();
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    ctx->device->given = given;
    ctx->device->n_given = 1;
    weft_tensor *a = filled(ctx, WEFT_F32, 2, shape, 1), *b = filled(ctx, WEFT_F32, 2, shape, 2);
    assert_int_equal(weft_read(weft_matmul(a, b), second, sizeof second), WEFT_OK);
    assert_int_equal(counts()->heuristics, before.heuristics + !taken + checks());
    assert_int_equal(counts()->products, before.products + 1);
    assert_int_equal(counts()->refused, 0); /* a forged choice must never reach cublasLtMatmul */
    assert_true(isfinite(ctx->device->choices[0].gain));
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_true(fabs((double)first[i] - (double)second[i]) <= 1e-4 * (1 + fabs((double)first[i])));
    weft_close(ctx);
}

/* An algorithm is read from the folder of a run, which anybody may have written. So the library is asked
 * before it is used. */
static void test_forged(void **state) {
    (void)state;
    weft_context *ctx;
    const int64_t shape[] = {SIDE, SIDE};
    if (!counts()) return skip();
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    weft_tensor *a = filled(ctx, WEFT_F32, 2, shape, 1), *b = filled(ctx, WEFT_F32, 2, shape, 2);
    assert_int_equal(weft_read(weft_matmul(a, b), first, sizeof first), WEFT_OK);
    const weft_tile_choice right = ctx->device->choices[0];
    weft_close(ctx);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
    multiply_given(&right, true);
    for (int forged = 0; forged < 5; forged++) {
        weft_tile_choice given = right;
        weft__blas_algorithm algorithm;
        memcpy(&algorithm, given.kept, sizeof algorithm);
        algorithm.algo.data[0] = 1;
        algorithm.workspace = 1 << 20;
        if (forged == 0) algorithm.algo.data[0] = 77; /* no valid algorithm */
        if (forged == 1) algorithm.algo.data[1] ^= 1; /* for another problem */
        /* B has 16-byte alignment; to hipBLASLt this is the workspace at most */
        if (forged == 2) algorithm.algo.data[2] |= UINT64_C(256) << 32;
        if (forged == 3) algorithm.workspace = 16;                /* too small */
        if (forged == 4) algorithm.workspace = UINT64_C(1) << 62; /* larger than any memory */
        memcpy(given.kept, &algorithm, sizeof algorithm);
        multiply_given(&given, false);
    }
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
}

/* An epilogue that takes longer than a separate kernel remains a kernel. */
static void test_slow_epilogue(void **state) {
    (void)state;
    weft_context *ctx;
    const int64_t shape[] = {SIDE, SIDE + 1};
    fake_blas_state before, *c = counts();
    if (!c) return skip();
    c->slow_bias = 1;
    for (int run = 0; run < 2; run++) { /* first measured, then read from the disk */
        before = *c;
        assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
        weft_tensor *a = filled(ctx, WEFT_F32, 2, (int64_t[]){SIDE, SIDE}, 1);
        weft_tensor *b = filled(ctx, WEFT_F32, 2, shape, 2), *bias = filled(ctx, WEFT_F32, 1, &shape[1], 3);
        weft_tensor *y = weft_add(weft_matmul(a, b), bias);
        assert_int_equal(weft_eval(&y, 1), WEFT_OK);
        weft_close(ctx);
    }
    c->slow_bias = 0;
    assert_int_equal(c->products - before.products, 1);
    assert_int_equal(c->epilogues, before.epilogues);
}

/* Strict f32 does not use TF32 unless that is allowed. 16-bit results are sums in f32, which
 * tests/cuda/blas.c checks. */
static void test_tf32(void **state) {
    (void)state;
    static float strict[LARGE * LARGE], rounded[LARGE * LARGE];
    double difference = 0;
    const weft__cuda_found *list;
    if (!ready() || !weft__cuda_devices(&list, NULL) || list[0].capability < 80) return skip();
    const int64_t side = counts() ? SIDE : LARGE;
    multiply_of(side, &on_gpu, strict, NULL);
    multiply_of(side, &(weft_open_options){.device = device(), .tf32 = true}, rounded, NULL);
    for (int64_t i = 0; i < side * side; i++)
        difference = fmax(difference, fabs((double)strict[i] - (double)rounded[i]));
    if (!(difference > 1e-6 * (double)side && difference < 1e-3 * (double)side))
        fail_msg("TF32 and strict f32 differ by %g", difference);
}

/* ---- without the library ---- */

static int warnings;
static void on_log(void *user, weft_log_level level, const char *message) {
    (void)user;
    warnings += level == WEFT_LOG_WARNING && strstr(message, "matmuls run on Weft's own kernels") != NULL;
}

static void works_without_calls(void) {
    weft_context *cpu;
    const fake_blas_state before = *counts();
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &cpu), WEFT_OK);
    weft_close(cpu);
    multiply(&(weft_open_options){.device = "cpu"}, first, NULL);
    multiply(&(weft_open_options){.device = device(), .log = on_log}, second, NULL);
    assert_int_equal(counts()->products, before.products);
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_true(fabs((double)first[i] - (double)second[i]) <= 1e-4 * (1 + fabs((double)first[i])));
}

static void test_without(void **state) {
    (void)state;
    fake_blas_state *c = counts();
    weft_device_description d;
    if (!c) return skip();
    c->decline = 1; /* the disk already has the first problem: use another */
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
    works_without_calls();
    c->decline = 0;
    c->no_handle = 1;
    works_without_calls();
    assert_int_equal(warnings, 1);
    c->no_handle = 0;
    assert_int_equal(setenv("WEFT_MATMUL", "own", 1), 0);
    works_without_calls();
    assert_int_equal(unsetenv("WEFT_MATMUL"), 0);
    library()->file = "libabsent.so";
    forget();
    works_without_calls();
    kind()->describe(kind(), 0, &d);
    assert_true(d.present);
    assert_non_null(strstr(
        d.detail, on_hip() ? "no hipBLASLt (matmuls on own kernels: install hipblaslt of ROCm 6.1 or later)"
                           : "no cuBLASLt (matmuls on own kernels: pip install nvidia-cublas)"));
    library()->file = NULL;
    forget();
    kind()->describe(kind(), 0, &d);
    assert_non_null(strstr(d.detail, on_hip() ? ", hipBLASLt" : "cuBLASLt 13.1.2"));
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", folder, 1), 0);
}

/* A failing call gives an error with the library's message, also for short memory. The next call works. */
static void test_fails(void **state) {
    (void)state;
    weft_context *ctx;
    const int64_t shape[] = {24, 24};
    fake_blas_state *c = counts();
    char says[2][100];
    if (!c) return skip();
    for (int i = 0; i < 2; i++)
        snprintf(says[i], sizeof says[i], "%s refuses a matmul of 24 x 24 x 24: %s_STATUS_%s",
                 library()->name, on_hip() ? "HIPBLAS" : "CUBLAS", i ? "ALLOC_FAILED" : "EXECUTION_FAILED");
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    weft_tensor *a = filled(ctx, WEFT_F32, 2, shape, 1);
    for (int plain = 0; plain < 2; plain++) { /* also while a graph is captured */
        weft__driver_hook.plain = plain ? 1000 : 1;
        c->fail = 1;
        assert_int_equal(weft_read(weft_matmul(a, a), first, sizeof(float) * 24 * 24), WEFT_ERR_DEVICE);
        assert_non_null(strstr(weft_last_error(ctx), says[0]));
        c->no_memory = 1;
        assert_int_equal(weft_read(weft_matmul(a, a), first, sizeof(float) * 24 * 24), WEFT_ERR_OOM);
        assert_non_null(strstr(weft_last_error(ctx), says[1]));
        assert_int_equal(weft_read(weft_matmul(a, a), first, sizeof(float) * 24 * 24), WEFT_OK);
    }
    weft__driver_hook.plain = 0;
    weft_close(ctx);
    assert_int_equal(c->objects, 0);
}

/* ---- descriptors, with any library ---- */

static void test_descriptors(void **state) {
    (void)state;
    char version[WEFT_BLAS_VERSION], why[WEFT_BLAS_WHY] = "";
    const weft_blas *blas = library();
    if (weft__blas_open(blas)) {
        print_message("skipped: %s\n", weft__blas_open(blas));
        return skip();
    }
    const int32_t epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                 CUBLASLT_EPILOGUE_GELU_AUX | CUBLASLT_EPILOGUE_BIAS,
                                 CUBLASLT_EPILOGUE_DGELU};
    const size_t n =
        on_hip() ? 2 : sizeof epilogues / sizeof *epilogues; /* Weft uses no others of hipBLASLt */
    for (size_t i = 0; i < n; i++)
        for (int batch = 1; batch < 3; batch++) {
            weft__blas_plan plan = {.key.problem = {.a = {64, 128, 64, 64 * 128, CUDA_R_16BF, CUBLAS_OP_T},
                                                    .b = {64, 32, 64, 0, CUDA_R_16BF, CUBLAS_OP_N},
                                                    .d = {128, 32, 128, 128 * 32, CUDA_R_16BF, CUBLAS_OP_N},
                                                    .alpha = 1,
                                                    .batch = batch,
                                                    .compute = CUBLAS_COMPUTE_32F,
                                                    .scale = CUDA_R_32F,
                                                    .epilogue = epilogues[i]}};
            assert_int_equal(weft__blas_describe(blas->functions, &plan), 0);
            weft__blas_undescribe(blas->functions, &plan);
        }
    cublasLtHandle_t handle = weft__blas_handle(blas, "", why);
    snprintf(version, sizeof version, "%s", blas->name);
    if (handle) weft__blas_version(blas, version);
    print_message("%s: descriptors are right; %s\n", version, handle ? "there is a handle" : why);
    if (handle) blas->functions->cublasLtDestroy(handle);
}

/* ---- what hipBLASLt needs ---- */

/* Independent matmuls of a program. The matmuls of a handle may share memory of the card, so they must not
 * run at the same time. With FAKE_CUDA_RACES the simulated driver reports it if they do. */
static void test_concurrent(void **state) {
    (void)state;
    enum { SMALL = 24, RUNS = 4 };
    weft_context *ctx;
    const int64_t shape[] = {SMALL, SMALL};
    fake_blas_state *c = counts();
    if (!c) return skip();
    assert_int_equal(weft_open(&on_gpu, &ctx), WEFT_OK);
    const long done = c->products;
    for (int run = 0; run < RUNS; run++) { /* the last ones are graphs */
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *y[3], *x[3];
        for (int i = 0; i < 3; i++) x[i] = filled(ctx, WEFT_F32, 2, shape, i + 1);
        for (int i = 0; i < 3; i++) y[i] = weft_matmul(x[i], x[(i + 1) % 3]);
        assert_int_equal(weft_eval(y, 3), WEFT_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(weft_read(y[i], i ? second : first, SMALL * SMALL * sizeof(float)), WEFT_OK);
        weft_scope_close(scope);
    }
    assert_int_equal(c->last, 0); /* without a workspace that would put them in order */
    assert_true(c->products >= done + 3 * 2);
    weft_close(ctx);
    assert_int_equal(c->refused, 0);
}

static char said[400];
static void keep_warning(void *user, weft_log_level level, const char *message) {
    (void)user;
    if (level == WEFT_LOG_WARNING) snprintf(said, sizeof said, "%s", message);
}

/* Weft's own kernels compute a matmul, and a warning says why and what helps. */
static void refuses_library(const char *why) {
    const long done = counts()->products;
    const long objects = counts()->objects;
    said[0] = 0;
    multiply(&(weft_open_options){.device = device(), .log = keep_warning}, second, NULL);
    assert_int_equal(counts()->products, done);
    assert_int_equal(counts()->objects, objects);
    if (!strstr(said, why)) fail_msg("'%s' instead of '%s'", said, why);
}

/* Versions whose numbers or kernels Weft does not know, or that lack kernels for the card. */
static void test_versions(void **state) {
    (void)state;
    const weft__cuda_found *list;
    if (!on_hip() || !counts() || !has_card(&list)) return skip();
    setenv("WEFT_KERNEL_CACHE", "off", 1);
    setenv("FAKE_HIPBLASLT_VERSION", "600", 1); /* of ROCm 6.0 */
    refuses_library("hipBLASLt is version 0.6.0, and Weft knows 0.7 to 1: install that of ROCm 6.1 to 7");
    setenv("FAKE_HIPBLASLT_VERSION", "200000", 1);
    refuses_library("hipBLASLt is version 2.0.0, and Weft knows 0.7 to 1");
    setenv("FAKE_HIPBLASLT_VERSION", "700", 1);
    if (list[0].wave == 32)
        refuses_library("hipBLASLt 0.7.0 has no kernels for gfx1100: install a newer ROCm");
    else
        assert_true(multiply(&on_gpu, first, NULL) == 0 && counts()->products > 0);
    setenv("FAKE_HIPBLASLT_VERSION", "100100", 1); /* of ROCm 7.1 */
    const long done = counts()->products;
    multiply(&on_gpu, first, NULL);
    assert_int_equal(counts()->products, done + 1);
    unsetenv("FAKE_HIPBLASLT_VERSION");
    setenv("WEFT_KERNEL_CACHE", folder, 1);
    library()->file = "libm.so.6"; /* not hipBLASLt */
    forget();
    assert_non_null(strstr(weft__blas_open(library()), "libm.so.6 has no hipblasLt"));
    assert_non_null(strstr(weft__blas_open(library()), "install hipBLASLt of ROCm 6.1 or later"));
    library()->file = NULL;
    forget();
}

/* `weft doctor` shows the version, or the remedy. */
static void test_component(void **state) {
    (void)state;
    char text[WEFT_COMPONENT_TEXT];
    if (!on_hip() || !counts()) return skip();
    assert_true(test_has_component(&weft__device_hip, "hipBLASLt", text));
    assert_string_equal(text, "hipBLASLt 0.10.0");
    setenv("FAKE_HIPBLASLT_VERSION", "600", 1);
    assert_false(test_has_component(&weft__device_hip, "hipBLASLt", text));
    assert_non_null(strstr(text, "install that of ROCm 6.1 to 7"));
    unsetenv("FAKE_HIPBLASLT_VERSION");
    library()->file = "libabsent.so";
    forget();
    assert_false(test_has_component(&weft__device_hip, "hipBLASLt", text));
    assert_non_null(strstr(text, "libabsent.so cannot be opened: install hipBLASLt of ROCm 6.1 or later"));
    assert_non_null(strstr(text, "WEFT_HIP_PATH"));
    library()->file = NULL;
    setenv("FAKE_CUDA_CARDS", "0", 1); /* without a card, the file stands for the version */
    forget();
    assert_true(test_has_component(&weft__device_hip, "hipBLASLt", text));
    assert_non_null(strstr(text, "libhipblaslt.so.0"));
    unsetenv("FAKE_CUDA_CARDS");
    forget();
    assert_int_equal(counts()->objects, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),   cmocka_unit_test(test_products),
        cmocka_unit_test(test_choices),       cmocka_unit_test(test_forged),
        cmocka_unit_test(test_slow_epilogue), cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_without),       cmocka_unit_test(test_fails),
        cmocka_unit_test(test_concurrent),    cmocka_unit_test(test_versions),
        cmocka_unit_test(test_component),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
