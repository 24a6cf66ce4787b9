/* Reads what a run left behind, its metrics and its summary, for reports and comparisons. Must not know: the
 * loop. Read next: train/report/report.c. */
#ifndef WEFT_SRC_TRAIN_RUN_HISTORY_H
#define WEFT_SRC_TRAIN_RUN_HISTORY_H

#include "train/run/run_dir.h"
#include "train/run/times.h"

/* summary.json: what is known about a run as a whole. */
typedef struct weft__summary {
    char model[64]; /* such as "gpt-L4-H4-E128" */
    char device[32];
    char status[16]; /* running, done, stopped, stopped early, diverged, failed, killed */
    uint64_t parameters;
    uint64_t step;       /* steps done */
    uint64_t steps;      /* steps wanted */
    uint64_t epoch_size; /* steps of an epoch */
    double seconds;      /* total time of training, over all resumes */
    bool tokens;
    weft__results results;
    weft__shares phases; /* time by phase: prepare, train, ... */
    weft__shares parts;  /* the same time by kind of work: matmul, host, ... */
    /* telemetry of the card, means of this process; written but not read */
    weft_telemetry telemetry;
    /* tuning choices that the device measured; written here, read by weft__choices_read */
    const struct weft_tile_choice *choices;
    int n_choices;
} weft__summary;

weft_status weft__summary_write(weft__run *run, const weft__summary *summary);
/* Returns WEFT_ERR_STATE if there is no summary, WEFT_ERR_FORMAT if it is damaged or was edited. */
weft_status weft__summary_read(const char *dir, weft__summary *summary);
/* Reads the tuning choices of the summary. The caller frees them with weft__free(NULL, *list). There are none
 * without a summary. The choices go unchanged to a library of the device, so a summary that is damaged or was
 * edited is WEFT_ERR_FORMAT. */
weft_status weft__choices_read(const char *dir, struct weft_tile_choice **list, int *count);

typedef struct weft__history {
    weft__metrics *lines;
    size_t count, capacity;
    size_t damaged, first_damaged; /* lines that were skipped; number of the first one, from 1 */
    weft__metrics averages;        /* of the lines that have the number; NaN if no line has it */
    bool tokens;
} weft__history;

/* Reads metrics.jsonl. Damaged lines and an incomplete last line are skipped, because a wrong bit in a log
 * must not end a run. */
weft_status weft__history_read(const char *dir, weft__history *history);
void weft__history_free(weft__history *history);

#define WEFT__DAMAGE_TEXT 128
/* Returns "metrics.jsonl:7 is damaged: ..." for reports that show a history with damaged lines, otherwise "".
 * The text is in `out`. */
const char *weft__history_damage(const weft__history *history, char out[WEFT__DAMAGE_TEXT]);

/* Returns the smallest val_loss if there is one, otherwise the smallest loss. NaN if there is neither. */
double weft__history_best(const weft__history *history);

#endif
