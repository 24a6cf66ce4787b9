/* weft demo device: tests one device, from memory to training steps. Compares each part with the CPU, and
 * prints a verdict. Must not know: how devices work. Read next: devices.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "cli/cli.h"
#include "cli/demo.h"
#include "train/run/progress.h"

enum { TRANSFER_FLOATS = 16 << 20, SMALL = 64, LARGE = 1024, STEPS = 30, BATCH = 64, IN = 256, OUT = 10 };
#define TOLERANCE    1e-4 /* relative to the largest value, or to the loss */
#define TIMED        0.15 /* seconds of each measurement */
#define MOST_SECONDS 2.0  /* a matmul that would take longer is skipped */

/* The results of one device. */
typedef struct side {
    weft_context *ctx;
    const char *name;
    double product_seconds, step_seconds;
    float *product; /* values of the last matmul */
    double loss[STEPS];
} side;

typedef struct demo {
    side device, cpu;
    bool quiet, wrong;
    /* speed of the device relative to the CPU: small and large matmul, step; 0: not measured */
    double times[3];
} demo;

static void say(const demo *d, const char *fmt, ...) WEFT_PRINTF(2, 3);
static void say(const demo *d, const char *fmt, ...) {
    va_list args;
    if (d->quiet) return;
    va_start(args, fmt);
    weft__vprint(stdout, fmt, args);
    va_end(args);
    fflush(stdout);
}

/* Reports what the device did wrong, and what helps. */
static void blame(demo *d, const char *what, double by) {
    weft__complain("demo device: %s: %s by %.2g: its driver computes wrongly: install a newer driver, or use "
                   "--device cpu; 'weft verify CONFIG --devices cpu,%s' names the first kernel that differs",
                   d->device.name, what, by, d->device.name);
    d->wrong = true;
}

static float value(int64_t i) { return (float)(i * 7919 % 1009 - 504) / 504; }

/* ---- memory ---- */

static weft_status transfers(weft_tensor *t, float *out, float *in, double seconds[2]) {
    weft_context *ctx = weft_context_of(t);
    const size_t bytes = TRANSFER_FLOATS * sizeof *out;
    for (int i = 0; i < 3; i++) {
        double from = weft__now();
        WEFT_TRY(weft_write(t, out, bytes));
        WEFT_TRY(weft_synchronize(ctx));
        const double up = weft__now() - from;
        from = weft__now();
        WEFT_TRY(weft_read(t, in, bytes));
        const double down = weft__now() - from;
        if (i == 0 || up < seconds[0]) seconds[0] = up;
        if (i == 0 || down < seconds[1]) seconds[1] = down;
    }
    return WEFT_OK;
}

static weft_status show_memory(demo *d) {
    const int64_t n = TRANSFER_FLOATS;
    const double mb = (double)TRANSFER_FLOATS * 4.0 / 0x1p20, gb = (double)TRANSFER_FLOATS * 4e-9;
    double seconds[2] = {0};
    float *out = weft__array(NULL, TRANSFER_FLOATS, sizeof *out),
          *in = weft__array(NULL, TRANSFER_FLOATS, sizeof *in);
    weft_status status = out && in ? WEFT_OK : weft__fail_oom(NULL, TRANSFER_FLOATS * 8, "a transfer");
    const double from = weft__now();
    weft_tensor *t =
        status == WEFT_OK ? weft_variable_new(d->device.ctx, "memory", WEFT_F32, 1, &n, NULL) : NULL;
    if (status == WEFT_OK) status = weft_tensor_status(t);
    if (status == WEFT_OK) status = weft_read(t, in, TRANSFER_FLOATS * sizeof *in);
    if (status == WEFT_OK)
        say(d, "%-19s %.0f MiB of zeros, read in %.0f ms\n", "allocated", mb, 1e3 * (weft__now() - from));
    for (int64_t i = 0; status == WEFT_OK && i < n && !d->wrong; i++)
        if (in[i] != 0) blame(d, "new memory differs from zeros", (double)fabsf(in[i]));
    for (int64_t i = 0; status == WEFT_OK && i < n; i++) out[i] = value(i);
    if (status == WEFT_OK) status = transfers(t, out, in, seconds);
    if (status == WEFT_OK) {
        const bool same = memcmp(in, out, TRANSFER_FLOATS * sizeof *out) == 0;
        say(d, "%-19s %.2f GB/s there, %.2f GB/s back: %s\n", "transferred", gb / seconds[0], gb / seconds[1],
            same ? "the same bytes" : "OTHER BYTES");
        for (int64_t i = 0; !same && i < n && !d->wrong; i++)
            if (in[i] != out[i])
                blame(d, "the bytes read back differ from the bytes sent", (double)fabsf(in[i] - out[i]));
    }
    weft_free(t);
    weft__free(NULL, out);
    weft__free(NULL, in);
    return status;
}

