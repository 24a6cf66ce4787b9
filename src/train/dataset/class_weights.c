/* Counts the classes of the training data, and computes class weights. Must not know: losses. Read next:
 * weft/fit.h. */
#include <string.h>

#include "data/parse.h"
#include "train/dataset/class_weights.h"

int64_t *weft__class_counts(const weft__dataset *dataset, weft__split last) {
    int64_t *counts = weft__array(NULL, (size_t)dataset->outputs, sizeof *counts);
    if (!counts) return NULL;
    for (int split = WEFT__TRAIN; split <= (int)last; split++) {
        const weft_array *y = &dataset->y[split];
        for (int64_t i = 0; y->data && i < y->shape[0]; i++) counts[((const int32_t *)y->data)[i]]++;
    }
    return counts;
}

int64_t weft__class_majority(const weft__dataset *dataset, double *share) {
    int64_t *counts = weft__class_counts(dataset, WEFT__TRAIN), best = 0, all = 0;
    for (int64_t c = 0; counts && c < dataset->outputs; c++) {
        all += counts[c];
        if (counts[c] > counts[best]) best = c;
    }
    *share = all > 0 ? (double)counts[best] / (double)all : 0;
    weft__free(NULL, counts);
    return best;
}

static weft_status take_list(const weft__texts *list, int64_t classes, float *weights) {
    if ((int64_t)list->count != classes)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "train.class_weights: %zu weights, but there are %lld classes: give balanced, or "
                          "one weight for each class",
                          list->count, (long long)classes);
    float most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->values[i];
        if (weft__parse_f32(text, strlen(text), &weights[i]) != WEFT__NUMBER_OK || weights[i] < 0)
            return weft__fail(
                NULL, WEFT_ERR_ARGUMENT,
                "train.class_weights: give balanced, or a list of numbers that are at least 0, not '%.40s'",
                text);
        if (weights[i] > most) most = weights[i];
    }
    if (!(most > 0))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "train.class_weights: at least one weight must be above 0");
    return WEFT_OK;
}

/* Returns the training samples of each class, counted by data.weight: a sample of weight 3 is three. */
static double *count_rows(const weft__dataset *dataset) {
    const weft_array *y = &dataset->y[WEFT__TRAIN];
    const float *weights = dataset->weights[WEFT__TRAIN].data;
    double *rows = weft__array(NULL, (size_t)dataset->outputs, sizeof *rows);
    for (int64_t i = 0; rows && y->data && i < y->shape[0]; i++)
        rows[((const int32_t *)y->data)[i]] += weights ? (double)weights[i] : 1;
    return rows;
}

/* Gives all classes that have samples the same sum of weights. */
static void balance(const double *rows, int64_t classes, float *weights) {
    for (int64_t c = 0; c < classes; c++) weights[c] = rows[c] > 0 ? (float)(1 / rows[c]) : 0;
}

/* Divides the weights by their mean over the training samples. */
static void divide_by_mean(const double *rows, int64_t classes, float *weights) {
    double all = 0, sum = 0;
    for (int64_t c = 0; c < classes; c++) all += rows[c], sum += rows[c] * (double)weights[c];
    for (int64_t c = 0; c < classes && sum > 0; c++) weights[c] = (float)((double)weights[c] * all / sum);
}

static weft_status weigh(const weft__texts *list, const weft__dataset *dataset, float *weights) {
    const bool balanced = list->count == 1 && strcmp(list->values[0], "balanced") == 0;
    if (!balanced) WEFT_TRY(take_list(list, dataset->outputs, weights));
    double *rows = count_rows(dataset);
    if (!rows) return weft__fail_oom(NULL, (size_t)dataset->outputs * sizeof *rows, "weights of classes");
    if (balanced) balance(rows, dataset->outputs, weights);
    divide_by_mean(rows, dataset->outputs, weights);
    weft__free(NULL, rows);
    return WEFT_OK;
}

weft_status weft__class_weights(const weft__config *config, const weft__dataset *dataset, float **weights) {
    const weft__texts *list = &config->train_class_weights;
    *weights = NULL;
    if (list->count == 0) return WEFT_OK;
    *weights = weft__array(NULL, (size_t)dataset->outputs, sizeof **weights);
    if (!*weights)
        return weft__fail_oom(NULL, (size_t)dataset->outputs * sizeof **weights, "weights of classes");
    const weft_status status = weigh(list, dataset, *weights);
    if (status == WEFT_OK) return WEFT_OK;
    weft__free(NULL, *weights);
    *weights = NULL;
    return status;
}
