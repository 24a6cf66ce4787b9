/* The state of the loop, and how it is set up. Must not know: steps. Read next: loop_setup.c, then loop.c. */
#ifndef WEFT_SRC_TRAIN_RUN_LOOP_SETUP_H
#define WEFT_SRC_TRAIN_RUN_LOOP_SETUP_H

#include "train/analysis/auto.h"
#include "train/run/telemetry.h"
#include "train/run/history.h"
#include "train/run/loop.h"
#include "train/run/processes.h"
#include "train/model/model.h"
#include "train/run/progress.h"
#include "train/run/replicas.h"
#include "train/run/training.h"
#include "train/report/scores.h"

typedef struct weft__sample {
    char *data; /* NULL: none */
    size_t size, capacity;
    size_t from; /* where the part begins that is worth showing */
} weft__sample;

typedef struct weft__loop {
    weft__config *config;
    const weft__train_options *options;
    weft__auto choice; /* the choice of device */
    weft__dataset dataset;
    weft__model model;
    weft__replicas replicas;                 /* copies on further devices */
    weft__processes processes;               /* others that share the steps */
    weft_checkpoint *checkpoint;             /* from which they read the state that they divide; or NULL */
    weft_loader *loader, *validation, *test; /* the last two are NULL without such data */
    weft_loader *whole;       /* all validation data, if evaluations in training use a part; otherwise NULL */
    weft_decode_state *cache; /* for samples; NULL until the first sample */
    weft__run run;
    weft__telemetry *telemetry; /* telemetry of the card; NULL: it has none */
    weft__progress progress;
    weft_profile *profile;            /* of the whole process; some of its runs are timed */
    weft__summary before;             /* summary that earlier processes of the run left */
    struct weft_tile_choice *choices; /* tuning choices of their device */
    weft__summary summary;            /* summary of this process */
    weft__metrics last;               /* what was logged last */
    weft__stopping stopping;          /* state of the evaluations so far */
    weft__scores scores;              /* scores of the last evaluation */
    weft__sample sample;              /* the text that the model wrote last */
    double test_r2;                   /* regression with test data; otherwise NaN */
    float *class_weights;             /* [outputs], or NULL */
    uint64_t steps, first;            /* steps wanted; steps done before this process */
    uint64_t saved;                   /* step of the newest checkpoint; UINT64_MAX: none */
    double items;                     /* tokens or samples of a step */
    double rate_seconds;              /* since the last logged step */
    uint64_t rate_steps;
    double epoch_started;
    double
        report_due; /* time from which a report of the run under way is due; 0: after the first logged step */
    int signal;
    bool hinted;     /* the hint about a single predicted class was given */
    bool introduced; /* training has begun: this process wrote the summary in the folder */
    bool ended;      /* follower: the leader has ordered the end */
} weft__loop;

/* The first half of weft__loop_open, which needs no run folder. Reads the data, builds the model, and makes
 * its loaders and optimizer. Tokenizer and class names come from the folder `run`, which may be NULL. */
weft_status weft__loop_prepare(weft__loop *loop, weft__config *config, const char *run);

/* Reads the data, builds the model, makes or opens the run folder, and loads the checkpoint of a resumed run.
 * The caller frees *loop with weft__loop_close, also after a failure. */
weft_status weft__loop_open(weft__loop *loop, weft__config *config, const weft__train_options *options);
void weft__loop_close(weft__loop *loop);

/* The same for a follower, which has no run folder of its own: it only reads that of a resumed run. */
weft_status weft__loop_follow(weft__loop *loop, weft__config *config, const weft__train_options *options);

/* Lets the processes of the run begin together, if opening or following gave WEFT_OK in all of them
 * (weft__processes_join). */
weft_status weft__loop_unite(weft__loop *loop, weft_status status, bool *silent);

/* Tells whether the run has made all its steps, or stopped early. */
bool weft__loop_done(const weft__loop *loop);

/* Returns the options of weft_fit for this run, without callbacks. */
weft_fit_options weft__loop_fit(const weft__loop *loop, uint64_t steps);

/* Writes summary.json with this status. */
weft_status weft__loop_summary(weft__loop *loop, const char *status);

#endif
