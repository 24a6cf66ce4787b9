/* An engine of process groups whose processes are threads, with the network of a model: a transfer takes a
 * latency, and the time that its bytes need. The thread that starts a transfer last performs it for all.
 * Include cmocka.h before. */
#ifndef WEFT_TESTS_PROCESS_THREADS_H
#define WEFT_TESTS_PROCESS_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "process/group.h"

enum { RANKS_MOST = 8, UNDER_WAY = 8 };

typedef enum transfer_kind { BROADCAST, ALL_GATHER, ALL_TO_ALL, ALL_REDUCE } transfer_kind;

/* A transfer of all ranks. */
typedef struct meeting {
    transfer_kind kind;
    int from, wide, posted, left;
    size_t bytes;
    const void *send[RANKS_MOST];
    void *receive[RANKS_MOST];
    double ends; /* seconds of the clock */
} meeting;

typedef struct network {
    pthread_mutex_t lock;
    int size;
    double latency, bytes_per_second; /* 0: no limit */
    meeting meetings[UNDER_WAY];
    unsigned char here[RANKS_MOST]; /* ranks that called the roll */
} network;

typedef struct thread_rank {
    weft_transport base;
    network *net;
    uint64_t started; /* transfers */
} thread_rank;

static double network_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void add_at(void *sum, const void *more, int wide, size_t bytes) {
    weft__add_numbers(sum, more, wide ? WEFT_F64 : WEFT_F32, bytes / (wide ? 8 : 4));
}

/* Sums in the order of the ranks, which is not that of a tree. */
static void perform_sum(const network *n, const meeting *m) {
    char *sum = malloc(m->bytes);
    memcpy(sum, m->send[0], m->bytes);
    for (int i = 1; i < n->size; i++) add_at(sum, m->send[i], m->wide, m->bytes);
    for (int i = 0; i < n->size; i++) memcpy(m->receive[i], sum, m->bytes);
    free(sum);
}

static void perform(const network *n, const meeting *m) {
    const size_t size = (size_t)n->size;
    if (m->kind == ALL_REDUCE) return perform_sum(n, m);
    for (size_t to = 0; to < size; to++)
        for (size_t from = 0; from < size; from++) {
            char *place = m->receive[to];
            const char *sent = m->send[from];
            if (m->kind == BROADCAST && (int)from == m->from && from != to) memcpy(place, sent, m->bytes);
            if (m->kind == ALL_GATHER && from != to)
                memcpy(place + from * m->bytes, sent + from * m->bytes, m->bytes);
            if (m->kind == ALL_TO_ALL) memcpy(place + from * m->bytes, sent + to * m->bytes, m->bytes);
        }
}

static const char *post(weft_transport *t, meeting what, const void *send, void *receive,
                        weft_transfer *transfer) {
    thread_rank *r = (thread_rank *)t;
    network *n = r->net;
    meeting *m = &n->meetings[r->started++ % UNDER_WAY];
    const char *error = NULL;
    pthread_mutex_lock(&n->lock);
    if (m->posted == 0)
        *m = what;
    else if (m->kind != what.kind || m->bytes != what.bytes || m->from != what.from || m->wide != what.wide)
        error = "the ranks have started different transfers";
    m->send[t->rank] = send;
    m->receive[t->rank] = receive;
    if (++m->posted == n->size) {
        perform(n, m);
        m->left = n->size;
        m->ends = network_now() + n->latency +
                  (n->bytes_per_second > 0 ? (double)m->bytes * (n->size - 1) / n->bytes_per_second : 0);
    }
    pthread_mutex_unlock(&n->lock);
    transfer->inside[0] = m;
    return error;
}

static const char *threads_broadcast(weft_transport *t, void *data, size_t bytes, int from,
                                     weft_transfer *transfer) {
    return post(t, (meeting){.kind = BROADCAST, .from = from, .bytes = bytes}, data, data, transfer);
}
static const char *threads_all_gather(weft_transport *t, void *data, size_t bytes, weft_transfer *transfer) {
    return post(t, (meeting){.kind = ALL_GATHER, .bytes = bytes}, data, data, transfer);
}
static const char *threads_all_to_all(weft_transport *t, const void *send, void *receive, size_t bytes,
                                      weft_transfer *transfer) {
    return post(t, (meeting){.kind = ALL_TO_ALL, .bytes = bytes}, send, receive, transfer);
}
static const char *threads_all_reduce(weft_transport *t, void *data, int wide, size_t count,
                                      weft_transfer *transfer) {
    return post(t, (meeting){.kind = ALL_REDUCE, .wide = wide, .bytes = count * (wide ? 8 : 4)}, data, data,
                transfer);
}
static const char *threads_test(weft_transport *t, weft_transfer *transfer, int *ended) {
    thread_rank *r = (thread_rank *)t;
    meeting *m = transfer->inside[0];
    pthread_mutex_lock(&r->net->lock);
    *ended = m->posted == r->net->size && network_now() >= m->ends;
    if (*ended && --m->left == 0) m->posted = 0;
    pthread_mutex_unlock(&r->net->lock);
    return NULL;
}

