/* The folder of a run: its name, its lock, and the files that grow in it (metrics, log, samples). Must not
 * know: models, the loop, checkpoints (these belong to io/). Read next: run_dir.c, metrics.h. */
#ifndef WEFT_SRC_TRAIN_RUN_RUN_DIR_H
#define WEFT_SRC_TRAIN_RUN_RUN_DIR_H

#include <time.h>

#include <weft/io.h>

#include "base/text.h"
#include "train/run/metrics.h"

#define WEFT__RUNS_ROOT "runs"

#define WEFT__RUN_MARK "run"

typedef struct weft__run {
    char *dir;  /* such as "runs/gpt-L4-H4-E128-cpu-1" */
    int folder; /* descriptor of the folder; `dir` may name another place if the folder was moved */
    int moves;  /* how often the folder was found at a new place */
    weft_run_lock *lock;
    time_t beaten; /* when other machines were last told that the run is alive */
    int metrics;   /* metrics.jsonl, open for appending; -1: closed */
    int csv;       /* metrics.csv */
    int log;       /* log.txt */
    int events;    /* event file of TensorBoard */
    bool tokens;   /* the rate counts tokens, otherwise samples */
} weft__run;

/* Fails with WEFT_ERR_ARGUMENT if the folder holds a run, or files that are not Weft's. */
weft_status weft__run_refuse(const char *dir);

/* Makes and locks a new run folder, and marks it (io/mark.h). `dir` names the folder; it is WEFT_ERR_ARGUMENT
 * if it holds a run already, or files that are not Weft's. If `dir` is NULL, the folder is the first unused
 * one of runs/STEM-1, runs/STEM-2, ... */
weft_status weft__run_create(const char *dir, const char *stem, bool tokens, weft__run *run);

/* Makes the first unused folder of runs/STEM-1, runs/STEM-2, ... and writes its path. mkdir decides who gets
 * a number, so two runs never share a folder. */
weft_status weft__run_numbered(const char *stem, char *path, size_t bytes);

/* Locks an existing run and opens its files. A folder without a mark is a run of earlier versions if it has a
 * checkpoint. Returns WEFT_ERR_ARGUMENT if it is not a run, WEFT_ERR_BUSY if another process uses it. */
weft_status weft__run_open(const char *dir, bool tokens, weft__run *run);

/* Cuts metrics, log and samples back to the lines up to and including `step`. */
weft_status weft__run_truncate(weft__run *run, uint64_t step);

/* Appends one step to metrics.jsonl, metrics.csv and the TensorBoard events. */
weft_status weft__run_metrics(weft__run *run, const weft__metrics *metrics);

/* Finds where the folder is now, because somebody may move it during training. `dir` becomes its new path if
 * the system knows it (Linux does, in /proc). Otherwise, and if the folder was removed, returns WEFT_ERR_IO.
 * Functions here that write whole files call this themselves. Other code must call it before using `dir`. */
weft_status weft__run_follow(weft__run *run);

/* Tells other machines that the run is alive. The call is cheap: make it after each step and after anything
 * slow. */
void weft__run_beat(weft__run *run);

/* Flushes metrics and log to the disk, and follows the folder. Needed before a checkpoint, which relies on
 * the logs. */
weft_status weft__run_sync(weft__run *run);

/* Appends a line to log.txt: time, step, text. */
weft_status weft__run_log(weft__run *run, uint64_t step, const char *fmt, ...) WEFT_PRINTF(3, 4);

/* Writes samples/step-N.txt. */
weft_status weft__run_sample(weft__run *run, uint64_t step, const char *text, size_t bytes);

/* Writes DIR/NAME completely, or not at all. */
weft_status weft__run_write(weft__run *run, const char *name, const char *text);

/* Releases the lock and closes the files. An empty run (all zero, or closed) is allowed. */
void weft__run_close(weft__run *run);

#define WEFT__NUMBER_TEXT 40
/* Writes the shortest decimal that reads back as the same f32, or as the same f64 if the value is not an f32.
 * Returns out. */
const char *weft__number_text(double value, char out[WEFT__NUMBER_TEXT]);

#endif
