/* Times single operations, one JSON line each, as `weft bench` prints them: sorting and scans, some with
 * gradients, and each pass of convolutions whose images have their channels last. Each is a program that runs
 * many times.
 *
 *     build/bench_operations [--threads N] sort|convolutions
 *     bench/compare --weft build/bench_operations --table sort -- python bench/peers/ops.py sort */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

enum { WARMUP = 3, STEPS = 15 };

static void need(bool holds) {
    if (holds) return;
    fprintf(stderr, "bench_operations: %s\n", weft_last_error(NULL));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns a variable of random numbers between -1 and 1. */
static weft_tensor *some(weft_context *ctx, int rank, const int64_t *shape) {
    weft_tensor *value = weft_sub(weft_mul_scalar(weft_random_uniform(ctx, rank, shape), 2),
                                  weft_full(ctx, WEFT_F32, 0, NULL, 1));
    weft_tensor *variable = weft_variable_new(ctx, "operand", WEFT_F32, rank, shape, NULL);
    need(weft_assign(&variable, &value, 1) == WEFT_OK);
    return variable;
}

/* Compiles the program of the results, times it, and prints a line. flops 0: unknown. */
static void report(weft_context *ctx, const char *name, weft_tensor *const *out, size_t count, double flops) {
    double seconds[STEPS];
    weft_program *program;
    need(weft_compile(out, count, NULL, NULL, 0, &program) == WEFT_OK);
    for (int i = -WARMUP; i < STEPS; i++) {
        const double from = now();
        need(weft_program_run(program) == WEFT_OK && weft_synchronize(ctx) == WEFT_OK);
        if (i >= 0) seconds[i] = now() - from;
    }
    weft_program_free(program);
    qsort(seconds, STEPS, sizeof *seconds, ascending);
    printf("{\"workload\": \"%s\", \"peer\": \"weft\", \"version\": \"%s\", \"device\": \"%s\", "
           "\"seconds_per_step_min\": %.6g, \"seconds_per_step_median\": %.6g",
           name, weft_version(), weft_device_of(ctx), seconds[0], seconds[STEPS / 2]);
    if (flops > 0) printf(", \"gflops\": %.6g", flops / seconds[STEPS / 2] / 1e9);
    printf("}\n");
    fflush(stdout);
}

/* ---- sorting and scans ---- */

enum { MILLION = 1000000 };

typedef struct line {
    const char *name;
    int64_t shape[2];
    int gradient; /* 1: the gradient is computed too */
    weft_tensor *(*of)(weft_tensor *x);
} line;

static weft_tensor *sort(weft_tensor *x) { return weft_sort(x, 1, false, NULL); }
static weft_tensor *top_50(weft_tensor *x) { return weft_topk(x, 50, 1, true, NULL); }
static weft_tensor *top_10(weft_tensor *x) { return weft_topk(x, 10, 1, true, NULL); }
static weft_tensor *sums(weft_tensor *x) { return weft_cumsum(x, 1); }
static weft_tensor *sums_down(weft_tensor *x) { return weft_cumsum(x, 0); }
static weft_tensor *products(weft_tensor *x) { return weft_cumprod(x, 1); }
static weft_tensor *largest(weft_tensor *x) { return weft_argmax(x, 1, false); }
static weft_tensor *chosen(weft_tensor *x) { return weft_where(weft_gt(x, weft_neg(x)), x, weft_exp(x)); }
static weft_tensor *filled(weft_tensor *x) { return weft_masked_fill(x, weft_gt(x, weft_neg(x)), -1); }
static weft_tensor *turned(weft_tensor *x) { return weft_take_along_axis(x, weft_argsort(x, 1, false), 1); }
static weft_tensor *hot(weft_tensor *x) {
    return weft_one_hot(weft_cast(weft_mul_scalar(weft_abs(x), 99), WEFT_I32), 100, WEFT_F32);
}

static const line lines[] = {{"sort_1x1m", {1, MILLION}, 0, sort},
                             {"sort_64x50257", {64, 50257}, 0, sort},
                             {"sort_10000x100", {10000, 100}, 0, sort},
                             {"sort_gradient_1x1m", {1, MILLION}, 1, sort},
                             {"top50_64x50257", {64, 50257}, 0, top_50},
                             {"top10_1x1m", {1, MILLION}, 0, top_10},
                             {"top50_gradient_64x50257", {64, 50257}, 1, top_50},
                             {"take_gradient_1000x1000", {1000, 1000}, 1, turned},
                             {"cumsum_1x10m", {1, 10 * MILLION}, 0, sums},
                             {"cumsum_1mx8", {MILLION, 8}, 0, sums},
                             {"cumsum_down_4096x4096", {4096, 4096}, 0, sums_down},
                             {"cumprod_1000x1000", {1000, 1000}, 0, products},
                             {"cumprod_gradient_1000x1000", {1000, 1000}, 1, products},
                             {"argmax_1000x1000", {1000, 1000}, 0, largest},
                             {"argmax_1x1m", {1, MILLION}, 0, largest},
                             {"where_1000x1000", {1000, 1000}, 0, chosen},
                             {"masked_fill_1000x1000", {1000, 1000}, 0, filled},
                             {"one_hot_10000x100", {1, 10000}, 0, hot}};

static void bench_sort(weft_context *ctx, const line *l) {
    char name[64];
    weft_tensor *x = some(ctx, 2, l->shape), *like = l->of(x), *out[2];
    const int64_t shape[] = {weft_dim(like, 0), weft_dim(like, 1)};
    weft_tensor *weights = l->gradient ? some(ctx, 2, shape) : NULL; /* assigns a variable */
    snprintf(name, sizeof name, "sort_%s", l->name);
    out[0] = weft_keep(l->of(x));
    if (weights) {
        need(weft_gradient(weft_sum(weft_mul(out[0], weights), WEFT_ALL_AXES, false), &x, 1, &out[1]) ==
             WEFT_OK);
        weft_keep(out[1]);
    }
    report(ctx, name, out, l->gradient ? 2 : 1, 0);
}

/* ---- convolutions ---- */

/* A layer with square images and kernels, padded by half a kernel. */
typedef struct layer {
    const char *name;
    int64_t n, in, extent, out, size, stride, groups;
} layer;

static const layer layers[] = {{"1x1_64_256_28", 32, 64, 28, 256, 1, 1, 1},
                               {"1x1_256_64_28", 32, 256, 28, 64, 1, 1, 1},
                               {"1x1_512_512_14", 16, 512, 14, 512, 1, 1, 1},
                               {"3x3_16_16_32", 128, 16, 32, 16, 3, 1, 1},
                               {"3x3_32_64_14", 64, 32, 14, 64, 3, 1, 1},
                               {"3x3_256_256_14", 16, 256, 14, 256, 3, 1, 1},
                               {"3x3_512_512_7", 16, 512, 7, 512, 3, 1, 1},
                               {"depthwise_64_56", 32, 64, 56, 64, 3, 1, 64},
                               {"depthwise_128_28_by2", 32, 128, 28, 128, 3, 2, 128},
                               {"depthwise_512_7", 32, 512, 7, 512, 3, 1, 512}};

static weft_tensor *channels_first(weft_tensor *x) { return weft_permute(x, (int[]){0, 3, 1, 2}); }

/* Times a pass: 0 is the forward pass, 1 the gradient of the input, 2 that of the weight. */
static void bench_pass(weft_context *ctx, const layer *l, int pass) {
    static const char *const passes[] = {"forward", "input", "weight"};
    char name[64];
    const int64_t half = l->size / 2, to = (l->extent - 1) / l->stride + 1;
    weft_tensor *x = some(ctx, 4, (int64_t[]){l->n, l->extent, l->extent, l->in});
    weft_tensor *w = some(ctx, 4, (int64_t[]){l->out, l->size, l->size, l->in / l->groups});
    weft_tensor *g = some(ctx, 4, (int64_t[]){l->n, to, to, l->out}), *out;
    const weft_conv_options options = {
        .stride = {l->stride, l->stride}, .padding = {half, half}, .groups = l->groups};
    weft_tensor *y = weft_conv2d(channels_first(x), channels_first(w), NULL, &options);
    if (pass == 0)
        out = weft_permute(y, (int[]){0, 2, 3, 1});
    else
        need(weft_gradient(weft_sum(weft_mul(y, channels_first(g)), WEFT_ALL_AXES, false),
                           pass == 1 ? &x : &w, 1, &out) == WEFT_OK);
    weft_keep(out);
    snprintf(name, sizeof name, "conv_%s_%s", l->name, passes[pass]);
    report(ctx, name, &out, 1,
           2.0 * (double)(l->n * to * to * l->out) * (double)(l->size * l->size * l->in / l->groups));
}

/* Each line has its own context, so that lines do not share memory. */
static void run(bool sorts, size_t i, int threads) {
    weft_context *ctx;
    need(weft_open(&(weft_open_options){.threads = threads, .seed = 1}, &ctx) == WEFT_OK);
    if (sorts)
        bench_sort(ctx, &lines[i]);
    else
        bench_pass(ctx, &layers[i / 3], (int)(i % 3));
    weft_close(ctx);
}

/* bench/compare calls it as it calls `weft`: bench WORKLOAD --json --threads N. */
int main(int argc, char **argv) {
    const char *workload = "";
    int threads = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "bench") != 0 && strcmp(argv[i], "--json") != 0)
            workload = argv[i];
    }
    const bool sorts = strcmp(workload, "sort") == 0;
    if (!sorts && strcmp(workload, "convolutions") != 0) {
        fprintf(stderr, "bench_operations: give sort or convolutions\n");
        return 2;
    }
    const size_t count = sorts ? sizeof lines / sizeof *lines : 3 * sizeof layers / sizeof *layers;
    for (size_t i = 0; i < count; i++) run(sorts, i, threads);
    return 0;
}
