/* Groups of processes: joining, waiting with a time limit, and copying memory. Must not know: engines,
 * tensors. Read next: sum.c, launcher.c. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/option.h"
#include "base/text.h"
#include "base/threads.h"
#include "process/group.h"

#define TIMEOUT     60.0 /* seconds, by default */
#define ROLL_CALL   3.0  /* seconds in which the others can say that they are there */
#define BUSY_WAIT   2e-3 /* seconds: a transfer is tested without a pause */
#define SHORT_PAUSE 0.1  /* seconds: until then pauses are short */
/* seconds that one round of waiting counts at most: the process may have been stopped */
#define LONGEST 0.5

double weft__process_group_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- failures ---- */

/* Lists the processes that do not answer: "2 (node7), 5 (node8)". Returns their number. */
static int list_absent(const weft_process_group *g, weft_text *list) {
    enum { SHOWN = 4 };
    int absent = 0;
    for (int i = 0; i < g->size; i++) {
        if (g->present[i]) continue;
        if (absent < SHOWN) weft__put(list, "%s%d (%s)", absent ? ", " : "", i, g->hosts[i]);
        absent++;
    }
    if (absent > SHOWN) weft__put(list, " and %d more", absent - SHOWN);
    return absent;
}

/* ---- after a failure ---- */

static const char after_failure[] = "an exchange before it failed";

static const char *no_broadcast(weft_transport *t, void *data, size_t bytes, int from,
                                weft_transfer *transfer) {
    (void)t, (void)data, (void)bytes, (void)from, (void)transfer;
    return after_failure;
}
static const char *no_gather(weft_transport *t, void *data, size_t bytes, weft_transfer *transfer) {
    (void)t, (void)data, (void)bytes, (void)transfer;
    return after_failure;
}
static const char *no_exchange(weft_transport *t, const void *send, void *receive, size_t bytes,
                               weft_transfer *transfer) {
    (void)t, (void)send, (void)receive, (void)bytes, (void)transfer;
    return after_failure;
}
static const char *no_sum(weft_transport *t, void *data, int wide, size_t count, weft_transfer *transfer) {
    (void)t, (void)data, (void)wide, (void)count, (void)transfer;
    return after_failure;
}
static const char *no_test(weft_transport *t, weft_transfer *transfer, int *ended) {
    (void)t, (void)transfer, (void)ended;
    return after_failure;
}

/* Lets the engine go on with nothing. A transfer that failed may still be under way there, and its memory is
 * about to be freed: the engine must not write to it while it serves another one. */
static void stop_transfers(weft_transport *t) {
    t->broadcast = no_broadcast;
    t->all_gather = no_gather;
    t->all_to_all = no_exchange;
    t->all_reduce = no_sum;
    t->test = no_test;
}

/* Finds out who does not answer, and says it. waited: seconds. */
static weft_status timed_out(const weft_process_group *g, double waited) {
    char names[512], step[48] = "";
    weft_text list = weft__text(names, sizeof names);
    g->transport->call_roll(g->transport, ROLL_CALL, g->present);
    stop_transfers(g->transport);
    const int absent = list_absent(g, &list);
    if (g->step) snprintf(step, sizeof step, "step %llu: ", (unsigned long long)g->step);
    return weft__fail(NULL, WEFT_ERR_TIMEOUT, "rank %d (%s): %swaited %g s for %s: %s%s%s", g->rank,
                      g->hosts[g->rank], step, waited < g->timeout ? round(10 * waited) / 10 : g->timeout,
                      g->purpose,
                      absent ? "no answer from rank " : "all ranks answer, but one of them is slow", names,
                      absent ? "; see what happened to that process" : "; a larger time limit helps");
}

static weft_status broken(const weft_process_group *g, const char *engine, const char *error) {
    return weft__fail(NULL, WEFT_ERR_DEVICE, "rank %d (%s): %s fails to exchange %s: %s", g->rank,
                      g->hosts[g->rank], engine, g->purpose, error);
}

/* ---- waiting ---- */

/* A pause between two tests. The longer the wait, the longer the pause, so that waiting processes leave the
 * processors to others. */
