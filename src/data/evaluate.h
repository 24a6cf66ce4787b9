/* Means over all samples of a loader, in evaluation mode. Must not know: optimizers, files. Read next:
 * evaluate.c. */
#ifndef WEFT_SRC_DATA_EVALUATE_H
#define WEFT_SRC_DATA_EVALUATE_H

#include "data/loss.h"

/* What is measured, in this order. */
enum { WEFT__MEAN_LOSS, WEFT__MEAN_RIGHT, WEFT__MEAN_MARGIN, WEFT__MEANS };

/* Computes the first `count` means: the loss, the fraction of right answers, and the margins of pairs. NaN
 * after a failure. */
weft_status weft__evaluate_means(weft_module *m, weft_loader *loader, const weft__loss *loss, int count,
                                 double means[WEFT__MEANS]);

#endif
