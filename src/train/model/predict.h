/* Applies a trained model to inputs. Must not know: files (train/dataset), terminals. Read next: predict.c.
 */
#ifndef WEFT_SRC_TRAIN_MODEL_PREDICT_H
#define WEFT_SRC_TRAIN_MODEL_PREDICT_H

#include "train/model/model.h"

/* Computes the answers to inputs that weft__dataset_inputs read. `answers` becomes (N, outputs):
 * the probability of each class, or numbers in the units of the target. */
weft_status weft__model_predict(const weft__model *model, const weft__dataset *dataset,
                                const weft__inputs *inputs, double *answers);

/* The same on several devices: `models` are copies of one model, 1 to WEFT__EACH_MOST, and share the batches.
 * The answers have the same bits. */
weft_status weft__model_predict_on(const weft__model *const *models, size_t count,
                                   const weft__dataset *dataset, const weft__inputs *inputs, double *answers);

/* Tells whether a model gives classes or numbers. If it is a language model, returns WEFT_ERR_ARGUMENT. */
weft_status weft__model_predicts(const weft__model *model, const weft__dataset *dataset);

#endif