/* ---- matmuls ---- */

/* Measures the fastest of several runs, at least one. */
static weft_status time_runs(weft_context *ctx, weft_program *program, double *seconds) {
    int times = 1;
    for (double spent = 0; spent < TIMED;) {
        const double from = weft__now();
        for (int i = 0; i < times; i++) WEFT_TRY(weft_program_run(program));
        WEFT_TRY(weft_synchronize(ctx));
        const double took = weft__now() - from;
        if (spent == 0 || took / times < *seconds) *seconds = took / times;
        spent += took;
        if (took < TIMED / 10 && times < 4096) times *= 2;
    }
    return WEFT_OK;
}

static weft_status cli_demo_device_product(side *s, int64_t n, const float *values) {
    const int64_t shape[2] = {n, n};
    weft_program *program = NULL;
    weft_scope *scope = weft_scope_open(s->ctx);
    if (!scope) return weft__fail_oom(s->ctx, 0, "a scope");
    weft_tensor *a = weft_from(s->ctx, WEFT_F32, 2, shape, values),
                *b = weft_from(s->ctx, WEFT_F32, 2, shape, values + 1);
    weft_tensor *c = weft_keep(weft_matmul(a, b));
    weft_status status = weft_compile(&c, 1, NULL, NULL, 0, &program);
    if (status == WEFT_OK) status = weft_program_run(program); /* the first run is not timed */
    if (status == WEFT_OK) status = weft_synchronize(s->ctx);
    if (status == WEFT_OK) status = time_runs(s->ctx, program, &s->product_seconds);
    if (status == WEFT_OK) status = weft_read(c, s->product, (size_t)(n * n) * sizeof *s->product);
    weft_program_free(program);
    weft_free(c);
    weft_scope_close(scope);
    return status;
}

/* Returns the largest difference, relative to the largest value of b. NaN if any difference is NaN. */
static double difference(const float *a, const float *b, int64_t count) {
    double most = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = fmax(most, fabs((double)b[i]));
        if (!(d <= apart)) apart = d;
        if (isnan(d)) return d;
    }
    return apart / most;
}

static weft_status show_product(demo *d, int64_t n, const float *values, double *times) {
    const double gflop = 2e-9 * (double)(n * n) * (double)n;
    char what[64], name[32];
    snprintf(name, sizeof name, "%lld x %lld matmul", (long long)n, (long long)n);
    WEFT_TRY(cli_demo_device_product(&d->device, n, values));
    WEFT_TRY(cli_demo_device_product(&d->cpu, n, values));
    const double apart = difference(d->device.product, d->cpu.product, n * n);
    *times = d->cpu.product_seconds / d->device.product_seconds;
    say(d, "%-19s %.1f GFLOP/s, the CPU %.1f; values differ by %.1g of the largest\n", name,
        gflop / d->device.product_seconds, gflop / d->cpu.product_seconds, apart);
    snprintf(what, sizeof what, "a matmul of %lld x %lld differs", (long long)n, (long long)n);
    if (!(apart <= TOLERANCE)) blame(d, what, apart);
    return WEFT_OK;
}

static weft_status show_products(demo *d) {
    const size_t count = (size_t)LARGE * LARGE;
    float *values = weft__array(NULL, count + 1, sizeof *values);
    d->device.product = weft__array(NULL, count, sizeof *values);
    d->cpu.product = weft__array(NULL, count, sizeof *values);
    weft_status status = values && d->device.product && d->cpu.product
                             ? WEFT_OK
                             : weft__fail_oom(NULL, 3 * count * sizeof *values, "a matmul");
    for (size_t i = 0; status == WEFT_OK && i <= count; i++) values[i] = value((int64_t)i);
    if (status == WEFT_OK) status = show_product(d, SMALL, values, &d->times[0]);
    const double longer = pow((double)LARGE / (double)SMALL, 3) * d->device.product_seconds;
    if (status == WEFT_OK && !d->wrong && longer > MOST_SECONDS)
        say(d, "%d x %d matmul is left out: it would take %.0f seconds\n", LARGE, LARGE, longer);
    else if (status == WEFT_OK && !d->wrong)
        status = show_product(d, LARGE, values, &d->times[1]);
    weft__free(NULL, values);
    return status;
}

