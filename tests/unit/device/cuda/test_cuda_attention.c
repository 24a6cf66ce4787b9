/* Attention by cuDNN on the CUDA device, with the simulated driver and cuDNN (tests/cuda/fake.h, dnn.h),
 * which compute the operation graphs. Checks:
 * - values and gradients equal the CPU's, in a fixed order and in the fast mode, whole and in parts;
 * - each plan is made once, and kept on disk;
 * - Weft's own kernels do whatever cuDNN cannot do, or all of it if cuDNN is missing, and the log says so. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
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

#include "cuda_dnn.h"
#include "device/cuda/cuda.h"
#include "device/cuda/dnn/dnn_attention.h"
#include "graph/graph.h"
#include "train/run/training.h"

enum { RUNS = 5 /* two runs launch kernels, the others a graph */ };

static void skip_it(void) { skip(); }

/* q (batch, heads, t, d), k and v (batch, heads, s, d). */
typedef struct problem {
    weft_dtype dtype;
    int64_t batch, heads, t, s, d;
    bool causal, packed; /* views of (batch, t, 3, heads, d) */
    double dropout;
} problem;

/* Values of y and of the gradients, concatenated. */
typedef struct result {
    float *values;
    int64_t count;
} result;

/* ---- the problem, on any device ---- */

/* The heads of part 0 to 2 of a packed projection. */
static weft_tensor *part_of(weft_tensor *packed, int part) {
    static const int order[4] = {0, 2, 1, 3};
    const int64_t *shape = weft_shape(packed), heads[4] = {shape[0], shape[1], shape[3], shape[4]};
    return weft_permute(weft_reshape(weft_narrow(packed, 2, part, 1), 4, heads), order);
}

/* inputs: receives the tensors that gradients are computed for. */
static weft_tensor *attention_of(weft_context *ctx, const problem *p, weft_tensor *inputs[3], int *n_inputs) {
    const weft_attention_options options = {.causal = p->causal, .dropout = p->dropout};
    const int64_t whole[5] = {p->batch, p->t, 3, p->heads, p->d};
    const int64_t q[4] = {p->batch, p->heads, p->t, p->d}, k[4] = {p->batch, p->heads, p->s, p->d};
    *n_inputs = p->packed ? 1 : 3;
    if (p->packed) {
        inputs[0] = numbers(ctx, 5, whole, 1);
        weft_tensor *x = weft_cast(inputs[0], p->dtype);
        return weft_attention(part_of(x, 0), part_of(x, 1), part_of(x, 2), &options);
    }
    for (int i = 0; i < 3; i++) inputs[i] = numbers(ctx, 4, i ? k : q, (unsigned)i + 1);
    return weft_attention(weft_cast(inputs[0], p->dtype), weft_cast(inputs[1], p->dtype),
                          weft_cast(inputs[2], p->dtype), &options);
}

static weft_status compute_in(weft_context *ctx, const problem *p, int runs, result *to) {
    weft_tensor *inputs[3], *out[4] = {NULL};
    weft_program *program;
    int n = 0;
    weft_tensor *y = weft_cast(attention_of(ctx, p, inputs, &n), WEFT_F32);
    weft_tensor *weights = numbers(ctx, 4, weft_shape(y), 9);
    weft_tensor *loss = weft_sum(weft_mul(y, weights), WEFT_ALL_AXES, false);
    out[0] = y;
    weft_status status = weft_gradient(loss, inputs, (size_t)n, out + 1);
    if (status == WEFT_OK) status = weft_compile(out, (size_t)n + 1, NULL, NULL, 0, &program);
    for (int run = 0; run < runs && status == WEFT_OK; run++) {
        int64_t at = 0;
        status = weft_program_run(program);
        to->count = 0;
        for (int i = 0; i <= n; i++) to->count += weft_numel(out[i]);
        float *values = malloc((size_t)to->count * sizeof *values);
        for (int i = 0; i <= n && status == WEFT_OK; at += weft_numel(out[i++]))
            status = weft_read(out[i], values + at, (size_t)weft_numel(out[i]) * sizeof *values);
        if (status == WEFT_OK && to->values)
            assert_memory_equal(values, to->values, (size_t)to->count * sizeof *values);
        free(to->values);
        to->values = values;
    }
    return status;
}

