/* weft bench: times whole steps of a workload, and prints what the benchmark scripts of other libraries
 * print. Must not know: what a step does. Read next: bench_train.c, bench_ops.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "compiler/profile/profile.h"
#include "device/device.h"
#include "train/run/progress.h"

static const weft__workload workloads[] = {
    {"xor200", "2-8-1, batch 4, SGD, 200 epochs", 200, 0, 10, false, false, NULL, weft__bench_xor},
    {"xor10000", "the same, 10,000 epochs", 10000, 0, 100, false, false, NULL, weft__bench_xor},
    {"mlp", "784-512-512-10 on Fashion-MNIST, batch 128, Adam", 400, 20, 1, false, true, weft__bench_images,
     weft__bench_mlp},
    {"cnn", "two convolutions and two layers on Fashion-MNIST, batch 64, Adam", 150, 10, 1, false, true,
     weft__bench_images, weft__bench_cnn},
    {"resnet", "a residual network of 8 layers on Fashion-MNIST, batch 64, Adam", 60, 5, 1, false, true,
     weft__bench_images, weft__bench_resnet},
    {"resnet20", "a residual network of 20 layers on CIFAR-10 or images of that size, batch 128, Adam", 20, 3,
     1, false, true, weft__bench_color_images, weft__bench_resnet20},
    {"chargpt_small", "4 layers, 4 heads, width 128, context 64, batch 12, AdamW", 200, 5, 1, false, true,
     weft__bench_characters, weft__bench_chargpt_small},
    {"chargpt_big", "6 layers, 6 heads, width 384, context 256, batch 16, AdamW", 12, 2, 1, false, true,
     weft__bench_characters, weft__bench_chargpt_big},
    {"llama_small", "4 layers, 4 heads, 2 KV heads, width 128, context 64, batch 12, AdamW", 200, 5, 1, false,
     true, weft__bench_characters, weft__bench_llama_small},
    {"llama",
     "6 layers, width 256, 8 heads, 4 KV heads, context 256, batch 8, rotary, SwiGLU, tied head, AdamW", 12,
     2, 1, false, true, weft__bench_characters, weft__bench_llama},
    {"lstm", "embedding 256, 2 layers of 256, batch 32 streams, 64 steps, state carried, Adam", 40, 3, 1,
     false, true, weft__bench_characters, weft__bench_lstm},
    {"gpt2_b4t64", "GPT-2 124M, batch 4, context 64, AdamW", 10, 3, 1, false, true, weft__bench_tokens,
     weft__bench_gpt2},
    {"gpt2_b64t1024", "GPT-2 124M, batch 64, context 1024, AdamW, clipping; 30 GB in bf16", 10, 3, 1, false,
     true, weft__bench_long_tokens, weft__bench_gpt2_full},
    {"linreg", "linear regression, 1,000,000 x 32, full batch, SGD", 20, 1, 1, false, false,
     weft__bench_regression, weft__bench_linreg},
    {"logreg", "logistic regression, the same sizes", 20, 1, 1, false, false, weft__bench_regression,
     weft__bench_logreg},
    {"gd_small", "linear regression of 100 x 4 from JSON matrices, full batch, SGD", 1000, 0, 50, false,
     false, weft__bench_gd_small_data, weft__bench_linreg},
    {"matmul", "f32 matmuls of size 8 to 4096 and of layers, each in a program of up to 1,000", 0, 2, 1, true,
     false, NULL, weft__bench_matmuls},
    {"elementwise", "memory-bound elementwise expressions over 4096 x 4096, and AdamW's update", 9, 2, 1,
     true, false, NULL, weft__bench_elementwise},
    {"generate_chargpt", "200 tokens after 16, 6 layers, width 384, batch 1", 5, 1, 1, false, true, NULL,
     weft__bench_generate},
    {"generate_gpt2", "200 tokens after 16, GPT-2 124M, batch 1", 3, 1, 1, false, true, NULL,
     weft__bench_generate_gpt2},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

/* ---- timing ---- */

typedef struct timing {
    double least, median, total, cpu_over_wall, loss_first, loss_last;
    int64_t steps;
} timing;

/* Costs that are measured once, besides the steps. */
typedef struct costs {
    double started;        /* when the process started, by weft__now */
    double start, compile; /* seconds; NaN: not measured */
    double queued;         /* median seconds of a step, when one call runs many steps */
    /* median seconds of a step of an ordinary loop, for workloads that hold a program */
    double loop;
    double record, nodes;    /* nanoseconds per recorded node, and nodes of a step */
    double arena, plan, rss; /* megabytes */
} costs;

