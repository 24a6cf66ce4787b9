/* Runs a program on the thread pool. Each run is one call of the pool, in which the threads claim chunks.
 *
 * - Tasks follow from shapes alone, so no bit depends on which thread runs which task.
 * - If the system takes a thread off its core, the others wait only if it has claimed a chunk. With barriers
 *   they would wait at each one.
 * - Each unit is divided into the same parts. A thread first claims chunks of its own part, since the rows
 *   that it wrote before are in its cache.
 *
 * Must not know: the inside of kernels. Read next: thread_pool.c. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "device/cpu/run.h"

#define POOL_COST_NS  25000.0 /* to wake and join the threads; cost estimates are high, too */
#define UNIT_COST_NS  3000.0  /* for all threads to reach a shared unit */
#define SHARED_GAIN   0.7     /* of the ideal gain: threads read what others wrote */
#define SHARE_COST_NS 4000.0  /* a cheaper item is not worth sharing */
#define CHUNK_COST_NS 2000.0  /* a cheaper chunk is not worth claiming */
enum { CHUNKS_A_THREAD = 4, SPINS = 2000, MOST_PARTS = 16 };

/* ---- units ---- */

static bool is_wide(const weft_cpu_item *x) { return x->work.tasks > 1 && x->work.cost_ns > SHARE_COST_NS; }

static int64_t chunks_of(const weft_executable *e, double cost_ns, int64_t parts) {
    int64_t most = (int64_t)(cost_ns / CHUNK_COST_NS), share = (int64_t)e->threads * CHUNKS_A_THREAD;
    if (share > most) share = most;
    if (share > parts) share = parts;
    return share > 0 ? share : 1;
}

/* Returns how many cheap items, from item i on, are independent of each other. *cost_ns is their total
 * cost. */
static int alike(const weft_executable *e, int i, double *cost_ns) {
    int n = 0;
    for (*cost_ns = 0; i + n < e->count; n++) {
        const weft_cpu_item *x = &e->items[i + n];
        if (is_wide(x) || x->sink || (n > 0 && x->after)) break;
        *cost_ns += x->work.cost_ns;
    }
    return n;
}

/* Returns whether sharing the units saves more than it costs. With 2 threads on 2 cores, this chose the
 * faster variant, or one within 10 % of it, for all networks of bench/crossover.c. */
static bool pays(const weft_executable *e) {
    double shared = 0, costs = POOL_COST_NS;
    for (int u = 0; u < e->n_units; u++) {
        if (e->units[u].chunks < 2) continue;
        costs += UNIT_COST_NS;
        for (int i = e->units[u].first; i <= e->units[u].last; i++) shared += e->items[i].work.cost_ns;
    }
    return SHARED_GAIN * (1 - 1 / (double)e->threads) * shared > costs;
}

/* Divides the program into units. A sink waits for all items before it, so that every thread knows their
 * faults. Consecutive cheap items form one unit. If there are many of them and they are independent, threads
 * share the unit. Otherwise one thread runs it in order. */
weft_status weft__cpu_chunks_build(weft_context *ctx, weft_executable *e) {
    size_t count = (size_t)e->count + 1;
    e->parts = e->threads < MOST_PARTS ? e->threads : MOST_PARTS;
    e->units = weft__array(ctx, count, sizeof *e->units);
    e->chunks = weft__alloc_aligned(ctx, count * (size_t)e->parts * sizeof *e->chunks);
    if (!e->units || !e->chunks)
        return weft__fail_oom(ctx, count * (size_t)e->parts * sizeof *e->chunks,
                              "a program of the cpu device");
    int64_t before = 0;
    bool inside = false; /* whether a later item of the last unit had to wait for an earlier one */
    bool open = false;   /* whether more cheap items may join the last unit */
    for (int i = 0, n = 1; i < e->count; i += n) {
        const weft_cpu_item *x = &e->items[i];
        double cost_ns;
        n = alike(e, i, &cost_ns);
        const bool wait = x->after || x->sink, shared = n > 1 && cost_ns > SHARE_COST_NS;
        if (open && n > 0 && !shared) {
            weft_cpu_unit *last = &e->units[e->n_units - 1];
            last->last = i + n - 1;
            last->wait = last->wait || wait;
            inside = inside || wait;
            continue;
        }
        int64_t chunks = shared       ? chunks_of(e, cost_ns, n)
                         : is_wide(x) ? chunks_of(e, x->work.cost_ns, x->work.tasks)
                                      : 1;
        open = n > 0 && !shared;
        if (n == 0) n = 1;
        e->units[e->n_units++] = (weft_cpu_unit){
            .first = i, .last = i + n - 1, .chunks = chunks, .before = before, .wait = wait || inside};
        before += chunks;
        inside = false;
    }
    if (!pays(e)) e->threads = 1;
    return WEFT_OK;
}

