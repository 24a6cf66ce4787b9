/* Pictures of a classifier of images, for the report: its worst mistakes, and examples of each class. Must
 * not know: HTML, the loop. Read next: pictures.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_PICTURES_H
#define WEFT_SRC_TRAIN_REPORT_PICTURES_H

#include "train/report/scores.h"

/* Writes pictures.json into a run folder:
 *
 *     {"mistakes": [{"class": ..., "predicted": ..., "probability": ..., "png": BASE64}, ...],
 *      "examples": [{"class": ..., "pngs": [BASE64, ...]}, ...]}
 *
 * `scores` are those of the split. Examples are training images. Writes nothing if the samples are not images
 * of 8-bit channels, or have no classes. */
weft_status weft__pictures_write(const char *dir, const weft__dataset *dataset, weft__split split,
                                 const weft__scores *scores);

#endif