static void rest(const weft_process_group *g, double waited) {
    const struct timespec nap = {0, waited < SHORT_PAUSE ? 50000 : 1000000};
    if (waited < BUSY_WAIT && (!g->beside || atomic_load(&g->awaited)))
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

weft_status weft__process_group_await(weft_process_group *g, const char *error, const weft__awaited *what) {
    const double from = weft__process_group_now();
    double waited = 0, before = from;
    bool ended = false, late = false;
    while (!error && !late && !(error = what->test(what->user, &ended)) && !ended) {
        const double at = weft__process_group_now();
        waited += at - before < LONGEST ? at - before : LONGEST;
        before = at;
        late = waited > g->timeout || (waited > BUSY_WAIT && g->transport->asked(g->transport));
        if (!late) rest(g, waited);
    }
    if (!g->beside) g->waited += weft__process_group_now() - from; /* else the program may wait later */
    if (!error && !late) return WEFT_OK;
    const weft_status status = error ? broken(g, what->engine, error) : WEFT_ERR_TIMEOUT;
    if (what->give_up) what->give_up(what->user);
    return error ? status : timed_out(g, waited);
}

/* A transfer of the engine. */
typedef struct waiting {
    weft_transport *transport;
    weft_transfer *transfer;
} waiting;

static const char *test_transfer(void *user, bool *ended) {
    const waiting *w = user;
    int is = 0;
    const char *error = w->transport->test(w->transport, w->transfer, &is);
    *ended = is != 0;
    return error;
}

weft_status weft__process_group_wait(weft_process_group *g, const char *error, weft_transfer *transfer) {
    waiting w = {g->transport, transfer};
    const weft_status status =
        weft__process_group_await(g, error, &(weft__awaited){g->transport->name, test_transfer, NULL, &w});
    if (status != WEFT_OK) stop_transfers(g->transport);
    return status;
}

void *weft__process_group_staging(weft_process_group *g, size_t bytes) {
    if (bytes <= g->staging_bytes) return g->staging;
    void *more = weft__realloc(NULL, g->staging, bytes);
    if (!more) {
        const weft_status status = weft__fail_oom(NULL, bytes, "an exchange between processes");
        (void)status; /* the caller passes it on */
        return NULL;
    }
    g->staging = more;
    g->staging_bytes = bytes;
    return more;
}

/* ---- copying memory ---- */

weft_status weft_process_group_broadcast(weft_process_group *g, void *data, size_t bytes, int from) {
    weft_transfer transfer;
    if (!g || bytes == 0) return WEFT_OK;
    WEFT_NEED(NULL, data);
    if (from < 0 || from >= g->size)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "weft_process_group_broadcast: there is no rank %d: ranks are 0 to %d", from,
                          g->size - 1);
    for (size_t at = 0; at < bytes; at += WEFT_TRANSPORT_BYTES) {
        const size_t piece = bytes - at < WEFT_TRANSPORT_BYTES ? bytes - at : WEFT_TRANSPORT_BYTES;
        const char *error = g->transport->broadcast(g->transport, (char *)data + at, piece, from, &transfer);
        WEFT_TRY(weft__process_group_wait(g, error, &transfer));
    }
    return WEFT_OK;
}

/* Bytes at..at + piece of part i, of which only those below `bytes` exist. */
static size_t existing(size_t part, size_t bytes, size_t i, size_t at, size_t piece) {
    const size_t from = i * part + at;
    return from >= bytes ? 0 : bytes - from < piece ? bytes - from : piece;
}

/* Collects bytes at..at + piece of all parts. */
static weft_status collect_piece(weft_process_group *g, const char *own, char *all, size_t part, size_t bytes,
                                 size_t at, size_t piece) {
    weft_transfer transfer;
    const size_t size = (size_t)g->size, rank = (size_t)g->rank;
    char *parts = weft__process_group_staging(g, size * piece);
    if (!parts) return WEFT_ERR_OOM;
    memcpy(parts + rank * piece, own + at, existing(part, bytes, rank, at, piece));
    const char *error = g->transport->all_gather(g->transport, parts, piece, &transfer);
    WEFT_TRY(weft__process_group_wait(g, error, &transfer));
    for (size_t i = 0; i < size; i++)
        if (all + i * part != own)
            memcpy(all + i * part + at, parts + i * piece, existing(part, bytes, i, at, piece));
    return WEFT_OK;
}

