/* Threads of the library. They block all signals, so that a signal interrupts the program's own thread.
 * Must not know: what threads compute. Read next: device/cpu/thread_pool.h. */
#ifndef WEFT_BASE_THREADS_H
#define WEFT_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WEFT__THREADS_MOST 256

/* The number of threads that a program gets by default: OMP_NUM_THREADS, or one for each processor. It is 1
 * to WEFT__THREADS_MOST. */
int weft__default_threads(void);

/* The number of processors that this process may use. */
int weft__processors(void);
/* A hash of the set of these processors; 0 if the system does not tell. */
uint64_t weft__processors_hash(void);

/* Starts a thread; false if the system refuses. */
bool weft__thread_start(pthread_t *thread, void *(*begin)(void *user), void *user);

/* Runs task(user) on the calling thread and on up to threads - 1 new ones, and waits for all. The task takes
 * its share from a counter in `user`, so any number of threads completes the work. */
void weft__parallel(int threads, void *(*task)(void *user), void *user);

/* Counts the forks since the first call, in this process and its parents. A child of fork has none of its
 * parent's threads. Code that keeps threads notes this number and starts its threads again when the number
 * changes. */
int weft__forks(void);

#endif
