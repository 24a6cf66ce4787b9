/* Measures the rates of a device: samples of different sizes, timed once and kept on disk with the compiled
 * kernels. Must not know: programs. Read next: price.c. */
#define _DEFAULT_SOURCE /* getloadavg */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "compiler/profile/price.h"
#include "device/cache.h"

#define ENOUGH_NS 1e6 /* limit of one sample in one round; all samples take at most a tenth of a second */
#define BUSY      0.5 /* load for each processor, average of a minute */
#define LONG_NS   2e6 /* no larger sample follows one that took so long */
#define ALL_NS    3e7 /* no further round once all rounds but the first, which compiles, took so long */
enum {
    ROUNDS = 3,
    BUFFER_BYTES = 32 << 20,
    TRANSFER_BYTES = 4 << 20,
    MANY = 32,
    LEAST = 16,
    CALCULATED = 1 << 15
};

static const struct {
    int64_t n;
    int copies;
} products[WEFT__POINTS] = {{32, 32}, {128, 16}, {512, 2}, {1024, 1}},
  moves[WEFT__POINTS] = {{1 << 11, 32}, {1 << 15, 32}, {1 << 19, 8}, {1 << 23, 1}};

/* ---- the samples ---- */

enum {
    RUN_ONE,     /* a program of one command on LEAST elements, and waiting for it */
    RUN_MANY,    /* a program of 1 + MANY such commands */
    RUN_OFTEN,   /* RUN_ONE, submitted 1 + MANY times before waiting */
    READ_LITTLE, /* a download after all work is done */
    READ_MUCH,
    WRITE_LITTLE,
    WRITE_OFTEN,
    WRITE_MUCH,
    CALCULATE,
    PRODUCT,
    MOVE = PRODUCT + WEFT__POINTS,
    SAMPLES = MOVE + WEFT__POINTS
};

static weft_status time_read(weft__probe *p, void *to, size_t bytes, double *ns) {
    weft_device *device = p->ctx->device;
    for (int i = 0; i < 2; i++) { /* the second time, the data are in a cache, as after computing them */
        WEFT_TRY(device->ops->synchronize(device));
        const double from = weft__price_clock();
        WEFT_TRY(device->ops->download(device, p->buffer, 0, to, bytes));
        *ns = weft__price_clock() - from;
    }
    return WEFT_OK;
}

static weft_status time_writes(weft__probe *p, const void *from, size_t bytes, int times, double *ns) {
    weft_device *device = p->ctx->device;
    const double began = weft__price_clock();
    for (int i = 0; i < times; i++) WEFT_TRY(device->ops->upload(device, p->buffer, 0, from, bytes));
    WEFT_TRY(device->ops->synchronize(device));
    *ns = weft__price_clock() - began;
    return WEFT_OK;
}

static weft_status rates_take(weft__probe *p, int which, void *memory, double *ns) {
    switch (which) {
    case RUN_ONE: return weft__probe_move(p, LEAST, 1, 1, ns);
    case RUN_MANY: return weft__probe_move(p, LEAST, 1 + MANY, 1, ns);
    case RUN_OFTEN: return weft__probe_move(p, LEAST, 1, 1 + MANY, ns);
    case READ_LITTLE: return time_read(p, memory, sizeof(float), ns);
    case READ_MUCH: return time_read(p, memory, TRANSFER_BYTES, ns);
    case WRITE_LITTLE: return time_writes(p, memory, 64, 1, ns);
    case WRITE_OFTEN: return time_writes(p, memory, 64, 1 + MANY, ns);
    case WRITE_MUCH: return time_writes(p, memory, TRANSFER_BYTES, 1, ns);
    case CALCULATE: return weft__probe_calculation(p, CALCULATED, MANY, ns);
    default: break;
    }
    if (which < MOVE)
        return weft__probe_matmul(p, WEFT_F32, products[which - PRODUCT].n, products[which - PRODUCT].copies,
                                  ns);
    return weft__probe_move(p, moves[which - MOVE].n, moves[which - MOVE].copies, 1, ns);
}

/* Takes all samples in rounds and keeps the shortest time of each. So a short disturbance does not spoil all
 * times of one sample. */
static weft_status take_all(weft__probe *p, void *memory, double least[SAMPLES]) {
    double second = 0; /* the start of the second round */
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 1) second = weft__price_clock();
        if (round > 1 && weft__price_clock() - second > ALL_NS) break;
        for (int i = 0; i < SAMPLES; i++) {
            double ns = 0;
            const bool larger = i > PRODUCT && i != MOVE;
            if (larger && (least[i - 1] > LONG_NS || least[i - 1] == 0)) continue;
            WEFT_TRY(rates_take(p, i, memory, &ns));
            if (round == 0 || ns < least[i]) least[i] = ns;
        }
    }
    return WEFT_OK;
}

static double positive(double ns) { return ns > 0 ? ns : 0; }

/* The time of one command: the time of a program of `copies` commands without submitting and waiting, divided
 * by `copies`. At least the time of a launch. */