size_t weft__process_group_collect_bytes(const weft_process_group *g, size_t part) {
    const size_t size = (size_t)g->size, most = WEFT__PIECE_BYTES / size;
    return size * (part < most ? part : most);
}

weft_status weft__process_group_collect(weft_process_group *g, const void *own, void *all, size_t part,
                                        size_t bytes) {
    const size_t most = weft__process_group_collect_bytes(g, part) / (size_t)g->size;
    for (size_t at = 0; at < part; at += most)
        WEFT_TRY(collect_piece(g, own, all, part, bytes, at, part - at < most ? part - at : most));
    return WEFT_OK;
}

weft_status weft_process_group_all_gather(weft_process_group *g, void *data, size_t bytes) {
    weft_transfer transfer;
    if (!g || bytes == 0) return WEFT_OK;
    WEFT_NEED(NULL, data);
    if (bytes > WEFT_TRANSPORT_BYTES / (size_t)g->size)
        return weft__process_group_collect(g, (char *)data + (size_t)g->rank * bytes, data, bytes,
                                           bytes * (size_t)g->size);
    const char *error = g->transport->all_gather(g->transport, data, bytes, &transfer);
    return weft__process_group_wait(g, error, &transfer);
}

weft_status weft__process_group_gather(weft_process_group *g, const void *own, void *all, size_t part) {
    if (part) memcpy((char *)all + (size_t)g->rank * part, own, part);
    return weft_process_group_all_gather(g, all, part);
}

size_t weft__process_group_gather_bytes(const weft_process_group *g, size_t part) {
    return part > WEFT_TRANSPORT_BYTES / (size_t)g->size ? weft__process_group_collect_bytes(g, part) : 0;
}

weft_status weft_process_group_barrier(weft_process_group *g) {
    if (!g) return WEFT_OK;
    memset(g->present, 0, (size_t)g->size);
    return weft_process_group_all_gather(g, g->present, 1);
}

weft_status weft__process_group_same(weft_process_group *g, const char *what, weft_hash hash,
                                     const char *advice) {
    char names[512];
    weft_text list = weft__text(names, sizeof names);
    if (!g) return WEFT_OK;
    weft_hash *all = weft__array(NULL, (size_t)g->size, sizeof *all);
    if (!all) return weft__fail_oom(NULL, (size_t)g->size * sizeof *all, "a comparison of processes");
    all[g->rank] = hash;
    const weft_status status = weft_process_group_all_gather(g, all, sizeof *all);
    for (int i = 0; i < g->size && status == WEFT_OK; i++) g->present[i] = weft__hash_equal(all[i], all[0]);
    weft__free(NULL, all);
    WEFT_TRY(status);
    if (list_absent(g, &list) == 0) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_STATE, "rank %s: %s than rank 0 (%s): %s", names, what, g->hosts[0],
                      advice);
}

weft_status weft__process_group_agree(weft_process_group *g, weft_status status, bool *agreed) {
    char text[WEFT_ERROR_SIZE] = "";
    bool known;
    if (!agreed) agreed = &known;
    *agreed = true;
    if (!g) return status;
    if (status != WEFT_OK) snprintf(text, sizeof text, "%s", weft_last_error(NULL));
    *agreed = false;
    int first = 0;
    g->present[g->rank] = (unsigned char)status;
    WEFT_TRY(weft_process_group_all_gather(g, g->present, 1));
    while (first < g->size && g->present[first] == WEFT_OK) first++;
    if (first == g->size) {
        *agreed = true;
        return WEFT_OK;
    }
    const weft_status failure = (weft_status)g->present[first];
    WEFT_TRY(weft_process_group_broadcast(g, text, sizeof text, first));
    *agreed = true;
    return first == 0 ? weft__fail(NULL, failure, "%s", text)
                      : weft__fail(NULL, failure, "rank %d (%s): %s", first, g->hosts[first], text);
}

/* ---- joining and leaving ---- */

/* Where a process runs. */
typedef struct place {
    char host[WEFT__HOST_BYTES];
    uint64_t processors; /* hash of the set that it may use */
} place;

