/* weft bench gemm: times square matmuls in every available way: three loops, the CPU's library, own
 * kernels, and the card's library. Compares each result with f64. Each variant runs in a process of its own,
 * because a process chooses its library only once. Must not know: how matmuls are computed. Read next:
 * bench_ops.c, which makes the programs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "train/run/progress.h"

enum { SIZES = 6, LEAST = 128, SAMPLED = 8, BLOCKS = 5 };
#define ENOUGH 0.2 /* seconds per size; for the loops the limit */

static int64_t size_of(int i) { return (int64_t)LEAST << i; }

/* What the process of a variant sends: once a head that names what computes, or why nothing does; then one
 * row for each size. */
typedef struct head {
    bool works;
    char device[32], detail[400];
} head;
typedef struct row {
    double median, best; /* GFLOPS; 0: not measured */
    double error;        /* largest error in the sampled rows, relative to their largest magnitude */
} row;

/* One way to compute a matmul. */
typedef struct variant {
    const char *name;
    const char *device; /* NULL: the device of the command line */
    const char *matmul; /* value of WEFT_MATMUL; NULL: unchanged */
    bool loops;         /* three loops on the CPU */
    bool card;          /* runs only if the device has a library of its vendor */
    head head;
    row rows[SIZES];
} variant;

typedef struct asked {
    const char *device;
    weft_dtype dtype;
    bool tf32; /* matmuls of f32 may be rounded */
    int threads;
    const char *only; /* only the size that is written like this; NULL: all */
} asked;

/* ---- errors ---- */

static int64_t sampled_row(int64_t n, int i) { return i * (n - 1) / (SAMPLED - 1); }

/* Returns the error of the sampled rows of c = a b. All matrices are doubles. */
static double error_of(int64_t n, const double *a, const double *b, const double *c) {
    double *right = weft__array(NULL, (size_t)n, sizeof *right), largest = 0, error = 0;
    if (!right) return (double)NAN;
    for (int i = 0; i < SAMPLED; i++) {
        const int64_t r = sampled_row(n, i);
        memset(right, 0, (size_t)n * sizeof *right);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < n; j++) right[j] += a[r * n + k] * b[k * n + j];
        for (int64_t j = 0; j < n; j++) {
            largest = fmax(largest, fabs(right[j]));
            const double off = fabs(c[r * n + j] - right[j]);
            if (!(off <= error)) error = off; /* a NaN stays */
        }
    }
    weft__free(NULL, right);
    return error / largest;
}

/* Reads the first n x n values of t as doubles. */
static weft_status values_of(weft_tensor *t, int64_t n, double *out) {
    weft_tensor *whole = weft_slice(t, (int64_t[]){0, 0}, (int64_t[]){n, n}, NULL);
    const size_t count = (size_t)(n * n);
    if (weft_dtype_of(t) == WEFT_F64) return weft_read(whole, out, count * sizeof *out);
    float *single =
        /* the upper half of out: filling goes upwards, so each float is read before it is overwritten */
        (float *)out + count;
    WEFT_TRY(weft_read(weft_cast(whole, WEFT_F32), single, count * sizeof *single));
    for (size_t i = 0; i < count; i++) out[i] = (double)single[i];
    return WEFT_OK;
}

static weft_status find_error(weft_context *ctx, int64_t n, weft_tensor *const abc[3], double *error) {
    const size_t count = (size_t)(n * n);
    double *all = weft__array(NULL, 3 * count, sizeof *all);
    weft_scope *scope = weft_scope_open(ctx);
    weft_status status = all && scope ? WEFT_OK : weft__fail_oom(ctx, 3 * count * sizeof *all, "matmuls");
    for (size_t i = 0; i < 3 && status == WEFT_OK; i++) status = values_of(abc[i], n, all + i * count);
    if (status == WEFT_OK) *error = error_of(n, all, all + count, all + 2 * count);
    weft_scope_close(scope);
    weft__free(NULL, all);
    return status;
}

/* ---- a device ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times blocks of runs. The runs of a block are submitted together. A block takes a fifth of ENOUGH, or a
 * single run if that takes longer. */
static weft_status time_runs(weft_context *ctx, weft_program *program, double flops, row *out) {
    double seconds[BLOCKS];
    int64_t runs = 1;
    /* the first one compiles, the second tells how many runs fill a block */
    for (int i = -2; i < BLOCKS; i++) {
        const double from = weft__now();
        for (int64_t k = 0; k < runs; k++) WEFT_TRY(weft_program_run(program));
        WEFT_TRY(weft_synchronize(ctx));
        const double took = (weft__now() - from) / (double)runs;
        if (i == -1) runs = (int64_t)fmax(1, fmin(ENOUGH / (double)BLOCKS / took, 10000));
        if (i >= 0) seconds[i] = took;
    }
    qsort(seconds, BLOCKS, sizeof *seconds, ascending);
    out->median = flops / seconds[BLOCKS / 2] / 1e9;
    out->best = flops / seconds[0] / 1e9;
    return WEFT_OK;
}

