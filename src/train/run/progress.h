/* What the terminal shows of a run. Must not know: models, files. Read next: progress.c. */
#ifndef WEFT_SRC_TRAIN_RUN_PROGRESS_H
#define WEFT_SRC_TRAIN_RUN_PROGRESS_H

#include <stdio.h>

#include "train/run/history.h"

typedef enum weft__phase {
    WEFT__PHASE_PREPARE, /* reading data, building the model */
    WEFT__PHASE_TRAIN,   /* steps, with the loading of their batches */
    WEFT__PHASE_EVAL,
    WEFT__PHASE_SAVE,
    WEFT__PHASE_SAMPLE,
    WEFT__PHASE_REPORT, /* metrics, log, report */
    WEFT__PHASE_COUNT
} weft__phase;

typedef struct weft__progress {
    FILE *out;       /* stdout; NULL: quiet */
    bool bar;        /* out is a terminal, so the line is rewritten in place */
    bool color;      /* out is a terminal, and NO_COLOR is not set */
    bool line_shown; /* the terminal shows an unfinished line */
    bool tokens;
    uint64_t first, last;                /* steps done before this process; last step of the run */
    uint64_t batches_done, batches_left; /* batches of evaluations: done in this process; still to do */
    double batches_step;                 /* batches of a step */
    double drawn;                        /* when the line was last rewritten */
    double phase_from;                   /* start of the current phase */
    weft__phase phase;
    double seconds[WEFT__PHASE_COUNT];
} weft__progress;

/* Shows log messages of a context on standard error: warnings, and what WEFT_DEBUG asks for. */
void weft__show_log(void *user, weft_log_level level, const char *message);

/* Returns the seconds of a monotonic clock. */
double weft__now(void);

/* Starts with WEFT__PHASE_PREPARE. */
void weft__progress_start(weft__progress *progress, bool quiet, bool tokens);

/* Ends the current phase and starts another. Returns the seconds of the phase that ended. */
double weft__progress_phase(weft__progress *progress, weft__phase phase);

/* Tells whether there is a bar that was last drawn some time ago. */
bool weft__progress_stale(const weft__progress *progress);
/* Shows one logged step as a line, or redraws the bar. `done` is the number of steps done. A loss of NaN is
 * not known yet. */
void weft__progress_step(weft__progress *progress, uint64_t done, const weft__metrics *metrics);

/* Draws a line, with a bar if there is room for it: `share` of the work is done. On a terminal the line
 * replaces the last one. */
void weft__progress_draw(weft__progress *progress, double share, const char *line);
/* Removes the line from the terminal. */
void weft__progress_clear(weft__progress *progress);
/* Returns the most columns of a line. It asks the terminal each time, because a window can change its size.
 */
int weft__progress_width(const weft__progress *progress);
/* Writes a duration such as "1:02:03" or "4:05"; "?" if it is not known. */
void weft__progress_clock(double seconds, char out[32]);

/* Prints a line of its own. */
void weft__progress_say(weft__progress *progress, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Returns the seconds that the remaining steps and evaluations will take, NaN if not known yet. */
double weft__progress_left(const weft__progress *progress, uint64_t done);

/* Ends the line of the last step. */
void weft__progress_end(weft__progress *progress);
/* Prints tables of the time: by kind of work, and by phase. */
void weft__progress_times(const weft__progress *progress, const weft_profile_times *times);
/* Prints the beginning of a text that the model wrote. */
void weft__progress_sample(weft__progress *progress, const char *text, size_t bytes);

/* Adds the phases and kinds of work of this process to a summary of earlier processes. Time before the
 * profile began counts as host time. */
void weft__progress_summary(const weft__progress *progress, const weft_profile_times *times,
                            weft__summary *summary);

#endif
