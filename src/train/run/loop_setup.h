/* What the loop works on, and how it is set up. Read next: loop_setup.c, then loop.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_SETUP_H
#define WEFT_SRC_TRAIN_RUN_LOOP_SETUP_H

#include "train/analysis/auto.h"
#include "train/run/gauging.h"
#include "train/run/history.h"
#include "train/run/loop.h"
#include "train/model/model.h"
#include "train/run/progress.h"
#include "train/model/replicas.h"
#include "train/report/scores.h"

typedef struct weft__loop {
    weft__config *config;
    const weft__train_options *options;
    weft__auto choice; /* of the device */
    weft__dataset dataset;
    weft__model model;
    weft__replicas replicas;                 /* on further devices */
    weft_loader *loader, *validation, *test; /* the last two NULL without data */
    weft_gpt_cache *cache;                   /* for samples; NULL until the first */
    weft__run run;
    weft__gauging *gauging; /* of the card; NULL: it has no gauges */
    weft__progress progress;
    weft_profile *profile;            /* of the whole process, some of its runs timed */
    weft__summary before;             /* as earlier processes of the run left it, */
    struct weft_tile_choice *choices; /* and what their device chose */
    weft__summary summary;            /* now */
    weft__metrics last;               /* what was last logged */
    weft__stopping stopping;          /* of the evaluations so far */
    weft__scores scores;              /* of the last one */
    double test_r2;                   /* regression with test data; else NaN */
    float *class_weights;             /* [outputs], or NULL */
    uint64_t steps, first;            /* wanted; done before this process */
    uint64_t saved;                   /* step of the newest checkpoint; UINT64_MAX: none */
    double items;                     /* tokens or samples of a step */
    double rate_seconds;              /* since the last logged step */
    uint64_t rate_steps;
    double epoch_started;
    double reported; /* when the report was last written */
    int signal;
    bool hinted;     /* that only one class is predicted */
    bool introduced; /* training has begun: the summary in the folder is this process's */
} weft__loop;

/* The first half of weft__loop_open, which needs no folder: reads data (tokenizer and class names from `run`,
 * which may be NULL), builds the model, its loaders and its optimizer. */
weft_status weft__loop_prepare(weft__loop *loop, weft__config *config, const char *run);

/* Reads data, builds the model, makes or opens the run folder, loads the checkpoint of a resumed run. What
 * was made is freed by weft__loop_close, after a failure too. */
weft_status weft__loop_open(weft__loop *loop, weft__config *config, const weft__train_options *options);
void weft__loop_close(weft__loop *loop);

/* What weft_fit is told of the run, but for callbacks. */
weft_fit_options weft__loop_fit(const weft__loop *loop, uint64_t steps);

/* Writes summary.json with a status word. */
weft_status weft__loop_summary(weft__loop *loop, const char *status);

#endif
