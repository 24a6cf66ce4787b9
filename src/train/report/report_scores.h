/* The parts of report.html that show JSON files of the run: scores, pictures, processes. Must not know: how
 * scores are computed. Read next: report_scores.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H
#define WEFT_SRC_TRAIN_REPORT_REPORT_SCORES_H

#include <stdio.h>
#include <weft/base.h>

#include "base/json.h"

/* Reads a sealed JSON file of the run and lets `put` show it. Writes nothing if the file does not exist. If
 * it is damaged, the report says so; `advice` ends the sentence. */
weft_status weft__report_json(FILE *out, const char *dir, const char *name,
                              void (*put)(FILE *out, const json_t *all), const char *advice);

/* Writes a text of an object, if it has this text. */
void weft__report_text(FILE *out, const json_t *object, const char *key);

/* Writes the tables of a run's scores.json: scores of each class, and the confusion matrix. Writes nothing if
 * the file does not exist. */
weft_status weft__report_scores(FILE *out, const char *dir);

/* Writes the pictures of a run's pictures.json, in the same way. */
weft_status weft__report_pictures(FILE *out, const char *dir);

/* Writes the table of a run's processes.json, in the same way (report_processes.c). */
weft_status weft__report_processes(FILE *out, const char *dir);

#endif
