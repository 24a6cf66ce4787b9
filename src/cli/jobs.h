/* Trains several runs in processes of their own, in one folder: the folds of a cross-validation, the points
 * of a search. Must not know: why there are several. Read next: jobs.c, then cv.c and sweep.c. */
#ifndef WEFT_SRC_CLI_JOBS_H
#define WEFT_SRC_CLI_JOBS_H

#include <sys/types.h>

#include "cli/facts.h"
#include "cli/run.h"

typedef struct weft__job {
    char *name;             /* of its folder, such as fold-2; messages use it */
    weft__repeated changes; /* what it changes in the configuration, as --set does; owned */
    bool done;              /* has ended, maybe by divergence: the facts are there */
    bool before;            /* it had ended before this command began */
    weft__facts facts;
    pid_t process;  /* that trains it; 0: none */
    double began;   /* when the process began (weft__now) */
    double seconds; /* that it took; 0: it has not ended, or ended before this command began */
} weft__job;

typedef struct weft__jobs {
    weft__wanted wanted; /* the configuration that all share */
    const char *run;     /* --run: the folder, or NULL */
    int64_t at_once;     /* --jobs: processes at a time; 0: chosen by the device */
    bool json;           /* prints nothing but JSON at the end */
    char dir[4096];      /* the folder */
    weft__job *items;
    size_t count, capacity;
    weft__model_type model;
    weft__task task;
    bool shares; /* a device that processes should not share */
    int argc;    /* the command line */
    char **argv;
} weft__jobs;

/* The options of all commands that train several runs. */
#define WEFT__JOBS_OPTIONS(jobs)                                                                             \
    WEFT__DEVICE_OPTION(&(jobs)->wanted.device),                                                             \
        {"--jobs N", WEFT__OPTION_INT, &(jobs)->at_once,                                                     \
         "train N runs at a time, which divide the threads; default: a run for each thread of a CPU, else "  \
         "1"},                                                                                               \
        {"--run DIR", WEFT__OPTION_TEXT, &(jobs)->run,                                                       \
         "the folder of the runs; runs in it that have ended are kept; default: a new one in runs/"},        \
    {                                                                                                        \
        "--json", WEFT__OPTION_FLAG, &(jobs)->json, "print one JSON object"                                  \
    }

/* Adds a job. The texts are copied. */
weft_status weft__jobs_add(weft__jobs *jobs, const char *name, const char *const *changes, size_t count);

/* Checks the configuration of every job, and that runs which are in the folder already have the same one.
 * Sets model, task and shares. */
weft_status weft__jobs_check(weft__jobs *jobs);

/* Trains the jobs that have not ended. Makes the folder, which is runs/STEM-N unless --run names it. Prints a
 * line for each that ends. A stop (Ctrl-C) lets the runs save. Returns the exit code; unless it is
 * WEFT__EXIT_DONE, the cause was printed. Runs that diverge are no failure. */
int weft__jobs_run(weft__jobs *jobs, const char *stem);

void weft__jobs_free(weft__jobs *jobs);

/* Prints `weft VERB` with the configuration that all jobs share, for the last line of a command. */
void weft__jobs_print_command(const weft__jobs *jobs, const char *verb);

/* Writes a document to DIR/NAME, and prints it with --json. Closes `json`. */
weft_status weft__jobs_write(const weft__jobs *jobs, const char *name, weft__json *json, json_t *root);

#endif