/* ---- training ---- */

static weft_status train(side *s) {
    float x[BATCH * IN];
    int32_t y[BATCH];
    for (int i = 0; i < BATCH * IN; i++) x[i] = value(i);
    for (int i = 0; i < BATCH; i++) y[i] = i % OUT;
    weft_seed(s->ctx, 1, 0);
    weft_module *net = weft_nn_mlp(s->ctx, (int64_t[]){IN, 128, 128, OUT}, 4, NULL);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 1e-3});
    weft_status status = WEFT_OK;
    for (int i = 0; i < STEPS && status == WEFT_OK; i++) {
        weft_scope *scope = weft_scope_open(s->ctx);
        if (!scope) return weft__fail_oom(s->ctx, 0, "a scope");
        const double from = weft__now();
        weft_tensor *loss =
            weft_cross_entropy(weft_forward(net, weft_from(s->ctx, WEFT_F32, 2, (int64_t[]){BATCH, IN}, x)),
                               weft_from(s->ctx, WEFT_I32, 1, (int64_t[]){BATCH}, y), NULL);
        status = weft_optimizer_step(adam, loss);
        if (status == WEFT_OK) s->loss[i] = weft_item(loss);
        const double took = weft__now() - from;
        if (i == 1 || (i > 1 && took < s->step_seconds)) s->step_seconds = took; /* the first step compiles */
        weft_scope_close(scope);
    }
    weft_optimizer_free(adam);
    weft_module_free(net);
    return status;
}

static weft_status show_training(demo *d) {
    double apart = 0;
    WEFT_TRY(train(&d->device));
    WEFT_TRY(train(&d->cpu));
    for (int i = 0; i < STEPS; i++) {
        const double by = fabs(d->device.loss[i] - d->cpu.loss[i]) / fmax(fabs(d->cpu.loss[i]), 1e-6);
        if (!(by <= apart)) apart = by;
    }
    d->times[2] = d->cpu.step_seconds / d->device.step_seconds;
    say(d, "%-19s %.3f ms, the CPU %.3f; losses of %d steps, %.4f to %.4f, differ by %.1g\n", "training step",
        1e3 * d->device.step_seconds, 1e3 * d->cpu.step_seconds, STEPS, d->device.loss[0],
        d->device.loss[STEPS - 1], apart);
    if (!(apart <= TOLERANCE)) blame(d, "the losses of training steps differ", apart);
    return WEFT_OK;
}

/* ---- the whole test ---- */

static weft_status open_sides(demo *d, const char *device) {
    const double from = weft__now();
    WEFT_TRY(
        weft_open(&(weft_open_options){.device = device, .seed = 1, .log = weft__show_log}, &d->device.ctx));
    weft_device_description description;
    weft_device_describe(d->device.ctx, &description);
    d->device.name = weft_device_of(d->device.ctx);
    say(d, "%s: %s\n%-19s in %.0f ms\n", d->device.name, description.detail ? description.detail : "",
        "opened", 1e3 * (weft__now() - from));
    return weft_open(&(weft_open_options){.device = "cpu", .seed = 1, .log = weft__show_log}, &d->cpu.ctx);
}

int weft__demo_device(const char *device, bool quiet) {
    demo d = {.quiet = quiet};
    weft_status status = open_sides(&d, device);
    if (status == WEFT_OK) status = show_memory(&d);
    if (status == WEFT_OK && !d.wrong) status = show_products(&d);
    if (status == WEFT_OK && !d.wrong) status = show_training(&d);
    int code = status != WEFT_OK ? weft__give_up(d.device.ctx, status)
               : d.wrong         ? WEFT__EXIT_FAILED
                                 : WEFT__EXIT_DONE;
    if (code == WEFT__EXIT_DONE && d.times[1] > 0)
        say(&d,
            "%s works: matmuls of size %d at %.2g times the CPU's speed, small training steps at %.2g "
            "times\n",
            d.device.name, LARGE, d.times[1], d.times[2]);
    else if (code == WEFT__EXIT_DONE)
        say(&d, "%s works: small training steps at %.2g times the CPU's speed\n", d.device.name, d.times[2]);
    else if (d.device.name)
        say(&d, "%s does not work\n", d.device.name);
    weft__free(NULL, d.device.product);
    weft__free(NULL, d.cpu.product);
    weft_close(d.device.ctx);
    weft_close(d.cpu.ctx);
    return code;
}
