/* Reads the telemetry of a graphics card on a thread of its own. Asking a driver takes milliseconds, and no
 * step should wait for that. Must not know: which libraries answer. Read next: loop.c. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/threads.h"
#include "train/run/telemetry.h"

enum { PERIOD_MS = 500, TELEMETRY_VALUES = sizeof(weft_telemetry) / sizeof(double) };

typedef struct sums {
    double sum[TELEMETRY_VALUES];
    uint64_t count[TELEMETRY_VALUES];
} sums;

struct weft__telemetry {
    const weft_context *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stops;
    sums since, all;
};

static void telemetry_add(sums *s, const double *values) {
    for (int i = 0; i < TELEMETRY_VALUES; i++) {
        if (!isfinite(values[i])) continue;
        s->sum[i] += values[i];
        s->count[i]++;
    }
}

static weft_telemetry means(const sums *s) {
    weft_telemetry telemetry;
    double values[TELEMETRY_VALUES];
    for (int i = 0; i < TELEMETRY_VALUES; i++)
        values[i] = s->count[i] ? s->sum[i] / (double)s->count[i] : (double)NAN;
    memcpy(&telemetry, values, sizeof telemetry);
    return telemetry;
}

static bool read_once(weft__telemetry *g) {
    weft_telemetry telemetry;
    double values[TELEMETRY_VALUES];
    if (!weft_device_telemetry(g->ctx, &telemetry)) return false;
    memcpy(values, &telemetry, sizeof values);
    pthread_mutex_lock(&g->lock);
    telemetry_add(&g->since, values);
    telemetry_add(&g->all, values);
    pthread_mutex_unlock(&g->lock);
    return true;
}

static void *go(void *user) {
    weft__telemetry *g = user;
    struct timespec next;
    bool stops = false;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!stops) {
        next.tv_nsec += PERIOD_MS * 1000000L;
        if (next.tv_nsec >= 1000000000L) next.tv_sec++, next.tv_nsec -= 1000000000L;
        pthread_mutex_lock(&g->lock);
        while (!g->stops && pthread_cond_timedwait(&g->wake, &g->lock, &next) == 0) {
        }
        stops = g->stops;
        pthread_mutex_unlock(&g->lock);
        if (!stops) (void)read_once(g);
    }
    return NULL;
}

static void telemetry_drop(weft__telemetry *g) {
    pthread_cond_destroy(&g->wake);
    pthread_mutex_destroy(&g->lock);
    weft__free(NULL, g);
}

weft__telemetry *weft__telemetry_start(const weft_context *ctx) {
    weft__telemetry *g = weft__zalloc(NULL, sizeof *g);
    pthread_condattr_t monotonic;
    if (!g) return NULL;
    g->ctx = ctx;
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (read_once(g) && weft__thread_start(&g->thread, go, g)) return g;
    telemetry_drop(g);
    return NULL;
}

weft_telemetry weft__telemetry_take(weft__telemetry *g) {
    static const sums none;
    if (!g) return means(&none);
    pthread_mutex_lock(&g->lock);
    const weft_telemetry telemetry = means(&g->since);
    g->since = none;
    pthread_mutex_unlock(&g->lock);
    return telemetry;
}

weft_telemetry weft__telemetry_all(weft__telemetry *g) {
    static const sums none;
    if (!g) return means(&none);
    pthread_mutex_lock(&g->lock);
    const weft_telemetry telemetry = means(&g->all);
    pthread_mutex_unlock(&g->lock);
    return telemetry;
}

void weft__telemetry_stop(weft__telemetry *g) {
    if (!g) return;
    pthread_mutex_lock(&g->lock);
    g->stops = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    telemetry_drop(g);
}
