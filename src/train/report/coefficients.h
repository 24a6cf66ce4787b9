/* The coefficients of a linear or logistic model, for each column of its data. Must not know: how
 * coefficients are shown. Read next: coefficients.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_COEFFICIENTS_H
#define WEFT_SRC_TRAIN_REPORT_COEFFICIENTS_H

#include "train/model/model.h"

typedef struct weft__coefficients {
    /* An output is a number to predict or a class. A logistic model of two classes has one output, for the
     * second class. */
    int64_t outputs, columns;
    /* [outputs * columns] change per unit of the column, in units of the target or of log odds */
    double *original;
    /* [outputs * columns] as trained: change per deviation of the column, in deviations of the target */
    double *standardised;
    double *bias;              /* [outputs] bias that belongs to `original` */
    double *bias_standardised; /* [outputs] bias that belongs to `standardised` */
    double *mean, *deviation;  /* [columns] mean and deviation of each column */
} weft__coefficients;

/* Returns WEFT_ERR_ARGUMENT if the model is not a single layer. The caller frees *out with
 * weft__coefficients_free, also after a failure. */
weft_status weft__coefficients_take(const weft__model *model, const weft__config *config,
                                    const weft__dataset *dataset, weft__coefficients *out);
void weft__coefficients_free(weft__coefficients *c);

/* Return the name of a column or of an output, or its number if it has no name. The result is the stored name
 * or `buffer`. */
const char *weft__column_name(const weft__dataset *dataset, int64_t column, char buffer[24]);
const char *weft__output_name(const weft__dataset *dataset, int64_t output, char buffer[24]);

#endif
