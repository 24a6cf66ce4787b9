/* What a run left behind, read back: its metrics and its summary, for reports and comparisons.
 * Must not know: the loop. Read next: report.c. */
#ifndef WEFT_SRC_TRAIN_RUN_HISTORY_H
#define WEFT_SRC_TRAIN_RUN_HISTORY_H

#include "train/run/run_dir.h"
#include "train/run/times.h"

/* What is known about a run as a whole: summary.json. */
typedef struct weft__summary {
    char model[64]; /* "gpt-L4-H4-E128" */
    char device[32];
    char status[16]; /* running, done, stopped, diverged, failed */
    uint64_t parameters;
    uint64_t step;       /* done so far */
    uint64_t steps;      /* wanted */
    uint64_t epoch_size; /* steps of an epoch */
    double seconds;      /* training in all, over all resumes */
    bool tokens;
    double val_loss, test_loss, test_accuracy; /* final; NaN when not measured */
    weft__shares phases;                       /* preparing, training, ... */
    weft__shares parts;                        /* the same time again: matmul, host, ... */
    weft_gauges gauges;                        /* of the card, on average in this process; only written */
    const struct weft_tile_choice *choices;    /* that the device made by measuring: only written */
    int n_choices;
} weft__summary;

weft_status weft__summary_write(weft__run *run, const weft__summary *summary);
/* WEFT_ERR_STATE where there is none, WEFT_ERR_FORMAT where it is damaged or was edited. */
weft_status weft__summary_read(const char *dir, weft__summary *summary);
/* The choices in it, to be freed with weft__free(NULL, *list); none where there is no summary. They go to the
 * device's library as they are, so WEFT_ERR_FORMAT where the summary is damaged or was edited. */
weft_status weft__choices_read(const char *dir, struct weft_tile_choice **list, int *count);

typedef struct weft__history {
    weft__metrics *lines;
    size_t count, capacity;
    size_t damaged, first_damaged; /* lines that were left out; the number of the first, from 1 */
    double rate;                   /* median of the lines; NaN where no line tells one */
    bool tokens;
} weft__history;

/* Reads metrics.jsonl; damaged lines and a torn last one are left out: a bad bit in a log must not end a run.
 */
weft_status weft__history_read(const char *dir, weft__history *history);
void weft__history_free(weft__history *history);

#define WEFT__DAMAGE_TEXT 128
/* "metrics.jsonl:7 is damaged: ..." for whoever shows a history with damaged lines; else "". Returns out. */
const char *weft__history_damage(const weft__history *history, char out[WEFT__DAMAGE_TEXT]);

/* Least val_loss where there is one, otherwise least loss; NaN when there is nothing. */
double weft__history_best(const weft__history *history);
/* What the card said of itself, on average of the lines that tell; NaN where none does. */
weft_gauges weft__history_gauges(const weft__history *history);

#endif
