/* Bank conflicts of the hottest kernels: matmul tiles, attention, and kernels that reduce rows. The
 * interpreter of PTX counts them (tests/ptx/banks.c): how often a group of lanes that accesses shared memory
 * at once must wait.
 *
 *     test_cuda_banks            compares with the bars in banks.tsv: more conflicts fail, and so do
 *                                far fewer
 *     UPDATE=1 test_cuda_banks   writes the bars: review what changes
 *
 * Skipped unless kernels run as PTX, and unless NVRTC has the major version of the table. Read next:
 * bars.h, banks.tsv. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bars.h"
#include "device/cuda/dnn/dnn.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { COUNTS_MOST = 64 };

/* Of a kernel in a case. */
typedef struct count {
    char name[120];
    double accesses, conflicts;
    char worst[120]; /* the instruction with most conflicts */
} count;
static count counts[COUNTS_MOST];
static int n_counts;
static char file[] = "/tmp/weft-banks-XXXXXX";

/* ---- counting ---- */

/* Rendered kernels are named by a hash of their source; here all have one name. */
static count *count_of(const char *what, const char *kernel) {
    char name[sizeof counts->name];
    snprintf(name, sizeof name, "%s: %s", what, strncmp(kernel, "k_", 2) == 0 ? "rendered" : kernel);
    for (int i = 0; i < n_counts; i++)
        if (strcmp(counts[i].name, name) == 0) return &counts[i];
    assert_true(n_counts < COUNTS_MOST);
    snprintf(counts[n_counts].name, sizeof name, "%s", name);
    return &counts[n_counts++];
}

/* Adds up what the launches since the last call have written. */
static void take_counts(const char *what) {
    char line[600], kernel[50], text[120];
    double accesses, conflicts, most;
    FILE *from = fopen(file, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from)) {
        text[0] = 0;
        if (sscanf(line, "%49s %lf %lf %lf %119[^\n]", kernel, &accesses, &conflicts, &most, text) < 4)
            continue;
        count *c = count_of(what, kernel);
        c->accesses += accesses;
        c->conflicts += conflicts;
        if (text[0]) memcpy(c->worst, text, sizeof text);
    }
    fclose(from);
    assert_int_equal(truncate(file, 0), 0);
}

/* ---- the kernels ---- */

static weft_tensor *values(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    weft_tensor *x = weft_cast(weft_random_normal(ctx, rank, shape), dtype);
    assert_int_equal(weft_eval(&x, 1), WEFT_OK);
    return x;
}

static void run_all(weft_context *ctx, const char *what, weft_tensor **list, size_t n) {
    bars_eval(ctx, file, list, n);
    take_counts(what);
}

/* Small f32 matmuls divide k into slices; larger ones do not. */
static void run_matmuls(weft_context *ctx) {
    static const struct {
        weft_dtype dtype;
        int64_t size, k;
        const char *kernel;
    } cases[] = {{WEFT_BF16, 256, 256, ""},
                 {WEFT_F16, 256, 256, ""},
                 {WEFT_F32, 768, 64, ""},
                 {WEFT_F32, 256, 256, " by slices"}};
    static const char *const layouts[] = {"nn", "nt", "tn"};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++)
        for (int way = 0; way < 3; way++) {
            char what[60];
            const int64_t size = cases[t].size, k = cases[t].k;
            weft_tensor *a = bars_matrix(ctx, cases[t].dtype, size, k, layouts[way][0] == 't');
            weft_tensor *b = bars_matrix(ctx, cases[t].dtype, k, size, layouts[way][1] == 't');
            weft_tensor *c = weft_matmul(a, b);
            snprintf(what, sizeof what, "matmul %s %s%s", weft_dtype_name(cases[t].dtype), layouts[way],
                     cases[t].kernel);
            run_all(ctx, what, &c, 1);
        }
}

static void run_attention(weft_context *ctx) {
    weft_tensor *in[3], *gradients[3];
    for (int i = 0; i < 3; i++) in[i] = values(ctx, WEFT_BF16, SHAPE(1, 2, 128, 64));
    weft_tensor *out = weft_attention(in[0], in[1], in[2], &(weft_attention_options){.causal = true});
    weft_tensor *loss = weft_sum(weft_cast(weft_reshape(out, SHAPE(2 * 128 * 64)), WEFT_F32), 0, false);
    assert_int_equal(weft_gradient(loss, in, 3, gradients), WEFT_OK);
    run_all(ctx, "attention bf16", gradients, 3);
}

static void run_rows(weft_context *ctx) {
    weft_tensor *x = values(ctx, WEFT_F32, SHAPE(64, 1000)), *gradient;
    weft_tensor *y = weft_softmax(x, 1);
    run_all(ctx, "softmax", &y, 1);
    weft_tensor *gamma = values(ctx, WEFT_F32, SHAPE(1000)), *beta = values(ctx, WEFT_F32, SHAPE(1000));
    weft_tensor *norm = weft_layer_norm(x, gamma, beta, 1e-5), *in[] = {x, gamma};
    weft_tensor *loss = weft_sum(weft_reshape(weft_mul(norm, norm), SHAPE(64000)), 0, false), *both[2];
    assert_int_equal(weft_gradient(loss, in, 2, both), WEFT_OK);
    run_all(ctx, "layer norm", both, 2);
    weft_tensor *target = weft_cast(weft_arange(ctx, WEFT_I64, 0, 64, 1), WEFT_I32);
    loss = weft_cross_entropy(x, target, NULL);
    assert_int_equal(weft_gradient(loss, &x, 1, &gradient), WEFT_OK);
    run_all(ctx, "cross-entropy", &gradient, 1);
}

/* Conflicts of 100 accesses: at most half a conflict above or below the bar. */
static bool fits(double conflicts, double bar) { return conflicts <= bar + 0.5 && conflicts >= bar - 0.5; }

static void test_bank_conflicts(void **state) {
    bar_row rows[COUNTS_MOST];
    (void)state;
    weft__dnn_file = "libabsent.so"; /* cuDNN would compute attention */
    weft__dnn_forget();
    weft_context *ctx = bars_open("FAKE_PTX_BANKS", file);
    if (!ctx) return skip();
    run_matmuls(ctx);
    run_attention(ctx);
    run_rows(ctx);
    weft_close(ctx);
    unlink(file);
    if (!n_counts) return skip(); /* kernels do not run as PTX */
    for (int i = 0; i < n_counts; i++) {
        const count *c = &counts[i];
        printf("%-40s %8.0f accesses, %8.0f conflicts, most in \"%s\"\n", c->name, c->accesses, c->conflicts,
               c->worst);
        memcpy(rows[i].name, c->name, sizeof rows->name);
        rows[i].value = 100 * c->conflicts / c->accesses;
    }
    bars_check("tests/unit/device/cuda/banks.tsv",
               "conflicts of 100 accesses to shared memory; UPDATE=1 test_cuda_banks writes them", rows,
               n_counts, fits);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bank_conflicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