static double processor_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds, int64_t count) {
    qsort(seconds, (size_t)count, sizeof *seconds, ascending);
    return seconds[count / 2];
}

typedef weft_status (*step_fn)(weft__bench *bench);

/* Times steps in blocks. Writes the seconds of one part of a step into seconds[0..count). This function must
 * stay separate in the binary: tests/bench/test_instructions.sh counts the instructions below it. */
static __attribute__((noinline)) weft_status time_blocks(weft__bench *bench, step_fn step, double *seconds,
                                                         int64_t *count) {
    int64_t block = bench->workload->block, blocks = (bench->steps + block - 1) / block;
    int64_t parts = bench->parts ? bench->parts : 1;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t steps = b == blocks - 1 ? bench->steps - b * block : block;
        double from = weft__now();
        for (int64_t i = 0; i < steps; i++) WEFT_TRY(step(bench));
        WEFT_TRY(weft_synchronize(bench->ctx));
        seconds[b] = (weft__now() - from) / (double)(steps * parts);
    }
    *count = blocks;
    return WEFT_OK;
}

static double read_loss(weft__bench *bench) {
    double values[WEFT__PENDING];
    size_t count = 0;
    if (bench->loss) return weft_item(bench->loss);
    const weft_status status = weft__pending_read(&bench->loop_loss, values, &count);
    return status == WEFT_OK && count ? values[0] : (double)NAN;
}

static weft_status time_steps(weft__bench *bench, double *seconds, timing *t, costs *c) {
    int64_t count;
    WEFT_TRY(bench->step(bench));
    WEFT_TRY(weft_synchronize(bench->ctx));
    c->start = weft__now() - c->started;
    t->loss_first = read_loss(bench);
    for (int64_t i = 1; i < bench->warmup; i++) WEFT_TRY(bench->step(bench));
    WEFT_TRY(weft_synchronize(bench->ctx));
    double cpu = processor_seconds(), wall = weft__now();
    WEFT_TRY(time_blocks(bench, bench->step, seconds, &count));
    t->total = weft__now() - wall;
    t->cpu_over_wall = (processor_seconds() - cpu) / t->total;
    t->loss_last = read_loss(bench);
    t->median = median(seconds, count);
    t->least = seconds[0];
    t->steps = bench->steps;
    return WEFT_OK;
}

/* ---- what else a step costs ---- */

static void measure_memory(const weft__bench *bench, costs *c) {
    const weft_buffer *arena = bench->ctx->compiler->arena;
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_SELF, &usage);
    c->arena = arena ? (double)arena->bytes / 1048576 : 0;
    c->plan = (double)(bench->ctx->device->bytes_in_use + bench->data_bytes) / 1048576;
    c->rss = (double)usage.ru_maxrss / 1024;
}

/* Times the ordinary loop of a workload that holds a program. */
static weft_status measure_loop(weft__bench *bench, double *seconds, costs *c) {
    int64_t count;
    WEFT_TRY(weft__bench_loop(bench));
    WEFT_TRY(time_blocks(bench, weft__bench_loop, seconds, &count));
    c->loop = median(seconds, count);
    return WEFT_OK;
}

/* Times held steps that are run in a few calls, with bench->steps steps each. */
static weft_status measure_queued(weft__bench *bench, costs *c) {
    enum { CALLS = 5 };
    double seconds[CALLS];
    for (int i = 0; i < CALLS; i++) {
        double from = weft__now();
        WEFT_TRY(weft_optimizer_run_many(bench->optimizer, bench->program, (uint64_t)bench->steps));
        WEFT_TRY(weft_synchronize(bench->ctx));
        seconds[i] = (weft__now() - from) / (double)bench->steps;
    }
    c->queued = median(seconds, CALLS);
    return WEFT_OK;
}

/* Times the compilation of a step: gradients, fusion, plan, and the device's form. */
static weft_status measure_compile(weft__bench *bench, costs *c) {
    weft_program *program;
    double from = weft__now();
    WEFT_TRY(weft_optimizer_hold(bench->optimizer, weft__bench_loss(bench), &program));
    c->compile = weft__now() - from;
    weft_program_free(program);
    return WEFT_OK;
}

/* Times the graph work of a step: records the graph, finds its program in the cache, and frees the graph. The
 * step does not run. */
