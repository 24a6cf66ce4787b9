/* The part of report.html that tells how good the model is. Read next: report_scores.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H
#define WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H

#include <stdio.h>
#include <weft/base.h>

/* Tables of a run's scores.json: of each class, and the confusion matrix. Nothing where there is no such
 * file. */
weft_status weft__report_scores(FILE *out, const char *dir);

#endif
