/* Scores of predictions. Classes: accuracy, confusion matrix, precision, recall, F1 and ROC AUC. Numbers:
 * R2 and errors. The definitions are scikit-learn's. Sums are computed in f64 on the host. */
#ifndef WEFT_METRICS_H
#define WEFT_METRICS_H

#include <weft/fit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The scores of one class. Precision is 0 if no sample was predicted to be of it. Recall is 0 if no sample
 * is. */
typedef struct weft_class_score {
    int64_t actual, predicted, right; /* samples of the class; predicted as it; both */
    double precision, recall, f1;
    double auc; /* against all other classes; NaN: not requested, or one side has no samples */
} weft_class_score;

enum { WEFT_CONFUSION_MOST = 512 };

typedef struct weft_class_scores {
    int64_t samples, classes;
    double accuracy;
    double auc;                   /* two classes: the AUC of class 1; more: the mean over classes */
    double precision, recall, f1; /* means over the classes that occur or were predicted */
    int64_t *confusion;     /* [classes][classes] counts of samples; row: true class, column: predicted class.
                               NULL for more than WEFT_CONFUSION_MOST classes */
    weft_class_score *each; /* [classes] */
} weft_class_scores;

/* Scores logits against classes (samples) of i32 or u8. The logits are (samples, classes), or (samples, 1)
 * for two classes with the logit of class 1. auc: also compute the areas, which needs sorting.
 * WEFT_ERR_INDEX names a sample whose class is out of range. Free the result with weft_class_scores_free. */
WEFT_API WEFT_CHECKED weft_status weft_score_classes(weft_context *ctx, const weft_array *logits,
                                                     const weft_array *targets, bool auc,
                                                     weft_class_scores *out);
/* The same for samples with weights: [samples], above 0, as in weft_loader_options.weights. NULL: 1 each.
 * Counts of samples, such as the confusion matrix, do not depend on weights. */
WEFT_API WEFT_CHECKED weft_status weft_score_weighted_classes(weft_context *ctx, const weft_array *logits,
                                                              const weft_array *targets, const float *weights,
                                                              bool auc, weft_class_scores *out);
WEFT_API void weft_class_scores_free(weft_context *ctx, weft_class_scores *scores);

/* r2 is 1 - squared errors / squared deviations from the mean. For a constant target it is 1 if the
 * predictions are exact, otherwise 0. It is NaN for fewer than two samples. With several columns each score
 * is the mean over the columns. */
typedef struct weft_number_scores {
    int64_t samples, columns;
    double r2, rmse, mae;
} weft_number_scores;

/* Scores numbers (samples, ...) of f32 against targets of the same shape. */
WEFT_API WEFT_CHECKED weft_status weft_score_numbers(weft_context *ctx, const weft_array *predictions,
                                                     const weft_array *targets, weft_number_scores *out);

/* The same for samples with weights: [samples], above 0. NULL: 1 each. */
WEFT_API WEFT_CHECKED weft_status weft_score_weighted_numbers(weft_context *ctx,
                                                              const weft_array *predictions,
                                                              const weft_array *targets, const float *weights,
                                                              weft_number_scores *out);

/* Like weft_module_evaluate, and returns the module's prediction for each sample, f32 (samples, ...), and the
 * targets, i32 or f32. The loader must be in order. Free both arrays with weft_array_free(NULL, ...). */
WEFT_API WEFT_CHECKED weft_status weft_module_evaluate_all(weft_module *m, weft_loader *loader,
                                                           weft_loss_kind kind, double *loss,
                                                           weft_array *predictions, weft_array *targets);

#ifdef __cplusplus
}
#endif
#endif
