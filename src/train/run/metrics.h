/* The metrics of a run, and the table that says how each one is named, written and shown. Must not know:
 * files, terminals, the loop. Read next: metrics.def. */
#ifndef WEFT_SRC_TRAIN_RUN_METRICS_H
#define WEFT_SRC_TRAIN_RUN_METRICS_H

#include <weft/tensor.h>

#include "train/print.h"

/* One logged step. A number that was not measured is NaN and is not written. */
typedef struct weft__metrics {
    uint64_t step;
#define METRIC(column, member, ...) double member;
#define TELEMETRY(column, member, key, ...)
#include "train/run/metrics.def"
    weft_telemetry telemetry; /* telemetry of the card, means since the previous line */
} weft__metrics;

/* What a run ends with. NaN: not measured. */
typedef struct weft__results {
#define RESULT(member, label, notation, digits) double member;
#include "train/run/metrics.def"
} weft__results;

enum {
    WEFT__METRICS = 0
#define METRIC(column, member, ...) +1
#include "train/run/metrics.def"
    ,
    WEFT__RESULTS = 0
#define RESULT(member, label, notation, digits) +1
#include "train/run/metrics.def"
};

/* The report shows the curves of the parts one after the other. */
typedef enum weft__metric_part {
    WEFT__PART_TRAINING,
    WEFT__PART_VALIDATION,
    WEFT__PART_CARD /* telemetry: not in metrics.csv, and shown only if there is any */
} weft__metric_part;

/* A text of a metric. The second one is for runs whose samples are tokens; NULL: the same. */
typedef const char *weft__metric_text[2];

/* A row of metrics.def. A text that is NULL: the metric does not appear there. */
typedef struct weft__metric {
    size_t offset; /* of the member in weft__metrics */
    weft__metric_part part;
    weft__metric_text name;     /* the key in metrics.jsonl, the column of metrics.csv */
    weft__metric_text tag;      /* the tag of TensorBoard */
    weft__metric_text title;    /* the title of its own chart in the report */
    const char *style;          /* of the curve, as in weft__series */
    weft__metric_text card;     /* label of the average, on a card of the report */
    weft__metric_text compared; /* label of the average, in `weft compare` */
    bool median;                /* the average is the median instead of the mean */
    bool due; /* checkpoints keep the number if a stop interrupted the evaluation of the step */
    /* the line of progress: the label, the number, the unit; WEFT__NOTATION_NONE: not there */
    const char *label;
    weft__notation notation;
    int digits;
    weft__metric_text unit;
    int gives_way; /* where the line is too narrow for all: the order in which metrics leave it, from 1; 0:
                      stays */
    /* telemetry: the place in the line at the end of training, from 1; 0: not there. The number is multiplied
     * by the factor, and the unit follows. */
    int place;
    double factor;
} weft__metric;

extern const weft__metric weft__metric_columns[WEFT__METRICS];     /* in the order of files */
extern const weft__metric *const weft__metric_rows[WEFT__METRICS]; /* in the order of metrics.def */

/* A RESULT row of metrics.def. */
typedef struct weft__result {
    const char *name;  /* the key in summary.json */
    const char *label; /* in the report and in `weft compare` */
    size_t offset;     /* of the member in weft__results */
    weft__notation notation;
    int digits;
} weft__result;

extern const weft__result weft__result_rows[WEFT__RESULTS];

/* Returns metrics of a step with all numbers NaN. */
weft__metrics weft__metrics_none(uint64_t step);

double weft__metric_get(const weft__metrics *metrics, const weft__metric *metric);
void weft__metric_set(weft__metrics *metrics, const weft__metric *metric, double value);

/* Returns the bytes of the process at its peak, or NaN if the system does not tell. */
double weft__memory_peak(void);

/* Chooses between the two texts of a metric. */
const char *weft__metric_word(const weft__metric_text text, bool tokens);

/* Returns results that are all NaN. */
weft__results weft__results_none(void);

double weft__result_get(const weft__results *results, const weft__result *result);
void weft__result_set(weft__results *results, const weft__result *result, double value);

#endif