static weft_status measure_recording(weft__bench *bench, costs *c) {
    enum { REPEATS = 25, BLOCK = 4 };
    double seconds[REPEATS];
    weft_context *ctx = bench->ctx;
    for (int i = 0; i < REPEATS; i++) {
        double from = weft__now();
        for (int k = 0; k < BLOCK; k++) {
            weft_walk *walk = NULL;
            weft_scope *scope = weft_scope_open(ctx);
            if (!scope) return weft__fail_oom(ctx, 0, "a scope");
            weft_tensor *loss = weft__bench_loss(bench);
            weft_status status = weft__walk(ctx, &loss, 1, NULL, 0, NULL, &walk);
            if (status == WEFT_OK) {
                weft__cache_find(ctx->compiler, walk->key);
                c->nodes = (double)walk->nodes;
            }
            weft_scope_close(scope);
            WEFT_TRY(status);
        }
        seconds[i] = (weft__now() - from) / (double)BLOCK;
    }
    c->record = median(seconds, REPEATS) / c->nodes * 1e9;
    return WEFT_OK;
}

/* Measures the other costs of a training step: its ordinary loop, its graph work, its compilation. */
static weft_status measure_costs(weft__bench *bench, double *seconds, costs *c) {
    measure_memory(bench, c);
    if (!bench->optimizer || bench->workload->lines) return WEFT_OK;
    if (bench->program) WEFT_TRY(measure_loop(bench, seconds, c));
    if (bench->program && bench->workload->block > 1) WEFT_TRY(measure_queued(bench, c));
    weft_scope *scope = weft_scope_open(bench->ctx); /* scope of the batch */
    if (!scope) return weft__fail_oom(bench->ctx, 0, "a scope");
    weft_status status = WEFT_OK;
    if (bench->loader) status = weft_loader_get(bench->loader, bench->position, &bench->batch);
    if (status == WEFT_OK) status = measure_recording(bench, c);
    if (status == WEFT_OK) status = measure_compile(bench, c);
    weft_scope_close(scope);
    return status;
}

/* ---- printing: one JSON line, or one line per value ---- */

typedef struct printer {
    bool json, first;
} printer;

static void put_text(printer *p, const char *key, const char *value) {
    if (p->json)
        weft__print(stdout, "%s\"%s\": \"%s\"", p->first ? "{" : ", ", key, value);
    else
        weft__print(stdout, "%-28s %s\n", key, value);
    p->first = false;
}

static void put_number(printer *p, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, isfinite(value) ? "%.6g" : p->json ? "null" : "-", value);
    if (p->json)
        weft__print(stdout, "%s\"%s\": %s", p->first ? "{" : ", ", key, text);
    else
        weft__print(stdout, "%-28s %s\n", key, text);
    p->first = false;
}

/* Prints a number that not every workload has. */
static void put_known(printer *p, const char *key, double value) {
    if (!isnan(value)) put_number(p, key, value);
}

static const char *const recompute_words[] = {"none", "gelu", "norm", "block"}; /* by weft_recompute */

static void emit(const weft__bench *bench, const timing *t, const costs *c) {
    printer p = {bench->json, true};
    put_text(&p, "workload", bench->line_name[0] ? bench->line_name : bench->workload->name);
    put_text(&p, "peer", "weft");
    put_text(&p, "version", weft_version());
    put_number(&p, "threads", (double)bench->threads);
    put_text(&p, "device", weft_device_of(bench->ctx));
    put_text(&p, "dtype", bench->precision);
    if (bench->recompute) put_text(&p, "recompute", recompute_words[bench->recompute]);
    put_number(&p, "seconds_per_step_min", t->least);
    put_number(&p, "seconds_per_step_median", t->median);
    put_known(&p, "seconds_per_step_loop", c->loop);
    put_known(&p, "seconds_per_step_queued", c->queued);
    put_number(&p, "items_per_second", bench->items_per_step / t->median);
    put_number(&p, "seconds_total", t->total);
    put_number(&p, "steps", (double)t->steps);
    put_number(&p, "cpu_over_wall", t->cpu_over_wall);
    put_number(&p, "loss_first", t->loss_first);
    put_number(&p, "loss_last", t->loss_last);
    put_number(&p, "peak_rss_mb", c->rss);
    put_number(&p, "plan_mb", c->plan);
    put_number(&p, "arena_mb", c->arena);
    put_known(&p, "start_seconds", c->start);
    put_known(&p, "compile_seconds", c->compile);
    put_known(&p, "nodes", c->nodes);
    put_known(&p, "record_ns_per_node", c->record);
    if (bench->parts) put_number(&p, "matmuls", (double)bench->parts);
    if (bench->items) put_text(&p, "items", bench->items);
    if (bench->data_kind) put_text(&p, "data", bench->data_kind);
    if (bench->module) put_number(&p, "params", (double)weft_parameter_elements(bench->module, false));
    if (bench->flops > 0) put_number(&p, "gflops", bench->flops / t->median / 1e9);
    if (bench->flops > 0) put_number(&p, "gflops_best", bench->flops / t->least / 1e9);
    if (bench->bytes > 0) put_number(&p, "gb_per_s", bench->bytes / t->median / 1e9);
    if (bench->bytes > 0) put_number(&p, "gb_per_s_best", bench->bytes / t->least / 1e9);
    weft__print(stdout, bench->json ? "}\n" : "\n");
    fflush(stdout);
}