/* Checks that all runs give the same bits. */
static weft_status compute(const char *device, const problem *p, int runs, bool fast, result *to) {
    weft_context *ctx;
    *to = (result){.count = 0};
    said[0] = 0;
    weft_status status =
        weft_open(&(weft_open_options){.device = device, .log = note, .allow_nondeterministic = fast}, &ctx);
    if (status != WEFT_OK) return status;
    status = compute_in(ctx, p, runs, to);
    weft_close(ctx);
    return status;
}

/* Within the rounding of 16-bit floats: of y, and of weights and scores before the matmuls. */
static void compare(const result *got, const result *wanted, weft_dtype dtype) {
    const float unit = dtype == WEFT_BF16 ? 0x1p-8F : 0x1p-11F;
    float most = 0;
    assert_int_equal(got->count, wanted->count);
    for (int64_t i = 0; i < wanted->count; i++) most = fmaxf(most, fabsf(wanted->values[i]));
    assert_true(most > 0.1F);
    for (int64_t i = 0; i < wanted->count; i++)
        if (!(fabsf(got->values[i] - wanted->values[i]) <= 2 * unit * most))
            fail_msg("element %lld: %g, not %g", (long long)i, (double)got->values[i],
                     (double)wanted->values[i]);
}

/* Compares with the CPU. Returns the number of cuDNN executions. */
static long check(const problem *p, bool fast) {
    fake_cudnn_state *c = counts();
    const long before = c->executed;
    result wanted, got;
    assert_int_equal(compute("cpu", p, 1, false, &wanted), WEFT_OK);
    if (compute("cuda", p, RUNS, fast, &got) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    compare(&got, &wanted, p->dtype);
    free(wanted.values);
    free(got.values);
    assert_int_equal(c->handles, 0);
    assert_int_equal(c->descriptors, 0);
    return c->executed - before;
}

/* ---- tests ---- */

/* Each graph is executed three times: two launches and one capture. */
enum { EXECUTIONS = 3 };

static void test_parity(void **state) {
    static const problem problems[] = {
        {WEFT_BF16, 2, 3, 128, 128, 16, true, true, 0}, {WEFT_F16, 2, 3, 128, 128, 16, true, true, 0},
        {WEFT_BF16, 3, 2, 40, 40, 24, false, true, 0},  {WEFT_F16, 1, 1, 17, 90, 8, false, false, 0},
        {WEFT_BF16, 1, 4, 33, 33, 32, true, false, 0},
    };
    (void)state;
    if (without()) return skip_it();
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        for (int fast = 0; fast < 2; fast++) {
            assert_int_equal(check(&problems[i], fast), 2 * EXECUTIONS);
            assert_null(strstr(said, "own kernel"));
        }
}

/* With memory for two heads of one batch, or for two batches. */
static void test_parts(void **state) {
    const problem p = {WEFT_BF16, 4, 4, 64, 64, 16, true, true, 0};
    const int64_t pair = 2 * 64 * 64 + 4 * 64;
    (void)state;
    if (without()) return skip_it();
    weft__cuda_hook.dnn_memory = 2 * pair;
    assert_int_equal(check(&p, false), (1 + 8) * EXECUTIONS);
    weft__cuda_hook.dnn_memory = 8 * pair;
    assert_int_equal(check(&p, false), (1 + 2) * EXECUTIONS);
    weft__cuda_hook.dnn_memory = pair - 1; /* no memory: the template computes the gradients */
    assert_int_equal(check(&p, false), EXECUTIONS);
    weft__cuda_hook.dnn_memory = 0;
}

/* Large cards give enough memory for the gradient of a layer of GPT-2 124M at once, small cards a part. */
static void test_memory_by_card(void **state) {
    static const struct {
        uint64_t gib;
        int64_t batches;
    } cards[] = {{139, 1}, {80, 1}, {24, 4}, {12, 4}, {4, 8}};
    const weft_heavy_attention at = {.dtype = WEFT_BF16,
                                     .causal = true,
                                     .backward = true,
                                     .batch = 64,
                                     .heads = 12,
                                     .t_q = 1024,
                                     .t_k = 1024,
                                     .d = 64};
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const weft_gpu_found found = {.memory = cards[i].gib << 30};
        const weft__cuda card = {.gpu.found = &found};
        weft_dnn_attention part;
        char message[WEFT_DNN_MESSAGE];
        weft_heavy_attention whole = at;
        for (int k = 0; k < 3; k++)
            whole.q[k] = whole.k[k] = whole.v[k] = whole.out[k] = whole.dout[k] = whole.dq[k] = whole.dk[k] =
                whole.dv[k] = k == 0   ? 12 * 1024 * 64
                              : k == 1 ? 1024 * 64
                                       : 64;
        assert_true(
            weft__dnn_attention_part(&whole, 90, 92800, false, weft__dnn_memory(&card), &part, message));
        assert_int_equal(part.heads, 1);
        assert_int_equal(part.batches, cards[i].batches);
    }
}

