/* Signals become a flag that the loop asks for between steps. Read next: signals.c. */
#ifndef WEFT_SRC_TRAIN_SIGNALS_H
#define WEFT_SRC_TRAIN_SIGNALS_H

/* From now on SIGINT, SIGTERM and SIGHUP ask for a stop (a second SIGINT leaves at once, with 130), SIGUSR1
 * asks for a checkpoint, and SIGPIPE is an error of write() instead of the end. */
void weft__signals_install(void);

/* The signal that asks for a stop, or 0. */
int weft__signals_stop(void);

/* True once after each SIGUSR1 (or storm of them). */
int weft__signals_save(void);

#endif
