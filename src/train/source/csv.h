/* What sources with columns share: csv.c and texts.c. Must not know: models. Read next: csv.c. */
#ifndef WEFT_SRC_TRAIN_SOURCE_CSV_H
#define WEFT_SRC_TRAIN_SOURCE_CSV_H

#include "train/dataset/dataset.h"

/* Sets how a csv file is read. `target`: the target column, too. */
weft_status weft__csv_options(weft_context *ctx, const weft__config *config, bool target,
                              weft_csv_options *options);
/* Writes where the target of a sample is: see weft__source_kind. */
void weft__csv_place(const weft__source_file *file, size_t sample, char out[WEFT__PLACE_BYTES]);

#endif
