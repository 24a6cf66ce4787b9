/* The threads of one CPU device, which wait between runs: a wake-up costs more than many a run.
 * Must not know: programs. Read next: team.c. */
#ifndef WEFT_DEVICE_CPU_THREAD_POOL_H
#define WEFT_DEVICE_CPU_THREAD_POOL_H

#include "base/base.h"

typedef struct weft_thread_pool weft_thread_pool;

/* Starts a pool of up to `threads` threads, the caller's among them; 0: as many as weft__default_threads
 * says. It has fewer where the system grants no more. NULL when memory is short. */
weft_thread_pool *weft__thread_pool_new(weft_context *ctx, int threads);

/* Ends the threads and waits for them. NULL is allowed. */
void weft__thread_pool_free(weft_thread_pool *pool);

/* How many threads a run has. In a child of fork this may become less. */
int weft__thread_pool_size(const weft_thread_pool *pool);

/* Calls task(user, thread, threads) once on each thread, thread = 0 being the caller, and waits for all. In a
 * child of fork the pool first starts its threads again. */
void weft__thread_pool_run(weft_thread_pool *pool, void (*task)(void *user, int thread, int threads),
                           void *user);

#endif
