/* Runs training steps of networks of many sizes on several devices. Prints the measured time and the price of
 * each, and how often the cheapest device was the fastest.
 *
 *     build/bench_crossover [--json] [DEVICES]     such as cpu@1,cpu: the CPU with one thread, and with all
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "compiler/profile/price.h"
#include "device/device.h"

enum { SIDES = 4, OUTPUTS = 10, DEEPEST = 8, BLOCKS = 5 };
#define CELL_SECONDS 0.06 /* seconds of timed steps, on each device */
/* a device that is slower by at most this factor counts as right, because the next measurement may differ */
#define NEAR 1.1

static const int64_t batches[] = {1, 16, 128, 1024}, widths[] = {8, 64, 256, 1024}, depths[] = {1, 4};

typedef struct side {
    char spec[64]; /* such as "cpu@1": one thread */
    int threads;
    weft_context *ctx;
    weft__rates rates;
} side;

typedef struct cell {
    int64_t batch, width, depth;
    bool uploads; /* each step uploads its batch and reads its loss; otherwise steps are queued */
    double measured[SIDES], priced[SIDES]; /* seconds per step */
} cell;

/* ---- one net on one device ---- */

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *optimizer;
    weft_program *program;
    weft_tensor *x, *y, *loss;
    float *data;
    int32_t *classes;
} net;

static weft_status open_net(weft_context *ctx, const cell *c, net *n) {
    int64_t sizes[DEEPEST + 2];
    *n = (net){.ctx = ctx};
    n->data = weft__array(NULL, (size_t)(c->batch * c->width), sizeof *n->data);
    n->classes = weft__array(NULL, (size_t)c->batch, sizeof *n->classes);
    if (!n->data || !n->classes) return weft__fail_oom(NULL, 0, "a batch");
    for (int64_t i = 0; i < c->batch * c->width; i++) n->data[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int64_t i = 0; i < c->batch; i++) n->classes[i] = (int32_t)(i % OUTPUTS);
    for (int64_t i = 0; i <= c->depth; i++) sizes[i] = c->width;
    sizes[c->depth + 1] = OUTPUTS;
    n->module = weft_nn_mlp(ctx, sizes, (int)c->depth + 2, NULL);
    n->optimizer = weft_adam(n->module, &(weft_adam_options){.lr = 1e-3});
    n->x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){c->batch, c->width}, n->data);
    n->y = weft_from(ctx, WEFT_I32, 1, &c->batch, n->classes);
    n->loss = weft_keep(weft_cross_entropy(weft_forward(n->module, n->x), n->y, NULL));
    return weft_optimizer_hold(n->optimizer, n->loss, &n->program);
}

static void close_net(net *n) {
    weft_program_free(n->program);
    weft_free(n->loss);
    weft_optimizer_free(n->optimizer);
    weft_module_free(n->module);
    weft__free(NULL, n->data);
    weft__free(NULL, n->classes);
}