/* Cases where Weft's own kernels run instead of cuDNN, and the reason in the log. */
static void test_own_kernels(void **state) {
    static const struct {
        problem p;
        const char *why;
    } cases[] = {
        {{WEFT_F32, 2, 2, 16, 16, 16, true, true, 0}, NULL},
        {{WEFT_BF16, 2, 2, 16, 16, 12, true, true, 0}, "not a multiple of 8"},
        {{WEFT_BF16, 2, 2, 16, 24, 16, true, false, 0}, "as many keys as queries"},
    };
    (void)state;
    if (without()) return skip_it();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(check(&cases[i].p, false), 0);
        assert_int_equal(strstr(said, "own kernel") != NULL, cases[i].why != NULL);
        if (cases[i].why && !strstr(said, cases[i].why)) fail_msg("%s", said);
    }
}

/* An engine with an undefined order of additions is used only if that is allowed. */
static void test_order(void **state) {
    const problem p = {WEFT_BF16, 1, 2, 48, 48, 16, true, true, 0};
    (void)state;
    if (without()) return skip_it();
    counts()->unordered = 1;
    assert_int_equal(check(&p, false), 0);
    assert_non_null(strstr(said, "order"));
    assert_int_equal(check(&p, true), EXECUTIONS);
    counts()->unordered = 0;
}

static void test_no_plan(void **state) {
    const problem p = {WEFT_BF16, 1, 2, 56, 56, 16, true, true, 0};
    (void)state;
    if (without()) return skip_it();
    fake_cudnn_state *c = counts();
    c->no_plan = 1;
    assert_int_equal(check(&p, false), 0);
    assert_non_null(strstr(said, "it has no engine for this problem"));
    c->no_plan = 0;
    c->no_handle = 1;
    assert_int_equal(check(&p, false), 0);
    assert_non_null(strstr(
        said, "attention and convolutions run on Weft's own kernels: a handle: CUDNN_STATUS_NOT_SUPPORTED"));
    c->no_handle = 0;
}

static const char *detail(void) {
    for (int i = 0; i < weft_device_count(); i++) {
        weft_device_description d;
        if (weft_device_info(i, &d) && strcmp(d.name, "cuda:0") == 0) return d.detail;
    }
    return "";
}

/* Without the library, or with a version known to be wrong. */
static void test_no_library(void **state) {
    const problem p = {WEFT_BF16, 1, 2, 32, 32, 16, true, true, 0};
    (void)state;
    if (without()) return skip_it();
    weft__cuda_forget();
    assert_non_null(strstr(detail(), ", cuDNN 9.19.0"));
    weft__dnn_file = "libcudnn-of-nobody.so.9";
    weft__cuda_forget();
    assert_non_null(strstr(detail(), "no cuDNN (attention on own kernels: pip install nvidia-cudnn-cu13)"));
    assert_int_equal(check(&p, false), 0);
    assert_non_null(strstr(said, "libcudnn-of-nobody.so.9 cannot be opened: install cuDNN"));
    weft__dnn_file = NULL;
    counts()->version = 91001;
    weft__cuda_forget();
    assert_non_null(strstr(detail(), "cuDNN 9.10.1 not used"));
    assert_int_equal(check(&p, false), 0);
    assert_non_null(strstr(said, "cuDNN 9.10.1 computes wrong gradients"));
    counts()->version = 0;
    weft__cuda_forget();
}