static int threads_asked(weft_transport *t) {
    network *n = ((thread_rank *)t)->net;
    int asked = 0;
    pthread_mutex_lock(&n->lock);
    for (int i = 0; i < n->size; i++) asked |= n->here[i];
    pthread_mutex_unlock(&n->lock);
    return asked;
}

static void threads_call_roll(weft_transport *t, double seconds, unsigned char *present) {
    network *n = ((thread_rank *)t)->net;
    const double from = network_now();
    for (int here = 0; here < n->size && network_now() - from < seconds;) {
        const struct timespec nap = {0, 1000000};
        pthread_mutex_lock(&n->lock);
        n->here[t->rank] = 1;
        memcpy(present, n->here, (size_t)n->size);
        pthread_mutex_unlock(&n->lock);
        here = 0;
        for (int i = 0; i < n->size; i++) here += present[i];
        nanosleep(&nap, NULL);
    }
}

static void threads_close(weft_transport *t) { free(t); }

/* Counts what is wrong in a thread, where assertions cannot be made. */
static atomic_int wrong;
#define EXPECT(what)                                                                                         \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            print_error("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, weft_last_error(NULL));               \
            atomic_fetch_add(&wrong, 1);                                                                     \
        }                                                                                                    \
    } while (0)
static void assert_nothing_wrong(void) { assert_int_equal(atomic_exchange(&wrong, 0), 0); }

/* Runs `work` in `size` threads, each with a group. */
typedef void (*rank_work)(weft_process_group *group, void *user);
typedef struct rank_start {
    network *net;
    int rank;
    double timeout;
    rank_work work;
    void *user;
} rank_start;

static void *rank_begin(void *user) {
    const rank_start *s = user;
    thread_rank *r = calloc(1, sizeof *r);
    weft_process_group *group;
    r->net = s->net;
    r->base = (weft_transport){.version = WEFT_TRANSPORT_VERSION,
                               .rank = s->rank,
                               .size = s->net->size,
                               .name = "threads",
                               .broadcast = threads_broadcast,
                               .all_gather = threads_all_gather,
                               .all_to_all = threads_all_to_all,
                               .all_reduce = threads_all_reduce,
                               .test = threads_test,
                               .asked = threads_asked,
                               .call_roll = threads_call_roll,
                               .close = threads_close};
    const weft_process_group_options options = {.timeout = s->timeout};
    if (weft__process_group_on(&r->base, &options, &group) != WEFT_OK) abort();
    s->work(group, s->user);
    weft_process_group_close(group);
    return NULL;
}

static void run_ranks(network *net, int size, double timeout, rank_work work, void *user) {
    pthread_t threads[RANKS_MOST];
    rank_start starts[RANKS_MOST];
    net->size = size;
    pthread_mutex_init(&net->lock, NULL);
    for (int i = 0; i < size; i++) {
        starts[i] = (rank_start){net, i, timeout, work, user};
        if (pthread_create(&threads[i], NULL, rank_begin, &starts[i]) != 0) abort();
    }
    for (int i = 0; i < size; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&net->lock);
    assert_nothing_wrong();
}

/* The same on a network without limits. */
static inline void run_threads(int size, double timeout, rank_work work, void *user) {
    network net = {0};
    run_ranks(&net, size, timeout, work, user);
}

/* ---- numbers whose sums are checked ---- */

static inline double number(int rank, size_t i) {
    const int mixed = (int)(((size_t)rank * 7919 + i * 104729 + (size_t)rank * i * 31) % 2003) - 1001;
    return (float)mixed * (rank % 3 == 0 ? 1.0F : 3.1e-4F);
}

/* The sum of ranks first..first + n: the largest power of two of them, and then the rest. */
static inline double tree_sum(int first, int n, size_t i, weft_dtype dtype) {
    int half = 1;
    if (n == 1) return number(first, i);
    while (2 * half < n) half *= 2;
    const double a = tree_sum(first, half, i, dtype), b = tree_sum(first + half, n - half, i, dtype);
    return dtype == WEFT_F32 ? (double)((float)a + (float)b) : a + b;
}

typedef struct sum_case {
    size_t count;
    weft_dtype dtype;
    bool exact;
} sum_case;

/* The numbers of a rank; the caller frees them. */
static inline void *make_numbers(const sum_case *c, int rank) {
    void *data = malloc((c->count + 1) * 8);
    for (size_t i = 0; i < c->count; i++)
        if (c->dtype == WEFT_F64)
            ((double *)data)[i] = number(rank, i);
        else
            ((float *)data)[i] = (float)number(rank, i);
    return data;
}

#endif