/* ---- running ---- */

typedef struct run_state {
    weft_cpu_device *device;
    weft_executable *executable;
    int times;
    _Atomic int64_t done;   /* chunks finished in this repetition */
    _Atomic int arrived;    /* threads that reached the end of this repetition */
    _Atomic int repetition; /* repetitions begun */
    pthread_mutex_t lock;   /* protects the device's fault and the two fields below */
    int fault_item;         /* item whose fault was recorded in this run; -1: the fault is older */
    int64_t fault_task;
} run_state;

/* Keeps the fault that comes first in the program, and within an item the one of the first task. So the
 * report does not depend on the number of threads. */
static void merge_fault(run_state *r, const weft_fault *fault, int item, int64_t task) {
    pthread_mutex_lock(&r->lock);
    bool earlier = item < r->fault_item || (item == r->fault_item && task < r->fault_task);
    if (!r->device->fault.set || earlier) {
        r->device->fault = *fault;
        r->fault_item = item;
        r->fault_task = task;
    }
    pthread_mutex_unlock(&r->lock);
}

/* Returns whether an item before sink `item` met a fault. All threads that share the sink get the same
 * answer: all earlier items are finished, and faults of later items do not count. */
static bool fault_before(run_state *r, int item) {
    pthread_mutex_lock(&r->lock);
    const bool answer = r->device->fault.set && r->fault_item < item;
    pthread_mutex_unlock(&r->lock);
    return answer;
}

/* Runs tasks begin..end-1 of item i. `fault` is empty on entry and on return. */
static void run_tasks(run_state *r, int i, int64_t begin, int64_t end, char *scratch, weft_fault *fault) {
    const weft_cpu_item *x = &r->executable->items[i];
    if (x->sink && fault_before(r, i)) return;
    x->work.run(x->work.plan, x->args, begin, end, scratch, fault);
    if (!fault->set) return;
    merge_fault(r, fault, i, begin);
    *fault = (weft_fault){0};
}

/* One turn of a loop that waits for other threads. */
static void pause_at(int spin) {
    if (spin > SPINS) {
        sched_yield();
        return;
    }
#if defined(__SSE2__)
    _mm_pause();
#endif
}

static void wait_for(run_state *r, int64_t chunks) {
    for (int spin = 0; atomic_load_explicit(&r->done, memory_order_acquire) < chunks; spin++) pause_at(spin);
}

/* Returns the first of `all` tasks that belongs to chunk i of `chunks`. */
static int64_t chunk_begin(int64_t all, int64_t chunks, int64_t i) {
    return all / chunks * i + all % chunks * i / chunks;
}

/* Runs whole items in order on this thread. */
static void run_items(run_state *r, int first, int last, char *scratch) {
    weft_executable *e = r->executable;
    const bool timing = r->device->timing;
    weft_fault fault = {0};
    for (int i = first; i <= last; i++) {
        if (timing) e->timings[i].start_ns = weft__cpu_now_ns();
        run_tasks(r, i, 0, e->items[i].work.tasks, scratch, &fault);
        if (timing) e->timings[i].end_ns = weft__cpu_now_ns();
    }
}

