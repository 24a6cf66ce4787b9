/* How good a model is on a part of its data: loss, and what the task measures. Read next: scores.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_SCORES_H
#define WEFT_SRC_TRAIN_REPORT_SCORES_H

#include <stdio.h>

#include <weft/metrics.h>

#include "base/json.h"
#include "train/model/model.h"

typedef struct weft__scores {
    weft__task task;
    int64_t samples;
    double loss;
    double accuracy;            /* of tokens or classes; NaN of numbers */
    weft_class_scores classes;  /* of classification */
    weft_number_scores numbers; /* of regression, in the units of the data */
} weft__scores;

/* Measures the model on a loader of the split. auc: areas under ROC curves too, which takes sorting. To be
 * freed by weft__scores_free, after a failure too. */
weft_status weft__scores_take(const weft__model *model, const weft__dataset *dataset, weft_loader *loader,
                              bool auc, weft__scores *scores);
void weft__scores_free(weft__scores *scores);

/* {"loss": ..., "accuracy": ..., "classes": [...], "confusion": [[...]]}, between weft__json_build and
 * weft__json_text. */
json_t *weft__scores_json(const weft__scores *scores, const weft__dataset *dataset);

/* The same as lines to read, behind a name: "validation". */
void weft__scores_print(FILE *out, const char *name, const weft__scores *scores,
                        const weft__dataset *dataset);

/* The name of a class, as the data or its number. Returns the name or out. */
const char *weft__class_name(const weft__dataset *dataset, int64_t class, char out[24]);

/* The one class that all samples were taken for, though there are others; -1: there is none such. */
int64_t weft__scores_only(const weft__scores *scores);

#endif
