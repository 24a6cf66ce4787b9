/* Signals around calls of drivers. Drivers start threads, and LLVM inside them replaces signal handlers (of
 * SIGUSR1 and others).
 * Must not know: devices. Read next: signals.c. */
#ifndef WEFT_DEVICE_SIGNALS_H
#define WEFT_DEVICE_SIGNALS_H

#include <signal.h>

enum { WEFT__SIGNALS = 32 };
typedef struct weft__signals {
    sigset_t mask;
    struct sigaction actions[WEFT__SIGNALS];
} weft__signals;

/* Threads that are started between these two calls have all signals blocked. The second call restores the
 * handlers. */
void weft__keep_signals(weft__signals *kept);
void weft__restore_signals(const weft__signals *kept);

#endif
