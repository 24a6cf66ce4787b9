/* Starting threads, see threads.h.
 * Must not know: what threads compute. Read next: device/cpu/thread_pool.c, which keeps threads. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/threads.h"

/* ---- how many ---- */

int weft__processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

uint64_t weft__processors_hash(void) {
#ifdef __linux__
    weft_hash hash;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        weft__hash_init(&hash);
        weft__hash_bytes(&hash, &set, sizeof set);
        return hash.a;
    }
#endif
    return 0;
}

int weft__default_threads(void) {
    const char *wanted = getenv("OMP_NUM_THREADS");
    long n = wanted ? strtol(wanted, NULL, 10) : 0; /* the first number of OpenMP's list, which has one for
                                                     * each level */
    if (n < 1) n = weft__processors();
    return n > WEFT__THREADS_MOST ? WEFT__THREADS_MOST : (int)n;
}

/* ---- starting ---- */

bool weft__thread_start(pthread_t *thread, void *(*begin)(void *user), void *user) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    const bool started = pthread_create(thread, NULL, begin, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void weft__parallel(int threads, void *(*task)(void *user), void *user) {
    pthread_t others[WEFT__THREADS_MOST];
    int started = 0;
    if (threads > WEFT__THREADS_MOST) threads = WEFT__THREADS_MOST;
    while (started + 1 < threads && weft__thread_start(&others[started], task, user)) started++;
    (void)task(user);
    while (started > 0) pthread_join(others[--started], NULL);
}

/* ---- forks ---- */

static _Atomic int forks;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void count_fork(void) { forks++; }
static void watch(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

int weft__forks(void) {
    pthread_once(&watched, watch);
    return forks;
}
