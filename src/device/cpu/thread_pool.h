/* The threads of one CPU device. They live between runs, because starting or waking a thread costs more than
 * many a run.
 * Must not know: programs. Read next: chunks.c. */
#ifndef WEFT_DEVICE_CPU_THREAD_POOL_H
#define WEFT_DEVICE_CPU_THREAD_POOL_H

#include "base/base.h"

typedef struct weft_thread_pool weft_thread_pool;

/* Starts a pool of at most `threads` threads, including the caller's. 0 means weft__default_threads. The pool
 * has fewer threads if the system grants no more. Returns NULL when memory is short. */
weft_thread_pool *weft__thread_pool_new(weft_context *ctx, int threads);

/* Ends the threads and waits for them. NULL is allowed. */
void weft__thread_pool_free(weft_thread_pool *pool);

/* Returns the number of threads of a run. It may become smaller in a child of fork. */
int weft__thread_pool_size(const weft_thread_pool *pool);

/* Calls task(user, thread, threads) once on each thread and waits for all of them. Thread 0 is the caller. In
 * a child of fork the pool first starts its threads again. */
void weft__thread_pool_run(weft_thread_pool *pool, void (*task)(void *user, int thread, int threads),
                           void *user);

#endif