static weft_status bench_gemm_measure(weft_context *ctx, weft_dtype dtype, int64_t n, row *out) {
    const weft__bench_matmul product = {"", n, n, n, false, false, 0};
    const int64_t parts = weft__bench_parts(&product);
    weft_tensor *abc[3];
    weft_program *program = NULL;
    weft_scope *scope = weft_scope_open(ctx);
    weft_status status =
        scope ? weft__bench_compile(ctx, &product, dtype, parts, abc, &program) : WEFT_ERR_OOM;
    if (status == WEFT_OK)
        status = time_runs(ctx, program, 2.0 * (double)parts * (double)(n * n) * (double)n, out);
    if (status == WEFT_OK) status = find_error(ctx, n, abc, &out->error);
    weft_program_free(program);
    weft_scope_close(scope);
    return status;
}

/* ---- three loops ---- */

static void loop_row(int64_t n, const float *a, const float *b, float *c, int64_t i) {
    for (int64_t j = 0; j < n; j++) {
        float sum = 0;
        for (int64_t k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
        c[i * n + j] = sum;
    }
}

/* Times as many rows as fit into the time. The sampled rows are always computed. */
static weft_status measure_loops(int64_t n, row *out) {
    const size_t count = (size_t)(n * n);
    float *a = weft__array(NULL, 3 * count, sizeof *a);
    double *all = weft__array(NULL, 3 * count, sizeof *all);
    if (a && all) {
        float *b = a + count, *c = b + count;
        uint64_t state = 1;
        for (size_t i = 0; i < 2 * count; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            a[i] = (float)(state >> 40) * 0x1p-23F - 1;
        }
        const double from = weft__now();
        double took = 0;
        int64_t rows = 0;
        for (; rows < SAMPLED; rows++) loop_row(n, a, b, c, sampled_row(n, (int)rows));
        for (; rows < n && (took = weft__now() - from) < ENOUGH; rows++) loop_row(n, a, b, c, rows);
        took = weft__now() - from;
        out->median = out->best = 2.0 * (double)rows * (double)n * (double)n / took / 1e9;
        for (size_t i = 0; i < 3 * count; i++) all[i] = (double)a[i];
        out->error = error_of(n, all, all + count, all + 2 * count);
    }
    const weft_status status = a && all ? WEFT_OK : weft__fail_oom(NULL, 3 * count * sizeof *all, "matmuls");
    weft__free(NULL, a);
    weft__free(NULL, all);
    return status;
}

/* ---- processes ---- */

static void tell(int to, const void *what, size_t bytes) {
    if (write(to, what, bytes) != (ssize_t)bytes) _exit(WEFT__EXIT_IO);
}

static bool hear(int from, void *what, size_t bytes) {
    size_t got = 0;
    while (got < bytes) {
        const ssize_t more = read(from, (char *)what + got, bytes - got);
        if (more < 0 && errno == EINTR) continue;
        if (more <= 0) return false;
        got += (size_t)more;
    }
    return true;
}

static bool wanted(const asked *a, int i) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)size_of(i));
    return !a->only || strcmp(a->only, text) == 0;
}

/* Does all the work of the process of a variant, and sends head and rows to `to`. */
static weft_status work(variant *w, const asked *a, int to) {
    weft_context *ctx = NULL;
    const weft_open_options options = {.device = w->device ? w->device : a->device,
                                       .threads = a->threads,
                                       .seed = 1,
                                       .log = weft__show_log,
                                       .tf32 = a->tf32};
    weft_device_description device = {.detail = "one thread, f32"};
    if (w->matmul) setenv("WEFT_MATMUL", w->matmul, 1);
    if (!w->loops) WEFT_TRY(weft_open(&options, &ctx));
    if (ctx) weft_device_describe(ctx, &device);
    snprintf(w->head.device, sizeof w->head.device, "%s", ctx ? weft_device_of(ctx) : "cpu");
    snprintf(w->head.detail, sizeof w->head.detail, "%s", device.detail);
    w->head.works = !w->card || (strstr(device.detail, "BLASLt") && !strstr(device.detail, "no cuBLASLt") &&
                                 !strstr(device.detail, "no hipBLASLt"));
    if (!w->head.works)
        snprintf(w->head.detail, sizeof w->head.detail, "%s does not use its vendor's library",
                 w->head.device);
    tell(to, &w->head, sizeof w->head);
    weft_status status = WEFT_OK;
    for (int i = 0; i < SIZES && w->head.works && status == WEFT_OK; i++) {
        row r = {0};
        if (wanted(a, i))
            status = ctx ? bench_gemm_measure(ctx, a->dtype, size_of(i), &r) : measure_loops(size_of(i), &r);
        if (status == WEFT_OK) tell(to, &r, sizeof r);
    }
    if (status != WEFT_OK) weft__print(stderr, "weft: bench gemm: %s: %s\n", w->name, weft_last_error(ctx));
    weft_close(ctx);
    return WEFT_OK;
}

