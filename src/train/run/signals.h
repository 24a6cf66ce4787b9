/* Signals become a flag that the loop asks for, or the end, where there is nothing to save.
 * Read next: signals.c. */
#ifndef WEFT_SRC_TRAIN_RUN_SIGNALS_H
#define WEFT_SRC_TRAIN_RUN_SIGNALS_H

#include <stdbool.h>

/* What a stop does: SIGINT, SIGTERM or SIGHUP. */
typedef enum weft__stop_mode {
    WEFT__STOP_AT_ONCE,  /* ends the process with 128 + the signal: there is nothing to save */
    WEFT__STOP_IN_ORDER, /* ends what is under way, as soon as that looks (weft__signals_interrupt) */
    WEFT__STOP_UNDER_WAY /* has been heeded: what it takes to save is not interrupted */
} weft__stop_mode;

/* From now on stops do what the mode says, at first AT_ONCE. A second SIGINT always ends the process. SIGUSR1
 * asks for a checkpoint, and SIGPIPE is an error of write() instead of the end. Calls that wait for a file
 * are interrupted by a stop. `words`: what is said where a stop ends the process at once. */
void weft__signals_install(const char *words);
/* The handlers that were there before. */
void weft__signals_restore(void);

/* `words` as above; NULL: the same as before. */
void weft__signals_mode(weft__stop_mode mode, const char *words);

/* The signal that asks for a stop, or 0. */
int weft__signals_stop(void);
/* Whether what is under way should end: for weft_open_options.interrupted. */
bool weft__signals_interrupt(void *unused);

/* True once after each SIGUSR1 (or storm of them). */
int weft__signals_save(void);

/* Standard output and error that nobody takes must not hold up the end: what is yet to be said to them is
 * dropped. */
void weft__signals_drop_output(void);

#endif
