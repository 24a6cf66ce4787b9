/* The reference of preferences: the log-probabilities of all answers by the model before training. A run
 * keeps them in reference.json, so training needs no second model. Must not know: the loop. Read next:
 * reference.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_REFERENCE_H
#define WEFT_SRC_TRAIN_MODEL_REFERENCE_H

#include "train/model/model.h"

/* Computes the reference of the parts of the data from `first` on by the model, which has its first weights.
 * Does nothing if the data are no preferences; so do the next two. */
weft_status weft__reference_compute(const weft__model *model, const weft__config *config, weft__split first,
                                    weft__dataset *dataset);

/* Writes RUN/reference.json, and reads it. WEFT_ERR_FORMAT: it is damaged, or of other data. */
weft_status weft__reference_save(const weft__dataset *dataset, const char *run);
weft_status weft__reference_load(weft_context *ctx, weft__dataset *dataset, const char *run);

/* Returns the share of training pairs of whose answers the chosen one is likelier by the reference. */
double weft__reference_agrees(const weft__dataset *dataset);

#endif