/* Tells all processes where each of them runs. Counts those of this machine, and those that may use the same
 * processors. */
static weft_status meet(weft_process_group *g, place *places) {
    place *own = &places[g->rank];
    int sharers = 0;
    g->purpose = "the names of the machines";
    if (gethostname(own->host, WEFT__HOST_BYTES - 1) != 0) snprintf(own->host, WEFT__HOST_BYTES, "unknown");
    own->processors = weft__processors_hash();
    WEFT_TRY(weft_process_group_all_gather(g, places, sizeof *places));
    for (int i = 0; i < g->size; i++) {
        memcpy(g->hosts[i], places[i].host, WEFT__HOST_BYTES - 1);
        if (strcmp(g->hosts[i], own->host) != 0) continue;
        g->local_rank += i < g->rank;
        g->local_size++;
        sharers += places[i].processors == own->processors;
    }
    g->threads = weft__processors() / sharers;
    return WEFT_OK;
}

weft_status weft__process_group_on(weft_transport *transport, const weft_process_group_options *options,
                                   weft_process_group **group) {
    const size_t size = (size_t)transport->size;
    weft_process_group *g = weft__array(NULL, 1, sizeof *g);
    if (!g) {
        transport->close(transport);
        return weft__fail_oom(NULL, sizeof *g, "a group of processes");
    }
    *g = (weft_process_group){.transport = transport,
                              .rank = transport->rank,
                              .size = transport->size,
                              .timeout = weft__value_or(options ? options->timeout : 0, TIMEOUT),
                              .purpose = "data",
                              .hosts = weft__array(NULL, size, sizeof *g->hosts),
                              .present = weft__array(NULL, size, 1)};
    place *places = weft__array(NULL, size, sizeof *places);
    const weft_status status = g->hosts && g->present && places
                                   ? meet(g, places)
                                   : weft__fail_oom(NULL, size * sizeof *places, "a group of processes");
    weft__free(NULL, places);
    if (status == WEFT_OK)
        *group = g;
    else
        weft_process_group_close(g);
    return status;
}

weft_status weft_process_group_open(const weft_process_group_options *options, weft_process_group **group) {
    weft_transport *transport = NULL;
    WEFT_NEED(NULL, group);
    *group = NULL;
    if (options && !(weft__value_or(options->timeout, TIMEOUT) > 0))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "weft_process_group_open: timeout is %g; give seconds, or 0 for the default",
                          options->timeout);
    WEFT_TRY(weft__launcher_open(&transport));
    if (!transport) return WEFT_OK;
    if (transport->size > 1) return weft__process_group_on(transport, options, group);
    transport->close(transport);
    return WEFT_OK;
}

void weft_process_group_close(weft_process_group *g) {
    if (!g) return;
    weft__process_group_end_exchanges(g);
    g->transport->close(g->transport);
    weft__free(NULL, g->hosts);
    weft__free(NULL, g->present);
    weft__free(NULL, g->staging);
    weft__free(NULL, g->orders);
    weft__free(NULL, g);
}

void weft_process_group_abort(weft_process_group *g, int code) {
    if (g) g->transport->abort(g->transport, code);
}

/* ---- questions ---- */

int weft_process_group_rank(const weft_process_group *g) { return g ? g->rank : 0; }
int weft_process_group_size(const weft_process_group *g) { return g ? g->size : 1; }
int weft_process_group_local_rank(const weft_process_group *g) { return g ? g->local_rank : 0; }
int weft_process_group_local_size(const weft_process_group *g) { return g ? g->local_size : 1; }
int weft_process_group_threads(const weft_process_group *g) {
    const int threads = g && !getenv("OMP_NUM_THREADS") ? g->threads : weft__default_threads();
    return threads > 0 ? threads : 1;
}
void weft_process_group_set_timeout(weft_process_group *g, double timeout) {
    if (g && timeout > 0) g->timeout = timeout;
}
const char *weft_process_group_engine(const weft_process_group *g) { return g ? g->transport->name : ""; }

const char *weft_process_group_host(const weft_process_group *g, int rank) {
    return g && rank >= 0 && rank < g->size ? g->hosts[rank] : "";
}
