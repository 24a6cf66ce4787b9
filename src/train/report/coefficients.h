/* What a linear or logistic model has learned, by the columns of its data. Read next: coefficients.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_COEFFICIENTS_H
#define WEFT_SRC_TRAIN_REPORT_COEFFICIENTS_H

#include "train/model/model.h"

typedef struct weft__coefficients {
    int64_t outputs, columns;
    /* of each output (a number to predict; a class, or of two classes the second) and each column: */
    double *original; /* [outputs * columns] per unit of the column, in units of the target or of log odds */
    double
        *standardised; /* [outputs * columns] as it was trained: per deviation, in deviations of the target */
    double *bias;      /* [outputs] of the first, */
    double *bias_standardised; /* and of the second */
    double *mean, *deviation;  /* [columns] that the columns were standardised by */
} weft__coefficients;

/* WEFT_ERR_ARGUMENT where the model is not one layer. To be freed by weft__coefficients_free, always. */
weft_status weft__coefficients_take(const weft__model *model, const weft__config *config,
                                    const weft__dataset *dataset, weft__coefficients *out);
void weft__coefficients_free(weft__coefficients *c);

/* The name of a column, or its number from 1 on; of an output. Returns the name or buffer. */
const char *weft__column_name(const weft__dataset *dataset, int64_t column, char buffer[24]);
const char *weft__output_name(const weft__dataset *dataset, int64_t output, char buffer[24]);

#endif
