/* Exchanges that go on while a program runs: a thread of its own adds up what the program has handed to it.
 * The processes start their exchanges at different times, so each thread takes them in the order of their
 * numbers, which is the same everywhere. Must not know: programs. Read next: sum.c, device/device.h. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "process/group.h"

typedef enum job_state { JOB_NONE, JOB_STARTED, JOB_ENDED } job_state;

typedef struct exchange_job {
    job_state state;
    weft_heavy_exchange what;
    const void *in;
    void *out; /* the numbers themselves, unless `what` has a part or gathers */
} exchange_job;

struct weft__exchange {
    weft_exchanger base;
    weft_process_group *group;
    pthread_t thread;
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t started, ended;
    exchange_job *jobs; /* by number */
    int capacity;
    int next; /* the number of the exchange that comes next */
    bool closing;
    weft_status status; /* of the first exchange that failed */
    char error[WEFT_ERROR_SIZE];
};

/* ---- the thread ---- */

static bool is_ready(const struct weft__exchange *x) {
    return x->next < x->capacity && x->jobs[x->next].state == JOB_STARTED;
}

static weft_status exchange_make(weft_process_group *g, const exchange_job *job) {
    const weft_dtype dtype = (weft_dtype)job->what.dtype;
    const size_t n = (size_t)job->what.n, part = (size_t)job->what.part;
    if (job->what.gather) return weft__process_group_gather(g, job->in, job->out, n * weft_dtype_size(dtype));
    return part ? weft__process_group_scatter(g, job->in, job->out, dtype, n, part)
                : weft_process_group_all_reduce(g, job->out, dtype, n, job->what.exact);
}

/* The processes run the same programs in turn, so a new one is new in all of them. */
weft_status weft__process_group_compare_order(weft_process_group *g, const weft_heavy_exchange *what) {
    if (what->number > 0 || what->order == 0) return WEFT_OK;
    for (size_t i = 0; i < g->n_orders; i++)
        if (g->orders[i] == what->order) return WEFT_OK;
    if (!weft__grow(NULL, &g->orders, &g->order_capacity, g->n_orders, sizeof *g->orders))
        return weft__fail_oom(NULL, g->n_orders * sizeof *g->orders, "a list of programs");
    g->orders[g->n_orders++] = what->order;
    return weft__process_group_same(g, "a program that exchanges other numbers",
                                    (weft_hash){.a = what->order},
                                    "let all processes run the same steps and evaluations in the same order");
}

/* Makes the next exchange. The lock is held, but not while the processes exchange. After a failure nothing is
 * exchanged any more. */
static void make_next(struct weft__exchange *x) {
    const exchange_job job = x->jobs[x->next];
    weft_process_group *g = x->group;
    const double from = weft__process_group_now();
    if (x->status == WEFT_OK) {
        g->beside = true;
        pthread_mutex_unlock(&x->lock);
        weft_status status = weft__process_group_compare_order(g, &job.what);
        if (status == WEFT_OK) status = exchange_make(g, &job);
        pthread_mutex_lock(&x->lock);
        g->beside = false;
        x->status = status;
        if (status != WEFT_OK) snprintf(x->error, sizeof x->error, "%s", weft_last_error(NULL));
    }
    g->hidden += weft__process_group_now() - from;
    x->jobs[x->next].state = JOB_ENDED;
    x->next = job.what.number + 1 == job.what.count ? 0 : x->next + 1;
    pthread_cond_broadcast(&x->ended);
}

static void *exchange_thread(void *user) {
    struct weft__exchange *x = user;
    pthread_mutex_lock(&x->lock);
    while (!x->closing)
        if (is_ready(x))
            make_next(x);
        else
            pthread_cond_wait(&x->started, &x->lock);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* ---- what programs call ---- */

static void exchange_start(weft_exchanger *base, const weft_heavy_exchange *what, const void *in, void *out) {
    struct weft__exchange *x = (struct weft__exchange *)base;
    pthread_mutex_lock(&x->lock);
    x->jobs[what->number] = (exchange_job){JOB_STARTED, *what, in, out};
    pthread_cond_signal(&x->started);
    pthread_mutex_unlock(&x->lock);
}

static bool exchange_wait(weft_exchanger *base, int number) {
    struct weft__exchange *x = (struct weft__exchange *)base;
    const double from = weft__process_group_now();
    pthread_mutex_lock(&x->lock);
    atomic_store(&x->group->awaited, true);
    while (x->jobs[number].state != JOB_ENDED) pthread_cond_wait(&x->ended, &x->lock);
    atomic_store(&x->group->awaited, false);
    x->jobs[number].state = JOB_NONE;
    x->group->waited += weft__process_group_now() - from;
    x->group->hidden -= weft__process_group_now() - from;
    const bool good = x->status == WEFT_OK;
    pthread_mutex_unlock(&x->lock);
    return good;
}

static weft_status exchange_failed(const weft_exchanger *base) {
    const struct weft__exchange *x = (const struct weft__exchange *)base;
    return weft__fail(NULL, x->status, "%s", x->error);
}

/* ---- opening and closing ---- */

/* No exchange is under way while a program is built. */
static weft_status exchange_reserve(weft_exchanger *base, int count) {
    struct weft__exchange *x = (struct weft__exchange *)base;
    if (count <= x->capacity) return WEFT_OK;
    exchange_job *jobs = weft__array(NULL, (size_t)count, sizeof *jobs), *old = x->jobs;
    if (!jobs) return weft__fail_oom(NULL, (size_t)count * sizeof *jobs, "a list of exchanges");
    pthread_mutex_lock(&x->lock);
    x->jobs = jobs;
    x->capacity = count;
    pthread_mutex_unlock(&x->lock);
    weft__free(NULL, old);
    return WEFT_OK;
}

weft_status weft__process_group_exchanger(weft_process_group *g, weft_exchanger **exchanger) {
    struct weft__exchange *x = g->exchange;
    if (!x) {
        x = weft__array(NULL, 1, sizeof *x);
        if (!x) return weft__fail_oom(NULL, sizeof *x, "a thread for exchanges");
        x->base = (weft_exchanger){exchange_reserve, exchange_start, exchange_wait, exchange_failed};
        x->group = g;
        pthread_mutex_init(&x->lock, NULL);
        pthread_cond_init(&x->started, NULL);
        pthread_cond_init(&x->ended, NULL);
        if (!weft__thread_start(&x->thread, exchange_thread, x)) {
            weft__free(NULL, x);
            return weft__fail(NULL, WEFT_ERR_OOM, "the system cannot start a thread for exchanges");
        }
        g->exchange = x;
    }
    *exchanger = &x->base;
    return WEFT_OK;
}

void weft__process_group_end_exchanges(weft_process_group *g) {
    struct weft__exchange *x = g->exchange;
    if (!x) return;
    pthread_mutex_lock(&x->lock);
    x->closing = true;
    pthread_cond_signal(&x->started);
    pthread_mutex_unlock(&x->lock);
    pthread_join(x->thread, NULL);
    pthread_cond_destroy(&x->started);
    pthread_cond_destroy(&x->ended);
    pthread_mutex_destroy(&x->lock);
    weft__free(NULL, x->jobs);
    weft__free(NULL, x);
    g->exchange = NULL;
}
