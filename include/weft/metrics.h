/* Measures of predictions: accuracy, confusion, precision, recall, F1 and ROC AUC of classes; R2 and errors
 * of numbers. Sums are f64, on the host; definitions are scikit-learn's. */
#ifndef WEFT_METRICS_H
#define WEFT_METRICS_H

#include <weft/fit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one class. Where nothing was predicted to be of it, precision is 0; where no sample is, recall is. */
typedef struct weft_class_score {
    int64_t actual, predicted, right; /* samples of it, samples taken for it, and those that are both */
    double precision, recall, f1;
    double
        auc; /* of it against the others; NaN where there are none, or no others, or it was not asked for */
} weft_class_score;

enum { WEFT_CONFUSION_MOST = 2048 };

typedef struct weft_class_scores {
    int64_t samples, classes;
    double accuracy;
    double auc;                   /* of two classes that of class 1; of more the mean over classes */
    double precision, recall, f1; /* means over the classes that occur or were predicted */
    int64_t *confusion; /* [classes][classes] samples: a row is what they are, a column what they were taken
                           for; NULL of more than WEFT_CONFUSION_MOST classes */
    weft_class_score *each; /* [classes] */
} weft_class_scores;

/* Scores logits (samples, classes), or (samples, 1) of two classes whose logit is that of class 1, against
 * classes (samples) of i32 or u8. auc: the areas too, which takes sorting. WEFT_ERR_INDEX names a sample
 * whose class is not among them. To be freed by weft_class_scores_free. */
WEFT_API WEFT_CHECKED weft_status weft_score_classes(weft_context *ctx, const weft_array *logits,
                                                     const weft_array *targets, bool auc,
                                                     weft_class_scores *out);
WEFT_API void weft_class_scores_free(weft_context *ctx, weft_class_scores *scores);

/* r2: 1 - squared errors / squared deviations from the mean; a target that never changes: 1 where it is met,
 * else 0; NaN of fewer than two samples. Of several columns each is the mean over them. */
typedef struct weft_number_scores {
    int64_t samples, columns;
    double r2, rmse, mae;
} weft_number_scores;

/* Scores numbers (samples, ...) of f32 against targets of the same shape. */
WEFT_API WEFT_CHECKED weft_status weft_score_numbers(weft_context *ctx, const weft_array *predictions,
                                                     const weft_array *targets, weft_number_scores *out);

/* As weft_evaluate, and gives what the module predicts for each sample of a loader in order, f32 (samples,
 * ...), and its targets, i32 or f32; both to be freed by weft_array_free(NULL, ...). */
WEFT_API WEFT_CHECKED weft_status weft_evaluate_all(weft_module *m, weft_loader *loader, weft_loss_kind kind,
                                                    double *loss, weft_array *predictions,
                                                    weft_array *targets);

#ifdef __cplusplus
}
#endif
#endif
