/* What a sample of each class counts for in training. Read next: class_weights.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_CLASS_WEIGHTS_H
#define WEFT_SRC_TRAIN_DATASET_CLASS_WEIGHTS_H

#include "train/dataset/dataset.h"

/* As train.class_weights says: [outputs of the data], to be freed by weft__free(NULL, *weights); NULL: all
 * alike. balanced: samples / (classes * samples of the class), so that all classes count the same. */
weft_status weft__class_weights(const weft__config *config, const weft__dataset *dataset, float **weights);

/* The class that most samples of the training data have, and their share. */
int64_t weft__class_majority(const weft__dataset *dataset, double *share);

#endif
