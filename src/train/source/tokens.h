/* What texts and files of tokens share: text.c and tokens.c. Must not know: models. Read next: tokens.c. */
#ifndef WEFT_SRC_TRAIN_SOURCE_TOKENS_H
#define WEFT_SRC_TRAIN_SOURCE_TOKENS_H

#include "train/dataset/dataset_summary.h"

/* Makes a loader of windows of tokens, and the lines of the summary: see weft__source_kind. */
weft_status weft__tokens_loader(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                weft__split split, int64_t most, const weft_loader_options *options,
                                weft_loader **out);
void weft__tokens_lines(const weft__dataset *dataset, const weft__config *config, weft__lines *lines);

#endif