/* Runs the steps once more under the profiler, and prints the table of kernels. */
static weft_status profile_steps(weft__bench *bench) {
    weft_profile *profile = NULL;
    WEFT_TRY(weft_profile_start(bench->ctx, NULL, &profile));
    weft_status status = WEFT_OK;
    for (int64_t i = 0; i < bench->steps && status == WEFT_OK; i++) status = bench->step(bench);
    weft_profile_stop(profile);
    if (status == WEFT_OK) status = weft_profile_peaks(profile, NULL, NULL);
    if (status == WEFT_OK) status = weft__print_profile(profile, (uint64_t)bench->steps);
    weft_profile_free(profile);
    return status;
}

static void close_line(weft__bench *bench) {
    weft_context *ctx = bench->ctx;
    weft_program_free(bench->program);
    weft_loader_free(bench->loader);
    weft_decode_state_free(bench->cache);
    weft_corpus_free(bench->corpus);
    weft_array_free(ctx, &bench->x);
    weft_array_free(ctx, &bench->y);
    weft__free(ctx, bench->own_ids);
    weft_close(ctx);
}

/* Runs one line of a workload. Each line has its own context, so that lines do not share memory. `started` is
 * the time at which the process would have started for this line. WEFT_ERR_STATE: there are no more lines. */
static weft_status run_line(weft__bench bench, double started) {
    const double none = (double)NAN;
    timing t;
    costs c = {started, none, none, none, none, none, none, none, none, none};
    const weft_open_options options = {.device = bench.device,
                                       .threads = (int)bench.threads,
                                       .seed = 1,
                                       .log = weft__show_log,
                                       .allow_nondeterministic = bench.nondeterministic};
    WEFT_TRY(weft_open(&options, &bench.ctx));
    double from = weft__now();
    weft_status status = bench.workload->data ? bench.workload->data(&bench) : WEFT_OK;
    c.started += weft__now() - from;
    if (status == WEFT_OK) status = bench.workload->setup(&bench);
    bool wanted = status == WEFT_OK && bench.step;
    int64_t block = bench.workload->block;
    double *seconds = weft__array(NULL, (size_t)((bench.steps + block - 1) / block) + 1, sizeof *seconds);
    if (wanted && !seconds) status = weft__fail_oom(NULL, 0, "the times");
    if (wanted && status == WEFT_OK) status = time_steps(&bench, seconds, &t, &c);
    if (wanted && status == WEFT_OK) status = measure_costs(&bench, seconds, &c);
    if (wanted && status == WEFT_OK) emit(&bench, &t, &c);
    if (wanted && status == WEFT_OK && bench.profile) status = profile_steps(&bench);
    weft__free(NULL, seconds);
    close_line(&bench);
    return status;
}

static const weft__workload *find_workload(const char *name) {
    for (size_t i = 0; i < WORKLOADS; i++)
        if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
    return NULL;
}

/* Reads --recompute. */
static bool read_recompute(const char *word, weft__bench *bench) {
    for (int i = 0; i < (int)(sizeof recompute_words / sizeof *recompute_words); i++) {
        if (strcmp(word, recompute_words[i]) != 0) continue;
        bench->recompute = (weft_recompute)i;
        return i == 0 || (bench->workload->halves && strncmp(bench->workload->name, "generate", 8) != 0);
    }
    return false;
}

static bool has_precision(const weft__bench *bench) {
    weft_dtype dtype;
    if (!weft_dtype_parse(bench->precision, &dtype)) return false;
    return dtype == WEFT_F32 || (bench->workload->halves && (dtype == WEFT_BF16 || dtype == WEFT_F16));
}

