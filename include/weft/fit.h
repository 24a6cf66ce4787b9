/* Training and evaluation over batches: the loop that most programs need. */
#ifndef WEFT_FIT_H
#define WEFT_FIT_H

#include <weft/loader.h>
#include <weft/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which loss compares a prediction with its target. */
typedef enum weft_loss_kind {
    WEFT_LOSS_CROSS_ENTROPY, /* the default; logits (..., classes) and integer classes (...) */
    WEFT_LOSS_BCE,           /* logits and numbers in 0..1 of the same shape, or as many classes 0 and 1 */
    WEFT_LOSS_MSE,           /* numbers of the same shape: (N, 1) and (N) differ; also for the next two */
    WEFT_LOSS_L1,
    WEFT_LOSS_HUBER, /* with delta 1 */
    WEFT_LOSS_DPO    /* logits and targets of packed pairs, and batch.extra: see weft/preferences.h */
} weft_loss_kind;

/* Returns the loss of each element, in the mask's shape: (batch) or (batch, context). The caller averages. */
typedef weft_tensor *(*weft_loss_fn)(void *user, weft_tensor *prediction, const weft_batch *batch);

/* The loss of a batch: a tensor of one element. Samples that only pad the batch do not count; weights of
 * samples do, and weft_batch.divisor. In a loop of your own, use this function instead of weft_mse and the
 * like, which know neither. */
WEFT_API weft_tensor *weft_batch_loss(weft_loss_kind kind, weft_tensor *prediction, const weft_batch *batch);

/* What a callback receives. */
typedef struct weft_fit_state {
    uint64_t step;                     /* steps done, including this one */
    uint64_t steps;                    /* steps wanted in total */
    double epoch;                      /* passes over the data, with a fraction */
    bool epoch_ends;                   /* this step ends an epoch */
    double lr;                         /* the learning rate of this step */
    double seconds_data, seconds_step; /* host time for this step's batches, and for its computation */
    double val_loss, val_accuracy; /* set if an epoch ended and there is a validation loader; otherwise NaN */
    struct weft__fit *fit;         /* for weft_fit_losses */
} weft_fit_state;

/* For a callback: returns the loss of its step, before the update, and the mean over the epoch so far.
 * Either pointer may be NULL.
 *
 * Reading the loss waits for an asynchronous device, which otherwise runs ahead. So read it only where you
 * show it, not at each step.
 *
 * WEFT_ERR_NUMERIC if the loss of any step so far is not a finite number; the message names that step. The
 * callback should return this status. weft_fit itself checks the losses every 64 batches and at its end. It
 * also checks at the end of an epoch if there is an on_epoch callback, a validation loader or a history. */
WEFT_API WEFT_CHECKED weft_status weft_fit_losses(const weft_fit_state *state, double *loss, double *mean);

/* Called after each step. Set *stop to end training after this step. Any status but WEFT_OK ends weft_fit
 * with that status. */
typedef weft_status (*weft_fit_fn)(void *user, const weft_fit_state *state, bool *stop);

/* One more copy of the model, in its own context, on another device. You must make it equal to the first in
 * weights, options, data and number of steps. */
typedef struct weft_replica {
    weft_module *module;
    weft_optimizer *optimizer;
    weft_loader *loader;
} weft_replica;

typedef struct weft_fit_options {
    weft_loss_kind loss;      /* default: cross-entropy */
    weft_loss_fn custom_loss; /* replaces `loss`; receives `user` */
    uint64_t steps; /* in total, including the steps that the optimizer has made before. Set this or epochs */
    int64_t epochs; /* passes over the data */
    int accumulate; /* micro-batches of one step, which equals a step on all their samples as one batch, also
                       if masks, weights or the end of the data make them unequal. 0: as the loader. Set
                       weft_loader_options.accumulate, too: otherwise a step may span two epochs */
    weft_loader *validation; /* evaluated after each epoch with `loss` */
    weft_fit_fn on_step, on_epoch;
    void *user;
    double label_smoothing;     /* for cross-entropy, binary cross-entropy and DPO, in training only */
    const float *class_weights; /* [n_classes] factor of the training loss of a sample of each class; the sum
                                   is divided by the number of samples. Evaluation ignores it. Binary
                                   cross-entropy has two classes. NULL: 1 each. Copied */
    int64_t n_classes;
    void (*on_plan)(void *user, const weft_memory_plan *plan); /* called once, before the first step runs */
    /* Data parallelism: the model of the call and those of the replicas share the micro-batches of a step.
     * Each computes a contiguous part of them. `accumulate` is a multiple of n_replicas + 1. The result is
     * that of one device, except for the order in which gradients are added. Copied. */
    const weft_replica *replicas;
    size_t n_replicas;
    /* If the optimizer has joined other processes (weft_optimizer_join), all of them call weft_fit with equal
     * options, models and data, and `accumulate` is also a multiple of their number. Each process computes
     * the part of its rank. All must then call weft_fit_losses in the same steps, and stop after the same
     * step. Only stops that on_step asks for end training early. */
    double beta; /* of WEFT_LOSS_DPO; 0: 0.1 */
} weft_fit_options;

typedef struct weft_history_line {
    uint64_t step;                 /* at the end of the epoch */
    double loss;                   /* mean over the epoch */
    double val_loss, val_accuracy; /* NaN if not measured */
} weft_history_line;

/* One line per epoch; training may have stopped within the last one. Free it with weft_history_free. */
typedef struct weft_history {
    weft_history_line *lines;
    size_t count, capacity;
    bool stopped; /* a callback ended training */
} weft_history;

/* Trains m with the optimizer on the loader's batches. Training begins at the position that the optimizer's
 * steps have reached: a new optimizer at the first batch, a resumed one where it stopped. history may be
 * NULL.
 *
 * WEFT_ERR_NUMERIC: a loss is not a finite number; the message names step and samples. An asynchronous
 * device reports this some steps later, see weft_fit_losses. WEFT_ERR_STOPPED: the context was interrupted;
 * the last complete step is kept. Other statuses say what failed. */
WEFT_API WEFT_CHECKED weft_status weft_fit(weft_module *m, weft_optimizer *opt, weft_loader *loader,
                                           const weft_fit_options *options, weft_history *history);
WEFT_API void weft_history_free(weft_history *history);

/* The number of steps in one epoch of weft_fit. */
WEFT_API uint64_t weft_fit_epoch_steps(const weft_loader *loader, int accumulate);

/* Computes the mean loss over all data of the loader, in evaluation mode, and restores the mode afterwards.
 *
 * *accuracy may be NULL. It is the fraction of samples whose largest logit is the right class. For binary
 * cross-entropy it is the fraction of logits on the right side of 0. For DPO it is the fraction of pairs
 * whose chosen answer gained more than the rejected one; beta is 0.1. For other losses it is NaN.
 *
 * WEFT_ERR_STOPPED between two batches if the context was interrupted. */
WEFT_API WEFT_CHECKED weft_status weft_module_evaluate(weft_module *m, weft_loader *loader,
                                                       weft_loss_kind kind, double *loss, double *accuracy);

#ifdef __cplusplus
}
#endif
#endif