static void run_chunk(run_state *r, const weft_cpu_unit *unit, int64_t chunk, int thread) {
    weft_executable *e = r->executable;
    char *scratch = e->scratch + e->scratch_bytes * (size_t)thread;
    weft_timing *timing =
        r->device->timing && unit->first == unit->last && unit->chunks > 1 ? &e->timings[unit->first] : NULL;
    double now = 0;
    if (unit->chunks == 1) {
        run_items(r, unit->first, unit->last, scratch);
    } else if (unit->first < unit->last) {
        const int64_t n = unit->last - unit->first + 1;
        run_items(r, unit->first + (int)chunk_begin(n, unit->chunks, chunk),
                  unit->first + (int)chunk_begin(n, unit->chunks, chunk + 1) - 1, scratch);
    } else {
        const int64_t tasks = e->items[unit->first].work.tasks;
        weft_fault fault = {0};
        if (timing && chunk == 0) timing->start_ns = weft__cpu_now_ns();
        run_tasks(r, unit->first, chunk_begin(tasks, unit->chunks, chunk),
                  chunk_begin(tasks, unit->chunks, chunk + 1), scratch, &fault);
        if (timing) now = weft__cpu_now_ns(); /* taken before other threads may continue */
    }
    int64_t done = atomic_fetch_add_explicit(&r->done, 1, memory_order_acq_rel) + 1;
    if (timing && done == unit->before + unit->chunks) timing->end_ns = now;
}

/* Returns the first chunk of part p of the unit. */
static int64_t part_begin(const weft_executable *e, const weft_cpu_unit *unit, int p) {
    return unit->chunks * p / e->parts;
}

/* Claims and runs chunks of unit u, those of the thread's own part first. */
static void share_unit(run_state *r, int u, int thread) {
    weft_executable *e = r->executable;
    const weft_cpu_unit *unit = &e->units[u];
    const int own = e->threads <= e->parts ? thread : thread * e->parts / e->threads;
    bool waited = !unit->wait && !r->device->timing;
    for (int i = 0; i < e->parts; i++) {
        const int p = own + i < e->parts ? own + i : own + i - e->parts;
        const int64_t end = part_begin(e, unit, p + 1);
        _Atomic int64_t *next = &e->chunks[u * e->parts + p].next;
        /* The acquire load is enough for the parts that this thread finds empty. The thread that claimed the
         * last chunk of such a part has waited, and its wait is visible here. */
        while (atomic_load_explicit(next, memory_order_acquire) < end) {
            if (!waited) wait_for(r, unit->before);
            waited = true;
            int64_t chunk = atomic_fetch_add_explicit(next, 1, memory_order_acq_rel);
            if (chunk < end) run_chunk(r, unit, chunk, thread);
        }
    }
}

static void begin(run_state *r) {
    weft_executable *e = r->executable;
    for (int u = 0; u < e->n_units; u++)
        for (int p = 0; p < e->parts; p++)
            atomic_store_explicit(&e->chunks[u * e->parts + p].next, part_begin(e, &e->units[u], p),
                                  memory_order_relaxed);
    atomic_store_explicit(&r->done, 0, memory_order_relaxed);
    r->fault_item = r->device->fault.set ? -1 : e->count;
}

/* The last thread to arrive starts the next repetition. The others wait for it. */
static void begin_again(run_state *r, int threads) {
    const int seen = atomic_load_explicit(&r->repetition, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel) + 1 == threads) {
        begin(r);
        atomic_store_explicit(&r->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&r->repetition, seen + 1, memory_order_release);
        return;
    }
    for (int spin = 0; atomic_load_explicit(&r->repetition, memory_order_acquire) == seen; spin++)
        pause_at(spin);
}

static void run_thread(void *user, int thread, int threads) {
    run_state *r = user;
    const unsigned state = weft__cpu_standard_float_state();
    for (int t = 0; t < r->times; t++) {
        if (t > 0) begin_again(r, threads);
        for (int u = 0; u < r->executable->n_units; u++) share_unit(r, u, thread);
    }
    weft__cpu_restore_float_state(state);
}

void weft__cpu_chunks_run(weft_cpu_device *d, weft_executable *e, int times) {
    run_state r = {.device = d, .executable = e, .times = times, .lock = PTHREAD_MUTEX_INITIALIZER};
    begin(&r);
    weft__thread_pool_run(d->pool, run_thread, &r);
    pthread_mutex_destroy(&r.lock);
}
