/* The scores of a model on a part of its data: the loss, and the measures of the task. Must not know: the
 * loop. Read next: scores.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_SCORES_H
#define WEFT_SRC_TRAIN_REPORT_SCORES_H

#include <stdio.h>

#include <weft/metrics.h>

#include "base/json.h"
#include "learn/evaluate.h"
#include "train/model/model.h"

/* A sample whose class was not predicted. */
typedef struct weft__mistake {
    int64_t sample, actual, predicted; /* number of the sample in its split; classes */
    double probability;                /* of the predicted class */
} weft__mistake;

enum { WEFT__MISTAKES = 12 };

typedef struct weft__scores {
    weft__task task;
    bool pairs; /* preferences, which are another task of language models */
    int64_t samples;
    double loss;
    double accuracy;            /* accuracy of tokens, classes or pairs; NaN for numbers */
    double margin;              /* mean difference of the rewards of pairs */
    weft_class_scores classes;  /* for classification */
    weft_number_scores numbers; /* for regression, in the units of the data */
    /* for classification: those predicted with the highest probability, highest first */
    weft__mistake mistakes[WEFT__MISTAKES];
    int mistake_count;
} weft__scores;

/* A row of scores.def. */
typedef struct weft__score {
    const char *key, *label;
} weft__score;

enum {
    WEFT__SCORES = 0
#define SCORE(key, label, tasks, value, notation, digits) +1
#include "train/report/scores.def"
    ,
    WEFT__CLASS_SCORES = 0
#define CLASS_SCORE(member, label) +1
#include "train/report/scores.def"
};

extern const weft__score weft__score_rows[WEFT__SCORES];
extern const weft__score weft__class_score_rows[WEFT__CLASS_SCORES];

/* Measures the model on a loader of the split. `auc` adds areas under ROC curves, which need sorting. The
 * caller frees *scores with weft__scores_free, also after a failure. */
weft_status weft__scores_take(const weft__model *model, const weft__dataset *dataset, weft_loader *loader,
                              bool auc, weft__scores *scores);
/* The same on several devices that have the model. The scores have the same bits. */
weft_status weft__scores_gather(const weft__model *model, const weft__dataset *dataset,
                                const weft__evaluators *on, bool auc, weft__scores *scores);
void weft__scores_free(weft__scores *scores);

/* Returns {"loss": ..., "accuracy": ..., "classes": [...], "confusion": [[...]]}. Call this between
 * weft__json_build and weft__json_text. */
json_t *weft__scores_json(const weft__scores *scores, const weft__dataset *dataset);

/* Prints the scores as lines for people, after a name such as "validation". */
void weft__scores_print(FILE *out, const char *name, const weft__scores *scores,
                        const weft__dataset *dataset);

/* Returns the name of a class, or its number if classes have no names. The result is the stored name or
 * `out`. */
const char *weft__class_name(const weft__dataset *dataset, int64_t class, char out[24]);

/* Returns the class that the model predicts for all samples although the data have other classes. Returns -1
 * if there is no such class. */
int64_t weft__scores_only(const weft__scores *scores);

#endif
