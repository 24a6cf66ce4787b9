/* The weight of each class in the training loss. Must not know: losses. Read next: class_weights.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_CLASS_WEIGHTS_H
#define WEFT_SRC_TRAIN_DATASET_CLASS_WEIGHTS_H

#include "train/dataset/dataset.h"

/* Computes the weights that train.class_weights asks for: [outputs], freed by weft__free(NULL, *weights).
 * *weights is NULL if all classes have weight 1. Their mean over the training samples is 1. For `balanced`
 * all classes count the same: a weight is samples / (classes * samples of the class). */
weft_status weft__class_weights(const weft__config *config, const weft__dataset *dataset, float **weights);

/* Returns the number of samples of each class in the splits from training to `last`: [outputs], freed by
 * weft__free(NULL, ...). NULL when memory is short. */
int64_t *weft__class_counts(const weft__dataset *dataset, weft__split last);

/* Returns the most frequent class of the training data, and sets *share to its share. */
int64_t weft__class_majority(const weft__dataset *dataset, double *share);

#endif
