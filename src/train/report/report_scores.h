/* The parts of report.html that show the scores of the model, and pictures of its data. Must not know: how
 * scores are computed. Read next: report_scores.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H
#define WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H

#include <stdio.h>
#include <weft/base.h>

/* Writes the tables of a run's scores.json: scores of each class, and the confusion matrix. Writes nothing if
 * the file does not exist. */
weft_status weft__report_scores(FILE *out, const char *dir);

/* Writes the pictures of a run's pictures.json, in the same way. */
weft_status weft__report_pictures(FILE *out, const char *dir);

#endif
