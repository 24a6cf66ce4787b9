/* A trained model taken from its run folder, to be used. Read next: use.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_USE_H
#define WEFT_SRC_TRAIN_MODEL_USE_H

#include "train/analysis/auto.h"

typedef struct weft__use {
    weft__config config;
    weft__auto choice; /* of the device */
    weft__dataset dataset;
    weft__model model;
    uint64_t step; /* of the checkpoint */
} weft__use;

#define WEFT__AS_COMPUTED ""
typedef struct weft__use_options {
    const char *device;    /* NULL: WEFT_DEVICE, or the run's */
    const char *precision; /* of the weights: NULL, as they are kept; WEFT__AS_COMPUTED, rounded to what its
                              layers computed in */
    const char
        *checkpoint; /* best, last, or a step; NULL: the best where one is kept, else the last whole one */
    bool with_data;  /* the data is read too, otherwise only what describes it */
} weft__use_options;

/* Opens a checkpoint of a run. Freed by weft__use_close, after a failure too. */
weft_status weft__use_open(const char *run, const weft__use_options *options, weft__use *use);
void weft__use_close(weft__use *use);

/* The configuration of a run folder, with the device replaced. */
weft_status weft__use_config(const char *run, const char *device, weft__config *config);

#endif
