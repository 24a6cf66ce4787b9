/* Turns signals into a flag that the loop checks. While there is nothing to save, a signal ends the process.
 * Must not know: the loop. Read next: signals.c. */
#ifndef WEFT_SRC_TRAIN_RUN_SIGNALS_H
#define WEFT_SRC_TRAIN_RUN_SIGNALS_H

#include <stdbool.h>

/* What a stop (SIGINT, SIGTERM or SIGHUP) does. */
typedef enum weft__stop_mode {
    WEFT__STOP_AT_ONCE,  /* ends the process with 128 + the signal, because there is nothing to save */
    WEFT__STOP_IN_ORDER, /* ends the current work as soon as it calls weft__signals_interrupt */
    WEFT__STOP_UNDER_WAY /* the stop was handled; saving is not interrupted */
} weft__stop_mode;

/* Installs the handlers. A stop then does what the mode says, at first AT_ONCE. A second SIGINT always ends
 * the process. SIGUSR1 asks for a checkpoint. SIGPIPE becomes an error of write(). A stop interrupts calls
 * that wait for a file. `words` is printed when a stop ends the process at once. */
void weft__signals_install(const char *words);
/* Restores the previous handlers. */
void weft__signals_restore(void);

/* Changes the mode. `words` as above; NULL: unchanged. */
void weft__signals_mode(weft__stop_mode mode, const char *words);

/* Returns the signal that requests a stop, or 0. */
int weft__signals_stop(void);
/* Tells whether the current work should end. Used as weft_open_options.interrupted. */
bool weft__signals_interrupt(void *unused);

/* Returns true once after SIGUSR1. Several signals before the call count as one. */
int weft__signals_save(void);

/* Drops output that nobody reads. Standard output and standard error must not delay the end of the
 * process. */
void weft__signals_drop_output(void);

#endif
