/* The loss of a batch, as weft_fit and weft_evaluate take it. Read next: loss.c. */
#ifndef WEFT_SRC_DATA_LOSS_H
#define WEFT_SRC_DATA_LOSS_H

#include <weft/fit.h>

typedef struct weft__loss {
    weft_loss_kind kind;
    double smoothing;     /* of labels, for a cross-entropy, of two classes too */
    weft_tensor *weights; /* what a sample of each class counts, f32 (classes); NULL: 1 */
} weft__loss;

/* The loss of each sample (of text: of each token), unreduced over those. */
weft_tensor *weft__loss_each(const weft__loss *loss, weft_tensor *prediction, weft_tensor *target);

/* The mean over what counts in a batch: one element. */
weft_tensor *weft__loss_mean(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch);

/* The mean of what is there of each sample, over those that are no padding. */
weft_tensor *weft__masked_mean(weft_tensor *each, weft_tensor *mask);

/* Classes 0 and 1 as the numbers, in the shape, that a binary cross-entropy compares with; numbers stay. */
weft_tensor *weft__binary_target(weft_tensor *prediction, weft_tensor *target);

/* The mask in the dtype of what it is multiplied with. */
weft_tensor *weft__mask_like(weft_tensor *mask, weft_tensor *like);

#endif
