/* Threads of the library. All of them block signals, so that a signal interrupts the program's own thread.
 * Must not know: what threads compute. Read next: device/cpu/thread_pool.h. */
#ifndef WEFT_BASE_THREADS_H
#define WEFT_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

#define WEFT__THREADS_MOST 256

/* How many threads a program gets by default: OMP_NUM_THREADS, or one for each processor; 1 to
 * WEFT__THREADS_MOST. */
int weft__default_threads(void);

/* How many processors this process may use. */
int weft__processors(void);

/* Starts a thread; false where the system grants none. */
bool weft__thread_start(pthread_t *thread, void *(*begin)(void *user), void *user);

/* Runs task(user) on the calling thread and on up to threads - 1 new ones, and waits for all. The task itself
 * takes its share from a counter in `user`, so it is complete when any number of threads ran it. */
void weft__parallel(int threads, void *(*task)(void *user), void *user);

/* How many forks lie between the first call in this process, or its parents, and now. A child of fork has
 * none of its parent's threads: whoever keeps threads notes this number and starts them again when it has
 * changed. */
int weft__forks(void);

#endif