static int usage(const char *name, const weft__bench *bench) {
    if (!bench->workload)
        weft__complain("bench: there is no workload %s: 'weft bench list' shows all", name);
    else if (!has_precision(bench))
        weft__complain("bench: --precision %s: %s computes in f32%s", bench->precision, name,
                       bench->workload->halves ? ", bf16 and f16" : " only");
    else
        weft__complain("bench: --steps must be 1 to 100000000, --threads 0 to 4096, --batch 0 to 1000000");
    return WEFT__EXIT_USAGE;
}

static int list(void) {
    for (size_t i = 0; i < WORKLOADS; i++)
        weft__print(stdout, "%-18s %s\n", workloads[i].name, workloads[i].about);
    weft__print(stdout, "%-18s %s\n", "gemm",
                "square matmuls by each available variant: their speed and error");
    return WEFT__EXIT_DONE;
}

static int64_t all_threads(void) {
    weft_device_description description;
    /* no weft_device_count: it would look for cards */
    for (int i = 0; weft_device_info(i, &description); i++)
        if (strcmp(description.name, "cpu") == 0) return description.threads;
    return 0;
}

int weft__command_bench(const weft__command *command, int argc, char **argv) {
    double started = weft__now() - processor_seconds(); /* loading the process took processor time only */
    const char *name = NULL, *recompute = "none";
    int code = 0;
    weft__bench bench = {.steps = -1, .warmup = -1, .precision = "f32"};
    const weft__option options[] = {
        {"WORKLOAD", WEFT__OPTION_ARG, &name, "name of the workload; 'list' shows all names"},
        {"--steps N", WEFT__OPTION_INT, &bench.steps, "steps to time"},
        {"--warmup N", WEFT__OPTION_INT, &bench.warmup, "steps before the timed ones"},
        {"--batch N", WEFT__OPTION_INT, &bench.batch_size, "samples in a step of mlp, cnn and the GPTs"},
        {"--precision P", WEFT__OPTION_TEXT, &bench.precision,
         "dtype of mlp, cnn and the GPTs: f32, bf16 or f16; gemm: also tf32 and f64; default: f32"},
        {"--recompute WHAT", WEFT__OPTION_TEXT, &recompute,
         "as train.recompute, for mlp, cnn and the GPTs: none, gelu, norm or block; default: none"},
        {"--threads N", WEFT__OPTION_INT, &bench.threads, "threads of the device; default: all"},
        WEFT__ANY_DEVICE_OPTION(&bench.device),
        {"--data DIR", WEFT__OPTION_TEXT, &bench.folder,
         "a folder with fashion-mnist/*.gz and tinyshakespeare.txt"},
        {"--only TEXT", WEFT__OPTION_TEXT, &bench.only,
         "workloads of several lines: lines whose name contains TEXT; gemm: only this size"},
        {"--json", WEFT__OPTION_FLAG, &bench.json, "print one JSON object per line"},
        {"--nondeterministic", WEFT__OPTION_FLAG, &bench.nondeterministic,
         "cuDNN may add the gradients of attention in any order (as train.deterministic: false)"},
        {"--profile", WEFT__OPTION_FLAG, &bench.profile,
         "then run as many steps again, and print the time by kernel"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (strcmp(name, "list") == 0) return list();
    if (strcmp(name, "gemm") == 0)
        return weft__bench_gemm(bench.device, bench.precision, (int)bench.threads, bench.only, bench.json);
    const weft__workload *workload = bench.workload = find_workload(name);
    if (!workload || !has_precision(&bench) || bench.threads > 4096 || bench.batch_size < 0 ||
        bench.batch_size > 1000000 || bench.steps == 0 || bench.steps > 100000000 || bench.warmup > 100000000)
        return usage(name, &bench);
    if (!read_recompute(recompute, &bench)) {
        weft__complain(
            "bench: --recompute %s: give none, gelu, norm or block; others than none need a workload "
            "that trains layers, such as mlp or chargpt_small",
            recompute);
        return WEFT__EXIT_USAGE;
    }
    if (bench.threads == 0) bench.threads = all_threads();
    if (bench.steps < 0) bench.steps = workload->steps;
    if (bench.warmup < 0) bench.warmup = workload->warmup;
    weft_status status = WEFT_OK;
    for (bench.variant = 0; status == WEFT_OK; bench.variant++) {
        status = run_line(bench, started);
        if (status == WEFT_ERR_STATE && workload->lines) return WEFT__EXIT_DONE;
        if (!workload->lines) break;
        started = weft__now();
    }
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}
