/* A pool of threads, see thread_pool.h. Between runs a thread first spins for a while, then it sleeps. In a
 * training loop the next step usually follows at once.
 * Must not know: programs. Read next: chunks.c, docs/design/015-own-thread-pool.md. */
#include <stdatomic.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/threads.h"
#include "device/cpu/run.h"
#include "device/cpu/thread_pool.h"

#define SPIN_NS 1e6 /* how long a thread spins before it sleeps */
enum { SPINS_A_LOOK = 64, SPINS_CROWDED = 2000 };

typedef struct worker {
    weft_thread_pool *pool;
    pthread_t thread;
    int index;      /* 1 to size - 1 */
    uint64_t round; /* the last run that the worker has seen */
} worker;

struct weft_thread_pool {
    weft_context *ctx;
    int size;       /* threads of a run, including the caller's */
    int processors; /* available to this process */
    int forks;      /* weft__forks() when the threads were started */
    void (*task)(void *user, int thread, int threads);
    void *user;
    _Atomic uint64_t round; /* runs begun */
    _Atomic int working;    /* workers that have not finished this run */
    pthread_mutex_t lock;
    pthread_cond_t wake, over;
    int asleep;   /* workers that wait for `wake`, under the lock */
    bool closing; /* under the lock */
    worker workers[];
};

/* Threads of all pools. If there are more threads than processors, a thread that spins keeps another one from
 * working. */
static _Atomic int all_threads;

/* ---- waiting ---- */

static bool has_begun(weft_thread_pool *p, uint64_t round) {
    return atomic_load_explicit(&p->round, memory_order_acquire) != round;
}

static bool is_over(weft_thread_pool *p, uint64_t round) {
    (void)round;
    return atomic_load_explicit(&p->working, memory_order_acquire) == 0;
}

/* Spins until is_so returns true, or until the time is up. Returns whether is_so became true. */
static bool spin_until(bool (*is_so)(weft_thread_pool *p, uint64_t round), weft_thread_pool *p,
                       uint64_t round) {
    const bool crowded = atomic_load_explicit(&all_threads, memory_order_relaxed) > p->processors;
    const double begin = weft__cpu_now_ns();
    for (int n = 1; !is_so(p, round); n++) {
        if (crowded ? n > SPINS_CROWDED : n % SPINS_A_LOOK == 0 && weft__cpu_now_ns() - begin > SPIN_NS)
            return false;
#if defined(__SSE2__)
        _mm_pause();
#endif
    }
    return true;
}

/* Waits for the next run. Returns false if the pool closes instead. */
static bool next_run(worker *w) {
    weft_thread_pool *p = w->pool;
    if (!spin_until(has_begun, p, w->round)) {
        pthread_mutex_lock(&p->lock);
        p->asleep++;
        while (!has_begun(p, w->round)) pthread_cond_wait(&p->wake, &p->lock);
        p->asleep--;
        pthread_mutex_unlock(&p->lock);
    }
    w->round++;
    return !p->closing;
}

/* Begins a run, or the end of the pool if `closing` is set. All workers see what was written before. */
static void begin_run(weft_thread_pool *p) {
    pthread_mutex_lock(&p->lock);
    atomic_store_explicit(&p->working, p->size - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->round, 1, memory_order_release);
    if (p->asleep) pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *user) {
    worker *w = user;
    weft_thread_pool *p = w->pool;
    while (next_run(w)) {
        p->task(p->user, w->index, p->size);
        if (atomic_fetch_sub_explicit(&p->working, 1, memory_order_acq_rel) > 1) continue;
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->over);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* ---- starting and ending ---- */

/* Starts the workers. p->size becomes smaller if the system grants fewer threads. */
static void cpu_thread_pool_start(weft_thread_pool *p) {
    p->forks = weft__forks();
    p->processors = weft__processors();
    p->asleep = 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->over, NULL);
    const uint64_t round = p->round;
    int n = 1;
    for (; n < p->size; n++) {
        p->workers[n - 1] = (worker){.pool = p, .index = n, .round = round};
        if (!weft__thread_start(&p->workers[n - 1].thread, work, &p->workers[n - 1])) break;
    }
    p->size = n;
    all_threads += n;
}

weft_thread_pool *weft__thread_pool_new(weft_context *ctx, int threads) {
    if (threads <= 0) threads = weft__default_threads();
    if (threads > WEFT__THREADS_MOST) threads = WEFT__THREADS_MOST;
    weft_thread_pool *p = weft__zalloc(ctx, sizeof *p + (size_t)threads * sizeof *p->workers);
    if (!p) return NULL;
    p->ctx = ctx;
    p->size = threads;
    cpu_thread_pool_start(p);
    return p;
}

void weft__thread_pool_free(weft_thread_pool *p) {
    if (!p) return;
    if (p->forks == weft__forks()) {
        p->closing = true;
        begin_run(p);
        for (int i = 1; i < p->size; i++) pthread_join(p->workers[i - 1].thread, NULL);
        pthread_cond_destroy(&p->over);
        pthread_cond_destroy(&p->wake);
        pthread_mutex_destroy(&p->lock);
    }
    all_threads -= p->size;
    weft__free(p->ctx, p);
}

/* ---- running ---- */

int weft__thread_pool_size(const weft_thread_pool *p) { return p->size; }

void weft__thread_pool_run(weft_thread_pool *p, void (*task)(void *user, int thread, int threads),
                           void *user) {
    if (p->forks != weft__forks()) {
        all_threads -= p->size;
        cpu_thread_pool_start(p);
    }
    p->task = task;
    p->user = user;
    begin_run(p);
    task(user, 0, p->size);
    if (spin_until(is_over, p, 0)) return;
    pthread_mutex_lock(&p->lock);
    while (!is_over(p, 0)) pthread_cond_wait(&p->over, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
