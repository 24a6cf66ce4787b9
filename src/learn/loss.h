/* The loss of a batch, as weft_fit and weft_module_evaluate compute it. Must not know: optimizers, loops.
 * Read next: loss.c. */
#ifndef WEFT_SRC_LEARN_LOSS_H
#define WEFT_SRC_LEARN_LOSS_H

#include <weft/fit.h>

typedef struct weft__loss {
    weft_loss_kind kind;
    double smoothing;     /* label smoothing, for cross-entropy, binary cross-entropy and DPO */
    weft_tensor *weights; /* factor of the loss of each class, f32 (classes); NULL: all are 1 */
    double beta;          /* of DPO; 0: WEFT__BETA */
} weft__loss;

#define WEFT__BETA 0.1

/* Returns the loss of each sample, or of each token of a text. Samples are not reduced. Of the batch only
 * targets and extra numbers count. */
weft_tensor *weft__loss_each(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch);

/* Returns for each pair by how much the reward of the chosen answer is higher, (batch). */
weft_tensor *weft__pair_margins(const weft__loss *loss, weft_tensor *logits, const weft_batch *batch);

/* Returns the loss of a batch as one element: the sum over samples or tokens, with the factors of the mask
 * and of the classes, divided by batch->divisor. Without a mask this is the mean. */
weft_tensor *weft__loss_mean(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch);

/* Returns the same for losses `each` of a batch. */
weft_tensor *weft__batch_mean(weft_tensor *each, const weft_batch *batch);

/* Converts classes 0 and 1 to the dtype and shape of the prediction of a binary cross-entropy. Targets that
 * are floats stay as they are. */
weft_tensor *weft__binary_target(weft_tensor *prediction, weft_tensor *target);

/* Returns the mask in the dtype of the tensor that it is multiplied with. */
weft_tensor *weft__mask_like(weft_tensor *mask, weft_tensor *like);

#endif
