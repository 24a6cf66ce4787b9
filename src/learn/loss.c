/* Computes losses by their kind, over batches that may be padded. Must not know: optimizers, loops. Read
 * next: fit.c. */
#include "base/option.h"
#include "learn/loss.h"

#include "graph/graph.h"

weft_tensor *weft__binary_target(weft_tensor *prediction, weft_tensor *target) {
    const weft_dtype dtype = weft_dtype_of(target);
    if (weft_tensor_status(prediction) != WEFT_OK || weft_tensor_status(target) != WEFT_OK) return target;
    if (dtype != WEFT_I32 && dtype != WEFT_U8 && dtype != WEFT_I64) return target;
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < weft_rank(prediction); i++) shape[i] = weft_dim(prediction, i);
    if (weft_numel(prediction) == weft_numel(target))
        target = weft_reshape(target, weft_rank(prediction), shape);
    return weft_cast(target, weft_dtype_of(prediction));
}

/* Returns the class weights of binary targets. A target may lie between 0 and 1; the weight is then
 * interpolated. */
static weft_tensor *weights_of(const weft__loss *loss, weft_tensor *target) {
    const weft_dtype dtype = weft_dtype_of(target);
    weft_tensor *weights = dtype == WEFT_F32 ? loss->weights : weft_cast(loss->weights, dtype);
    weft_tensor *low = weft_narrow(weights, 0, 0, 1), *high = weft_narrow(weights, 0, 1, 1);
    return weft_add(low, weft_mul(weft_sub(high, low), target));
}

/* Binary cross-entropy with the definitions of a cross-entropy of two classes. Smoothed labels lie between
 * the classes. The loss against each class is multiplied by the weight of that class. */
static weft_tensor *binary(const weft__loss *loss, weft_tensor *prediction, weft_tensor *target,
                           weft_reduction reduction) {
    const double half = loss->smoothing / 2;
    target = weft__binary_target(prediction, target);
    if (!loss->weights) {
        if (half > 0) target = weft_add_scalar(weft_mul_scalar(target, 1 - loss->smoothing), half);
        return weft_bce_with_logits(prediction, target, reduction);
    }
    weft_tensor *each =
        weft_mul(weft_bce_with_logits(prediction, target, WEFT_NONE), weights_of(loss, target));
    if (!(half > 0)) return each;
    each = weft_mul_scalar(each, 1 - loss->smoothing);
    for (int class = 0; class < 2; class ++) {
        weft_tensor *all = weft_full_like(target, class);
        weft_tensor *against =
            weft_mul(weft_bce_with_logits(prediction, all, WEFT_NONE), weights_of(loss, all));
        each = weft_add(each, weft_mul_scalar(against, half));
    }
    return each;
}

static weft_tensor *mean_of_sample(weft_tensor *each) {
    while (weft_rank(each) > 1) each = weft_mean(each, -1, false);
    return each;
}

/* Returns the log-probabilities of the answers of pairs, (batch, 2), and in *reference those before training,
 * in the same dtype. */
static weft_tensor *pair_log_probs(weft_tensor *logits, const weft_batch *batch, weft_tensor **reference) {
    weft_tensor *now = weft_sequence_log_probs(logits, batch->y);
    *reference = batch->extra ? weft__mask_like(batch->extra, now) : NULL;
    return now;
}

weft_tensor *weft__pair_margins(const weft__loss *loss, weft_tensor *logits, const weft_batch *batch) {
    weft_tensor *before, *now = pair_log_probs(logits, batch, &before), *gain = weft_sub(now, before);
    gain = weft_sub(weft_narrow(gain, -1, 0, 1), weft_narrow(gain, -1, 1, 1));
    return weft_mul_scalar(weft_squeeze(gain, -1), weft__value_or(loss->beta, WEFT__BETA));
}

static weft_tensor *dpo(const weft__loss *loss, weft_tensor *logits, const weft_batch *batch,
                        weft_reduction reduction) {
    weft_tensor *before, *now = pair_log_probs(logits, batch, &before);
    return weft_dpo_loss(
        now, before,
        &(weft_dpo_options){.reduction = reduction, .beta = loss->beta, .smoothing = loss->smoothing});
}

static weft_tensor *whole(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch,
                          weft_reduction reduction) {
    weft_tensor *target = batch->y;
    switch (loss->kind) {
    case WEFT_LOSS_CROSS_ENTROPY:
        return weft_cross_entropy(prediction, target,
                                  &(weft_cross_entropy_options){.reduction = reduction,
                                                                .smoothing = loss->smoothing,
                                                                .weights = loss->weights});
    case WEFT_LOSS_BCE: return binary(loss, prediction, target, reduction);
    case WEFT_LOSS_MSE: return weft_mse(prediction, target, reduction);
    case WEFT_LOSS_L1: return weft_l1(prediction, target, reduction);
    case WEFT_LOSS_HUBER: return weft_huber(prediction, target, 1, reduction);
    case WEFT_LOSS_DPO: return dpo(loss, prediction, batch, reduction);
    }
    return NULL;
}

weft_tensor *weft__loss_each(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch) {
    weft_tensor *each = whole(loss, prediction, batch, WEFT_NONE);
    return loss->kind == WEFT_LOSS_CROSS_ENTROPY ? each : mean_of_sample(each);
}

weft_tensor *weft__mask_like(weft_tensor *mask, weft_tensor *like) {
    weft_dtype dtype = weft_dtype_of(like);
    return dtype == WEFT_F32 || weft_tensor_status(like) != WEFT_OK ? mask : weft_cast(mask, dtype);
}

static weft_tensor *sum_all(weft_tensor *x) { return weft_sum(x, WEFT_ALL_AXES, false); }

weft_tensor *weft__batch_mean(weft_tensor *each, const weft_batch *batch) {
    if (!batch->mask) return weft_mean(each, WEFT_ALL_AXES, false);
    weft_tensor *mask = weft__mask_like(batch->mask, each),
                *divisor = batch->divisor ? weft__mask_like(batch->divisor, each) : sum_all(mask);
    return weft_div(sum_all(weft_mul(each, mask)), divisor);
}

/* Returns the loss of each sample. Mixed samples blend what they get by their own target with what they get
 * by the other one. */
static weft_tensor *each_of(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch) {
    weft_tensor *own = weft__loss_each(loss, prediction, batch);
    if (!batch->share) return own;
    weft_tensor *other = weft__loss_each(loss, prediction, &(weft_batch){.y = batch->other_y});
    return weft_add(other, weft_mul(weft_sub(own, other), weft__mask_like(batch->share, own)));
}

weft_tensor *weft__loss_mean(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch) {
    if (batch->mask || batch->share || loss->weights)
        return weft__batch_mean(each_of(loss, prediction, batch), batch);
    return whole(loss, prediction, batch, WEFT_MEAN);
}

weft_tensor *weft_batch_loss(weft_loss_kind kind, weft_tensor *prediction, const weft_batch *batch) {
    weft_context *ctx = weft_context_of(prediction);
    WEFT_NEED_OR_POISON(ctx, NULL, prediction);
    WEFT_NEED_OR_POISON(ctx, NULL, batch);
    if ((unsigned)kind > WEFT_LOSS_DPO)
        return weft__poison(ctx, NULL, WEFT_ERR_ARGUMENT, "weft_batch_loss: there is no loss of kind %d",
                            (int)kind);
    if (!batch->y)
        return weft__poison(ctx, NULL, WEFT_ERR_ARGUMENT,
                            "weft_batch_loss: the batch has no targets, batch.y is NULL");
    return weft__loss_mean(&(weft__loss){.kind = kind}, prediction, batch);
}
