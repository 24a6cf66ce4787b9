/* The folder of a run: its name, its lock, and the files that grow in it (metrics, log, samples).
 * Must not know: models, the loop. Checkpoints are io/'s. Read next: run_dir.c, history.h. */
#ifndef WEFT_SRC_TRAIN_RUN_RUN_DIR_H
#define WEFT_SRC_TRAIN_RUN_RUN_DIR_H

#include <time.h>

#include <weft/io.h>

#include <weft/tensor.h>

#include "base/base.h"

#define WEFT__RUNS_ROOT "runs"

typedef struct weft__run {
    char *dir;  /* "runs/gpt-L4-H4-E128-cpu-1" */
    int folder; /* the folder itself, open: dir may lead elsewhere by now */
    int moves;  /* how often it was found elsewhere */
    weft_run_lock *lock;
    time_t beaten; /* when other machines were last told that it lives */
    int metrics;   /* metrics.jsonl, open for appending; -1: closed */
    int csv;       /* metrics.csv */
    int log;       /* log.txt */
    int events;    /* TensorBoard's event file */
    bool tokens;   /* the rate is of tokens, otherwise of samples */
} weft__run;

/* One logged step. What was not measured is NaN (memory_peak: 0) and left out. */
typedef struct weft__metrics {
    uint64_t step;
    double loss, lr, grad_norm;
    double rate; /* tokens or samples a second */
    double val_loss, val_accuracy;
    double epoch;                     /* passes over the training data, with fraction */
    double epoch_seconds;             /* of the epoch that ended with this step */
    uint64_t memory_peak;             /* bytes of the process */
    weft_gauges gauges;               /* of the card, means since the line before */
    double loss_scale;                /* f16: that of the next step */
    double val_f1, val_auc;           /* classification: means over classes */
    double val_r2, val_rmse, val_mae; /* regression, in the units of the data */
} weft__metrics;

/* X(member, the chart's title, TensorBoard's tag) of what tasks measure beside loss and accuracy. */
#define WEFT__SCORES(X)                                                                                      \
    X(val_f1, "Validation F1, mean over classes", "f1/validation")                                           \
    X(val_auc, "Validation ROC AUC", "auc/validation")                                                       \
    X(val_r2, "Validation R2", "r2/validation")                                                              \
    X(val_rmse, "Validation root mean square error", "rmse/validation")                                      \
    X(val_mae, "Validation mean absolute error", "mae/validation")

/* X(name, member, the chart's title) of each of them, as metrics.jsonl and the events name it. */
#define WEFT__GAUGES(X)                                                                                      \
    X(gpu_utilisation, utilisation, "Card: part of the time in use")                                         \
    X(gpu_memory, memory_used, "Card: bytes of memory in use")                                               \
    X(gpu_power, power, "Card: watts")                                                                       \
    X(gpu_clock, clock, "Card: clock, MHz")                                                                  \
    X(gpu_memory_clock, memory_clock, "Card: clock of its memory, MHz")                                      \
    X(gpu_temperature, temperature, "Card: degrees Celsius")

/* Everything NaN but the step. */
weft__metrics weft__metrics_none(uint64_t step);

/* Makes and locks a new folder: `dir` itself (WEFT_ERR_ARGUMENT when it holds a run already), or, with dir
 * NULL, the first of runs/STEM-1, runs/STEM-2, ... that never was. */
weft_status weft__run_create(const char *dir, const char *stem, bool tokens, weft__run *run);

/* Locks an existing run and opens its files. WEFT_ERR_ARGUMENT when it is none, WEFT_ERR_BUSY. */
weft_status weft__run_open(const char *dir, bool tokens, weft__run *run);

/* Cuts metrics, log and samples back to what was written up to and including `step`. */
weft_status weft__run_cut(weft__run *run, uint64_t step);

/* Appends one step to metrics.jsonl, metrics.csv and the TensorBoard events. */
weft_status weft__run_metrics(weft__run *run, const weft__metrics *metrics);

/* Looks where the folder is now: somebody may move it while it trains. Then `dir` becomes its new path where
 * the system tells it (Linux does, by /proc), and otherwise, or where the folder was removed, WEFT_ERR_IO
 * says so. Called by what writes whole files here; by others before they use `dir`. */
weft_status weft__run_follow(weft__run *run);

/* Tells other machines that the run lives: cheap, after each step and whatever else takes long. */
void weft__run_beat(weft__run *run);

/* Brings metrics and log to the disk, and follows the folder: before a checkpoint that counts on them. */
weft_status weft__run_sync(weft__run *run);

/* Appends a line to log.txt: time, step, text. */
weft_status weft__run_log(weft__run *run, uint64_t step, const char *fmt, ...) WEFT_PRINTF(3, 4);

/* Writes samples/step-N.txt. */
weft_status weft__run_sample(weft__run *run, uint64_t step, const char *text, size_t bytes);

/* Writes DIR/NAME whole, or nothing. */
weft_status weft__run_write(weft__run *run, const char *name, const char *text);

/* Gives the lock back and closes the files. An empty (all zero or closed) run is fine. */
void weft__run_close(weft__run *run);

/* DIR/NAME into a buffer: false when it does not fit. */
bool weft__join(char *out, size_t bytes, const char *dir, const char *name);

/* True when the folder has what a run has (a config.yaml). */
bool weft__is_run(const char *dir);

#define WEFT__NUMBER_TEXT 40
/* The shortest decimal that reads back the same f32 (where the value is one) or f64. Returns out. */
const char *weft__number_text(double value, char out[WEFT__NUMBER_TEXT]);

#endif
