/* Keeps signals and their handlers as they are while a driver starts threads.
 * Must not know: devices. Read next: signals.h. */
#include "device/signals.h"

#include <pthread.h>

void weft__keep_signals(weft__signals *kept) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept->mask);
    for (int s = 1; s < WEFT__SIGNALS; s++)
        if (sigaction(s, NULL, &kept->actions[s]) != 0) kept->actions[s].sa_handler = SIG_ERR;
}

void weft__restore_signals(const weft__signals *kept) {
    for (int s = 1; s < WEFT__SIGNALS; s++)
        if (s != SIGKILL && s != SIGSTOP && kept->actions[s].sa_handler != SIG_ERR)
            sigaction(s, &kept->actions[s], NULL);
    pthread_sigmask(SIG_SETMASK, &kept->mask, NULL);
}
