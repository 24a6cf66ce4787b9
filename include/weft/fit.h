/* Training and evaluation over batches: what most programs would write themselves. */
#ifndef WEFT_FIT_H
#define WEFT_FIT_H

#include <weft/loader.h>
#include <weft/optim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a prediction is compared with a target by. */
typedef enum weft_loss_kind {
    WEFT_LOSS_CROSS_ENTROPY, /* logits (..., classes) and integer classes (...) */
    WEFT_LOSS_BCE,           /* logits and numbers in 0..1 of the same shape, or classes 0 and 1, as many */
    WEFT_LOSS_MSE,           /* numbers of the same shape, as for the next two */
    WEFT_LOSS_L1,
    WEFT_LOSS_HUBER /* with delta 1 */
} weft_loss_kind;

/* The loss of each element of the mask's shape, (batch) or (batch, context); averaged by the caller. */
typedef weft_tensor *(*weft_loss_fn)(void *user, weft_tensor *prediction, const weft_batch *batch);

/* Mean loss of a batch over what counts in it: one element. */
WEFT_API weft_tensor *weft_batch_loss(weft_loss_kind kind, weft_tensor *prediction, const weft_batch *batch);

/* What a callback is told. */
typedef struct weft_fit_state {
    uint64_t step;                     /* done, this one included */
    uint64_t steps;                    /* wanted in all */
    double epoch;                      /* passes over the data, with fraction */
    bool epoch_ends;                   /* with this step */
    double lr;                         /* that it used */
    double seconds_data, seconds_step; /* the host's, spent on this step's batches, and on its computation */
    double val_loss, val_accuracy; /* when an epoch ended and there is a validation loader; NaN otherwise */
    struct weft__fit *fit;         /* for weft_fit_losses */
} weft_fit_state;

/* For a callback: the loss of its step, before the update, and the mean over the epoch so far; a place may be
 * NULL. Looking waits for a device that works on its own, which otherwise goes from step to step: so look
 * where the number is shown, not at each step. WEFT_ERR_NUMERIC, to be returned, when the loss of any step so
 * far is not a finite number; the message names that step. weft_fit itself looks at its end, every 64 batches
 * and at the end of each epoch where something is done then (on_epoch, validation, a history). */
WEFT_API WEFT_CHECKED weft_status weft_fit_losses(const weft_fit_state *state, double *loss, double *mean);

/* Called after each step. Sets *stop to end training after it; another status than WEFT_OK ends weft_fit with
 * it. */
typedef weft_status (*weft_fit_fn)(void *user, const weft_fit_state *state, bool *stop);

/* One more copy of what is trained, in a context of its own, on another device: equal to the first in
 * weights, options, data and number of steps, which is for the caller to see to. */
typedef struct weft_replica {
    weft_module *module;
    weft_optimizer *optimizer;
    weft_loader *loader;
} weft_replica;

typedef struct weft_fit_options {
    weft_loss_kind loss;
    weft_loss_fn custom_loss; /* instead of it; `user` is passed */
    uint64_t steps;           /* in all, those counted that the optimizer has made before; or: */
    int64_t epochs;
    int accumulate;          /* batches whose gradients are averaged in a step; 0: 1 */
    weft_loader *validation; /* evaluated after each epoch, by `loss` */
    weft_fit_fn on_step, on_epoch;
    void *user;
    double
        label_smoothing; /* of a cross-entropy, a binary one too; evaluations are without it, and without: */
    const float
        *class_weights; /* [n_classes] what a sample of each class counts for in the loss of training, whose
                           mean is over these; a binary cross-entropy has two. NULL: 1 each. Copied */
    int64_t n_classes;
    void (*on_plan)(void *user, const weft_memory_plan *plan); /* once, before the first step runs */
    /* Data parallelism: the batches of a step are computed by module, optimizer and loader of the call and of
     * these, each a part of them one after the other; accumulate is a multiple of n_replicas + 1. The step is
     * that of one device but for the order in which gradients are added. Copied. */
    const weft_replica *replicas;
    size_t n_replicas;
} weft_fit_options;

typedef struct weft_history_line {
    uint64_t step;                 /* at the end of the epoch */
    double loss;                   /* mean over the epoch */
    double val_loss, val_accuracy; /* NaN when not measured */
} weft_history_line;

/* One line an epoch, the last one possibly cut short. To be freed by weft_history_free. */
typedef struct weft_history {
    weft_history_line *lines;
    size_t count, capacity;
    bool stopped; /* by a callback */
} weft_history;

/* Trains m by the optimizer on the loader's batches, beginning at the position that the optimizer's steps
 * have come to: a new one at the first batch, a resumed one where it stopped. history may be NULL.
 * WEFT_ERR_NUMERIC when a loss is not a finite number: the message names step and samples (on a device that
 * works on its own it comes some steps later, see weft_fit_losses); WEFT_ERR_STOPPED when the context was
 * interrupted: the last whole step stands; otherwise what failed. */
WEFT_API WEFT_CHECKED weft_status weft_fit(weft_module *m, weft_optimizer *opt, weft_loader *loader,
                                           const weft_fit_options *options, weft_history *history);
WEFT_API void weft_history_free(weft_history *history);

/* Steps of an epoch of weft_fit. */
WEFT_API uint64_t weft_fit_epoch_steps(const weft_loader *loader, int accumulate);

/* Mean loss over everything that the loader holds, in evaluation mode (the mode is restored); *accuracy,
 * which may be NULL, is the share of largest logits that are right, of a binary cross-entropy of logits
 * on the right side of 0; NaN where the loss is neither. WEFT_ERR_STOPPED between two batches when the
 * context was interrupted. */
WEFT_API WEFT_CHECKED weft_status weft_evaluate(weft_module *m, weft_loader *loader, weft_loss_kind kind,
                                                double *loss, double *accuracy);

#ifdef __cplusplus
}
#endif
#endif