static weft__point point_of(const weft__rates *r, double size, double ns, int copies) {
    const double own = (ns - r->submit_ns - r->wait_ns) / copies;
    return (weft__point){ns > 0 ? size : 0, own > r->launch_ns ? own : r->launch_ns};
}

static void derive(const double ns[SAMPLES], weft__rates *r) {
    r->launch_ns = positive(ns[RUN_MANY] - ns[RUN_ONE]) / (double)MANY;
    r->submit_ns = positive((ns[RUN_OFTEN] - ns[RUN_ONE]) / (double)MANY - r->launch_ns);
    r->wait_ns = positive(ns[RUN_ONE] - r->launch_ns - r->submit_ns);
    if (ns[READ_LITTLE] > r->wait_ns) r->wait_ns = ns[READ_LITTLE];
    r->upload_ns = positive(ns[WRITE_OFTEN] - ns[WRITE_LITTLE]) / (double)MANY;
    r->upload_ns_a_byte = positive(ns[WRITE_MUCH] - ns[WRITE_LITTLE]) / (double)TRANSFER_BYTES;
    r->download_ns_a_byte = positive(ns[READ_MUCH] - ns[READ_LITTLE]) / (double)TRANSFER_BYTES;
    for (int i = 0; i < WEFT__POINTS; i++) {
        const double n = (double)products[i].n, bytes = 2 * sizeof(float) * (double)moves[i].n;
        r->products[i] = point_of(r, 2 * n * n * n, ns[PRODUCT + i], products[i].copies);
        r->moves[i] = point_of(r, bytes, ns[MOVE + i], moves[i].copies);
    }
    const weft__point calculated = point_of(r, CALCULATED, ns[CALCULATE], MANY);
    r->calculation_ns =
        positive(calculated.ns - r->moves[1].ns) / ((double)CALCULATED * (WEFT__PROBE_OPS - 1));
}

weft_status weft__rates_measure(weft_context *ctx, weft__rates *rates) {
    weft__probe probe;
    double least[SAMPLES] = {0};
    memset(rates, 0, sizeof *rates); /* it is stored as bytes, padding included */
    char *memory = weft__zalloc(ctx, TRANSFER_BYTES);
    weft_status status =
        memory ? weft__probe_open(ctx, BUFFER_BYTES, &probe) : weft__fail_oom(ctx, TRANSFER_BYTES, "samples");
    if (status == WEFT_OK) {
        probe.enough_ns = ENOUGH_NS;
        status = take_all(&probe, memory, least);
        weft__probe_close(&probe);
    }
    weft__free(ctx, memory);
    derive(least, rates);
    return status;
}

static bool rates_describe(const char *name, weft_device_description *found) {
    for (int i = 0; weft_device_info(i, found); i++)
        if (found->present && strcmp(found->name, name) == 0) return true;
    return false;
}

weft_hash weft__rates_key(const char *what, const weft_device_description *d, int threads) {
    struct utsname system;
    weft_hash key;
    if (uname(&system) != 0) memset(&system, 0, sizeof system);
    weft__hash_init(&key);
    weft__hash_str(&key, what);
    weft__hash_str(&key, weft_version());
    weft__hash_str(&key, d->name ? d->name : "");
    weft__hash_str(&key, d->detail ? d->detail : "");
    weft__hash_str(&key, system.nodename);
    weft__hash_str(&key, system.release);
    weft__hash_u64(&key, d->memory);
    weft__hash_u64(&key, (uint64_t)d->threads);
    weft__hash_u64(&key, (uint64_t)threads);
    return key;
}

static bool rates_load(weft_hash key, weft__rates *rates) {
    void *bytes = NULL;
    size_t size = 0;
    if (!weft__gpu_cache_load(NULL, key, &bytes, &size)) return false;
    const bool whole = size == sizeof *rates;
    if (whole) memcpy(rates, bytes, size);
    weft__free(NULL, bytes);
    return whole;
}

/* Is the machine busy with other work? Then a measurement is used now, but not kept. */
static bool is_busy(void) {
    double load = 0;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return getloadavg(&load, 1) == 1 && load > BUSY * (double)(processors > 0 ? processors : 1);
}

bool (*weft__price_busy)(void) = is_busy;

weft_status weft__rates_of(const char *spec, int threads, char name[64], weft__rates *rates) {
    weft_device_description d;
    weft_context *ctx = NULL;
    if (!rates_describe(spec, &d)) { /* the device has another name, so open it to learn its own */
        WEFT_TRY(weft_open(&(weft_open_options){.device = spec, .threads = threads}, &ctx));
        weft_device_describe(ctx, &d);
    }
    snprintf(name, 64, "%s", d.name);
    weft_hash key = weft__rates_key("rates", &d, threads);
    weft__hash_u64(&key, sizeof *rates);
    weft_status status = WEFT_OK;
    if (!rates_load(key, rates)) {
        if (!ctx) status = weft_open(&(weft_open_options){.device = name, .threads = threads}, &ctx);
        if (status == WEFT_OK) status = weft__rates_measure(ctx, rates);
        if (status == WEFT_OK && !weft__price_busy()) weft__gpu_cache_store(NULL, key, rates, sizeof *rates);
    }
    weft_close(ctx);
    return status;
}