/* A failure at run time gives an error with cuDNN's message. The next run works. */
static void test_execution_fails(void **state) {
    const problem p = {WEFT_BF16, 1, 2, 32, 32, 16, true, true, 0};
    result r;
    (void)state;
    if (without()) return skip_it();
    for (long k = 1; k <= 5; k += 2) { /* in launch 1, launch 2, the capture */
        counts()->fail = k;
        assert_int_equal(compute("cuda", &p, RUNS, false, &r), WEFT_ERR_DEVICE);
        assert_non_null(strstr(weft_last_error(NULL), "CUDNN_STATUS_EXECUTION_FAILED: as a test wishes"));
        assert_int_equal(counts()->fail, 0);
        free(r.values);
        assert_int_equal(check(&p, false), 2 * EXECUTIONS);
    }
}

/* How train.deterministic changes the options of the device. */
static void test_configuration(void **state) {
    static const char *const settings[] = {"train.deterministic=true", "train.deterministic=false"};
    (void)state;
    if (without()) return skip_it();
    for (int fast = 0; fast < 2; fast++) {
        weft__config config;
        weft_context *ctx;
        weft__config_init(&config);
        assert_int_equal(weft__config_set(&config, settings[fast]), WEFT_OK);
        assert_int_equal(weft__model_open_context(&config, "cuda", NULL, NULL, &ctx), WEFT_OK);
        assert_int_equal(weft__cuda_of(ctx->device)->fast, fast);
        weft_close(ctx);
        weft__config_free(&config);
    }
}

/* ---- plans on disk ---- */

static void damage_files(void) {
    char path[400];
    DIR *dir = opendir(in_scratch("kernels"));
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "kernels/%s", e->d_name);
        FILE *file = e->d_name[0] == '.' ? NULL : fopen(in_scratch(path), "r+");
        if (!file) continue;
        fseek(file, 100, SEEK_SET);
        fputs("damage", file);
        fclose(file);
    }
    if (dir) closedir(dir);
}

static void expect_plans(const problem *p, bool fast, long built, long restored) {
    fake_cudnn_state *c = counts();
    const long b = c->built, r = c->restored;
    check(p, fast);
    assert_int_equal(c->built - b, built);
    assert_int_equal(c->restored - r, restored);
}

static void test_disk(void **state) {
    problem p = {WEFT_BF16, 1, 2, 64, 64, 16, true, true, 0};
    (void)state;
    if (without()) return skip_it();
    expect_plans(&p, false, 2, 0);
    expect_plans(&p, false, 0, 2);
    expect_plans(&p, true, 1, 1); /* another backward pass */
    counts()->version = 92000;    /* plans of another cuDNN version are not used */
    expect_plans(&p, false, 2, 0);
    counts()->version = 0;
    p.causal = false;
    expect_plans(&p, false, 2, 0);
    damage_files();
    expect_plans(&p, false, 2, 0);
    expect_plans(&p, false, 0, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),         cmocka_unit_test(test_parts),
        cmocka_unit_test(test_memory_by_card), cmocka_unit_test(test_own_kernels),
        cmocka_unit_test(test_order),          cmocka_unit_test(test_no_plan),
        cmocka_unit_test(test_no_library),     cmocka_unit_test(test_disk),
        cmocka_unit_test(test_configuration),  cmocka_unit_test(test_execution_fails),
    };
    weft__gpu_hook.guard = 256;
    const int failed = cmocka_run_group_tests(tests, dnn_setup, scratch_teardown);
    if (weft__gpu_hook.guards_broken) printf("%d guards are broken\n", (int)weft__gpu_hook.guards_broken);
    return failed + weft__gpu_hook.guards_broken;
}
