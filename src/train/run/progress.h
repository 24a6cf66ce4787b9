/* What the terminal shows of a run. Read next: progress.c. */
#ifndef WEFT_SRC_TRAIN_RUN_PROGRESS_H
#define WEFT_SRC_TRAIN_RUN_PROGRESS_H

#include <stdio.h>

#include "train/run/history.h"

typedef enum weft__phase {
    WEFT__PHASE_PREPARE, /* reading data, building the model */
    WEFT__PHASE_TRAIN,   /* batches, and their steps */
    WEFT__PHASE_EVAL,
    WEFT__PHASE_SAVE,
    WEFT__PHASE_SAMPLE,
    WEFT__PHASE_REPORT, /* metrics, log, report */
    WEFT__PHASE_COUNT
} weft__phase;

typedef struct weft__progress {
    FILE *out;       /* stdout; NULL: quiet */
    bool bar;        /* out is a terminal: the line is rewritten in place */
    bool color;      /* and NO_COLOR is not set */
    bool line_shown; /* an unfinished line stands on the terminal */
    bool tokens;
    uint64_t first, last; /* steps of this process: first done before, last to do */
    uint64_t epoch_size;
    double started;    /* by weft__now */
    double drawn;      /* when the line was last rewritten */
    double phase_from; /* beginning of the current phase */
    weft__phase phase;
    double seconds[WEFT__PHASE_COUNT];
} weft__progress;

/* A context's log on standard error: warnings, and what WEFT_DEBUG asks for. */
void weft__show_log(void *user, weft_log_level level, const char *message);

/* Seconds of a clock that never jumps. */
double weft__now(void);

/* Begins in WEFT__PHASE_PREPARE. */
void weft__progress_start(weft__progress *progress, bool quiet, bool tokens);

/* Ends the current phase and begins another. Returns the seconds of the one that ended. */
double weft__progress_phase(weft__progress *progress, weft__phase phase);

/* Is there a bar, and was it drawn some time ago? */
bool weft__progress_stale(const weft__progress *progress);
/* One logged step: a line, or the bar rewritten (loss NaN: not known yet). done: steps done. */
void weft__progress_step(weft__progress *progress, uint64_t done, const weft__metrics *metrics);

/* A line of its own among the others. */
void weft__progress_say(weft__progress *progress, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Ends the line and prints the tables of where the time went: by the parts of the profile, and by phases. */
void weft__progress_end(weft__progress *progress, const weft_profile_times *times);

/* Adds phases and parts to those that a summary has of earlier processes of the run. What was before the
 * profile began is the host's. */
void weft__progress_summary(const weft__progress *progress, const weft_profile_times *times,
                            weft__summary *summary);

#endif