static weft_status step(const net *n, const cell *c) {
    if (!c->uploads) return weft_optimizer_run(n->optimizer, n->program);
    WEFT_TRY(weft_write(n->x, n->data, (size_t)(c->batch * c->width) * sizeof *n->data));
    WEFT_TRY(weft_write(n->y, n->classes, (size_t)c->batch * sizeof *n->classes));
    WEFT_TRY(weft_optimizer_run(n->optimizer, n->program));
    return isnan(weft_item(n->loss)) ? weft_last_status(n->ctx) : WEFT_OK;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static weft_status time_steps(const net *n, const cell *c, int64_t steps, double *seconds) {
    const double from = now();
    for (int64_t i = 0; i < steps; i++) WEFT_TRY(step(n, c));
    WEFT_TRY(weft_synchronize(n->ctx));
    *seconds = (now() - from) / (double)steps;
    return WEFT_OK;
}

/* Measures the fastest of several blocks of steps, because other work of the machine only adds time. */
static weft_status measure(side *s, int k, cell *c) {
    net n;
    double seconds = 0;
    weft_scope *scope = weft_scope_open(s->ctx);
    weft_status status = scope ? open_net(s->ctx, c, &n) : weft__fail_oom(s->ctx, 0, "a scope");
    /* the first step compiles */
    for (int i = 0; i < 2 && status == WEFT_OK; i++) status = time_steps(&n, c, 1, &seconds);
    const double wanted = ceil(CELL_SECONDS / (double)BLOCKS / (seconds + 1e-9));
    const int64_t steps = wanted > 1000 ? 1000 : (int64_t)wanted;
    for (int b = 0; b < BLOCKS && status == WEFT_OK; b++) {
        status = time_steps(&n, c, steps, &seconds);
        if (b == 0 || seconds < c->measured[k]) c->measured[k] = seconds;
    }
    if (scope) close_net(&n);
    weft_scope_close(scope);
    return status;
}

/* Prices one step for each device. The step is planned on the device `null`. */
static weft_status price(weft_context *plan, const side *sides, int n_sides, cell *c) {
    net n;
    weft_profile *profile = NULL;
    weft_scope *scope = weft_scope_open(plan);
    weft_status status = scope ? open_net(plan, c, &n) : weft__fail_oom(plan, 0, "a scope");
    if (status == WEFT_OK) status = weft_profile_start(plan, NULL, &profile);
    if (status == WEFT_OK) status = step(&n, c);
    for (int k = 0; k < n_sides && status == WEFT_OK; k++)
        c->priced[k] = weft__price(profile, &sides[k].rates);
    weft_profile_free(profile);
    if (scope) close_net(&n);
    weft_scope_close(scope);
    return status;
}

/* ---- output ---- */

static int cheapest(const double *seconds, int count) {
    int best = 0;
    for (int k = 1; k < count; k++)
        if (seconds[k] < seconds[best]) best = k;
    return best;
}

typedef struct tally {
    int cells, exact, near;
} tally;

static void show(const cell *c, const side *sides, int n, bool json, tally *t) {
    const int fastest = cheapest(c->measured, n), chosen = cheapest(c->priced, n);
    const bool near = c->measured[chosen] <= NEAR * c->measured[fastest];
    t->cells++;
    t->exact += fastest == chosen;
    t->near += near;
    printf(json ? "{\"batch\": %lld, \"width\": %lld, \"depth\": %lld, \"data\": \"%s\""
                : "%5lld %5lld %5lld  %-8s",
           (long long)c->batch, (long long)c->width, (long long)c->depth,
           c->uploads ? "uploaded" : "resident");
    for (int k = 0; k < n; k++)
        printf(json ? ", \"%s\": {\"seconds\": %.4g, \"priced\": %.4g}" : "%.0s %10.1f %10.1f",
               json ? sides[k].spec : "", (json ? 1 : 1e6) * c->measured[k], (json ? 1 : 1e6) * c->priced[k]);
    printf(json ? ", \"fastest\": \"%s\", \"chosen\": \"%s\", \"right\": %s}\n" : "  %-9s %-9s %s\n",
           sides[fastest].spec, sides[chosen].spec,
           json   ? near ? "true" : "false"
           : near ? ""
                  : "WRONG");
    fflush(stdout);
}

static void head(const side *sides, int n) {
    printf("microseconds a step, measured and estimated\nbatch width depth  data    ");
    for (int k = 0; k < n; k++) printf(" %10s %10s", sides[k].spec, "price");
    printf("  %-9s %-9s\n", "fastest", "chosen");
}

/* ---- all sizes ---- */

static weft_status open_side(side *s) {
    char name[sizeof s->spec];
    memcpy(name, s->spec, sizeof name);
    char *at = strchr(name, '@');
    if (at) {
        *at = '\0';
        s->threads = (int)strtol(at + 1, NULL, 10);
        if (s->threads < 1 || s->threads > 4096)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "%s: give a number of threads after the @, as in cpu@4", s->spec);
    }
    return weft_open(&(weft_open_options){.device = name, .threads = s->threads, .seed = 1}, &s->ctx);
}

static weft_status run_cells(side *sides, int n, weft_context *plan, bool json, tally *t) {
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        for (int k = 0; k < n; k++) /* measured several times, because machines change their speed */
            WEFT_TRY(weft__rates_measure(sides[k].ctx, &sides[k].rates));
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
                for (int up = 0; up < 2; up++) {
                    cell c = {batches[b], widths[w], depths[d], up, {0}, {0}};
                    WEFT_TRY(price(plan, sides, n, &c));
                    for (int k = 0; k < n; k++) WEFT_TRY(measure(&sides[k], k, &c));
                    show(&c, sides, n, json, t);
                }
    }
    return WEFT_OK;
}

int main(int argc, char **argv) {
    side sides[SIDES];
    weft_context *plan = NULL;
    tally t = {0, 0, 0};
    int n = 0;
    const bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *list = argc > 1 + json ? argv[1 + json] : "cpu@1,cpu";
    memset(sides, 0, sizeof sides);
    weft_status status = weft_open(&(weft_open_options){.device = "null", .seed = 1}, &plan);
    while (status == WEFT_OK && n < SIDES && weft__device_next(&list, sides[n].spec, sizeof sides[n].spec))
        status = open_side(&sides[n++]);
    if (status == WEFT_OK && !json) head(sides, n);
    if (status == WEFT_OK) status = run_cells(sides, n, plan, json, &t);
    if (status == WEFT_OK)
        printf(json ? "{\"cells\": %d, \"fastest_chosen\": %d, \"right\": %d}\n"
                    : "of %d cases, the fastest device was chosen in %d, and one that is at most a tenth "
                      "slower in %d\n",
               t.cells, t.exact, t.near);
    else
        fprintf(stderr, "bench_crossover: %s\n", weft_last_error(NULL));
    for (int k = 0; k < n; k++) weft_close(sides[k].ctx);
    weft_close(plan);
    return status == WEFT_OK ? 0 : 1;
}
