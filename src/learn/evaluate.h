/* Means over all samples of a loader, in evaluation mode, on one device or several. Must not know:
 * optimizers, files. Read next: evaluate.c. */
#ifndef WEFT_SRC_LEARN_EVALUATE_H
#define WEFT_SRC_LEARN_EVALUATE_H

#include <weft/metrics.h>
#include <weft/preferences.h>

#include "learn/loss.h"

/* What is measured, in this order. */
enum { WEFT__MEAN_LOSS, WEFT__MEAN_RIGHT, WEFT__MEAN_MARGIN, WEFT__MEANS };

/* A model on a device, and a loader there. The layers of a GPT may be divided over devices: then `module` has
 * the last layers, and `before` those before them, in order. */
typedef struct weft__evaluated {
    weft_module *module;
    weft_loader *loader;
    weft_module *const *before; /* [n_before] */
    size_t n_before;            /* 0: the layers are not divided; at most WEFT__EACH_MOST - 1 */
    weft_loader *first;         /* divided: a loader that gives the same batches on the device of before[0] */
} weft__evaluated;

/* The devices that share an evaluation, 1 to WEFT__EACH_MOST. Their models are equal, and their loaders give
 * equal batches. Each batch is computed by one device. Sums are in the order of the batches, so one device
 * gives the same bits. */
typedef struct weft__evaluators {
    const weft__evaluated *list;
    size_t count;
    weft_process_group
        *group; /* processes that share it, too, each with as many devices; NULL: this one alone */
} weft__evaluators;

/* Computes the first `count` means: the loss, the fraction of right answers, and the margins of pairs. NaN
 * after a failure. */
weft_status weft__evaluate_means(const weft__evaluators *on, const weft__loss *loss, int count,
                                 double means[WEFT__MEANS]);

/* weft_module_evaluate and weft_module_evaluate_all on these devices. */
weft_status weft__evaluate(const weft__evaluators *on, weft_loss_kind kind, double *loss, double *accuracy);
weft_status weft__evaluate_all(const weft__evaluators *on, weft_loss_kind kind, double *loss,
                               weft_array *predictions, weft_array *targets);

/* The same for more classes than logits of all samples have room for. predictions become f32 (samples, 2):
 * the likeliest class, and the log of its probability. */
weft_status weft__evaluate_answers(const weft__evaluators *on, double *loss, weft_array *predictions,
                                   weft_array *targets);
/* weft_score_weighted_classes for such predictions, without areas (metrics.c). */
weft_status weft__score_answers(const weft_array *answers, const weft_array *targets, int64_t classes,
                                const float *weights, weft_class_scores *out);

/* weft_preferences_evaluate on these devices (preferences.c). */
weft_status weft__preferences_evaluate(const weft__evaluators *on, double beta,
                                       weft_preference_scores *scores);

#endif