static weft_status run_variant(variant *w, const asked *a) {
    int ends[2], state;
    fflush(stdout);
    if (pipe(ends) != 0) return weft__fail(NULL, WEFT_ERR_IO, "pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0) return weft__fail(NULL, WEFT_ERR_IO, "fork: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        if (work(w, a, ends[1]) != WEFT_OK) {
            snprintf(w->head.detail, sizeof w->head.detail, "%s", weft_last_error(NULL));
            tell(ends[1], &w->head, sizeof w->head);
        }
        _exit(0);
    }
    close(ends[1]);
    if (!hear(ends[0], &w->head, sizeof w->head))
        snprintf(w->head.detail, sizeof w->head.detail, "it failed");
    for (int i = 0; i < SIZES && w->head.works && hear(ends[0], &w->rows[i], sizeof w->rows[i]); i++) {
    }
    close(ends[0]);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    return WEFT_OK;
}

/* ---- output ---- */

static void bench_gemm_print_json(const variant *w, const char *precision) {
    for (int i = 0; i < SIZES; i++)
        if (w->rows[i].median > 0)
            weft__print(
                stdout,
                "{\"workload\": \"gemm\", \"variant\": \"%s\", \"device\": \"%s\", \"dtype\": \"%s\", \"n\": "
                "%lld, "
                "\"gflops\": %.6g, \"gflops_best\": %.6g, \"error\": %.3g}\n",
                w->name, w->head.device, precision, (long long)size_of(i), w->rows[i].median, w->rows[i].best,
                w->rows[i].error);
}

static void print_table(const variant *variants, size_t count, const asked *a) {
    weft__print(stdout, "%6s", "n");
    for (size_t k = 0; k < count; k++) weft__print(stdout, "  %9s %8s", variants[k].name, "error");
    weft__print(stdout, "   GFLOPS, and the largest error relative to the largest result\n");
    for (int i = 0; i < SIZES; i++) {
        if (!wanted(a, i)) continue;
        weft__print(stdout, "%6lld", (long long)size_of(i));
        for (size_t k = 0; k < count; k++) {
            const row *r = &variants[k].rows[i];
            if (r->median > 0)
                weft__print(stdout, "  %9.1f %8.1e", r->median, r->error);
            else
                weft__print(stdout, "  %9s %8s", "-", "-");
        }
        weft__print(stdout, "\n");
    }
    for (size_t k = 0; k < count; k++)
        weft__print(stdout, "%-8s %s: %s\n", variants[k].name,
                    variants[k].head.works ? variants[k].head.device : "none", variants[k].head.detail);
}

static bool dtype_of(const char *name, weft_dtype *dtype) {
    static const weft_dtype known[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *dtype = known[i];
        if (strcmp(weft_dtype_name(known[i]), name) == 0) return true;
    }
    return false;
}

int weft__bench_gemm(const char *device, const char *precision, int threads, const char *only, bool json) {
    variant variants[] = {{.name = "naive", .loops = true},
                          {.name = "library", .device = "cpu"},
                          {.name = "own", .matmul = "own"},
                          {.name = "vendor", .card = true}};
    enum { VARIANTS = sizeof variants / sizeof *variants };
    asked a = {.device = device, .threads = threads, .only = only};
    a.tf32 = strcmp(precision, "tf32") == 0;
    if (!dtype_of(a.tf32 ? "f32" : precision, &a.dtype)) {
        weft__complain("bench gemm: --precision %s: give f32, tf32, f64, f16 or bf16", precision);
        return WEFT__EXIT_USAGE;
    }
    weft_status status = WEFT_OK;
    for (size_t k = 0; k < VARIANTS && status == WEFT_OK; k++) {
        status = run_variant(&variants[k], &a);
        if (status == WEFT_OK && json) bench_gemm_print_json(&variants[k], precision);
    }
    if (status == WEFT_OK && !json) print_table(variants, VARIANTS, &a);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    return variants[2].head.works ? WEFT__EXIT_DONE : WEFT__EXIT_DEVICE;
}
