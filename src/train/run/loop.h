/* A run from beginning to end. Read next: loop.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_H
#define WEFT_SRC_TRAIN_RUN_LOOP_H

#include "train/config/config.h"

typedef struct weft__train_options {
    const char *dir; /* of a new run, or NULL to have it named; to resume: the run */
    bool resume;
    bool strict; /* resume: fail rather than fall back to an older checkpoint */
    bool quiet;
    int argc; /* the command line, for env.json */
    char **argv;
} weft__train_options;

/* How it ended. */
typedef struct weft__train_result {
    char dir[512];
    int signal;       /* that stopped it, after saving; 0: none */
    bool nothing;     /* resume: there was nothing left to do */
    bool early;       /* since it had stopped early */
    char error[1024]; /* the message of a failure, "" otherwise */
} weft__train_result;

/* Trains as the resolved configuration says. */
weft_status weft__train(weft__config *config, const weft__train_options *options, weft__train_result *result);

#endif
