/* A run from beginning to end. Must not know: how models and data are made. Read next: loop.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_H
#define WEFT_SRC_TRAIN_RUN_LOOP_H

#include <weft/process_group.h>

#include "train/config/config.h"

typedef struct weft__train_options {
    const char *dir; /* folder of a new run, or NULL for an automatic name; with resume: the run */
    bool resume;
    bool strict; /* resume: fail instead of using an older checkpoint */
    bool quiet;
    bool verbose; /* shows where the time went */
    int argc;     /* the command line, for env.json */
    char **argv;
    weft_process_group *group; /* processes that train together; NULL: this one alone */
} weft__train_options;

/* How a run ended. */
typedef struct weft__train_result {
    char dir[512];
    int signal;       /* signal that stopped the run, after saving; 0: none */
    bool nothing;     /* resume: nothing was left to do */
    bool early;       /* the run ended by early stopping */
    char error[1024]; /* message of a failure, otherwise "" */
    /* with a group: */
    bool silent;   /* another process reports the failure */
    bool abandons; /* the other processes do not know of the failure: abort the group */
} weft__train_result;

/* Trains as the resolved configuration says. */
weft_status weft__train(weft__config *config, const weft__train_options *options, weft__train_result *result);

/* The same in a process that is not rank 0 of its group. */
weft_status weft__follow(weft__config *config, const weft__train_options *options,
                         weft__train_result *result);

#endif
