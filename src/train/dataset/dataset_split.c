/* Chooses the validation samples of tables and images: a share at random, or a part of a cross-validation.
 * Must not know: what samples are. Read next: dataset_table.c. */
#include "train/dataset/dataset.h"

/* Random stream of the permutation that selects the validation samples. */
#define STREAM_SPLIT UINT64_C(0x73706c69742e7766)

static int64_t permuted(const weft__config *config, int64_t rows, int64_t i) {
    return (int64_t)weft__permute((uint64_t)config->train_seed, STREAM_SPLIT, (uint64_t)rows, (uint64_t)i);
}

/* The last ones of a permutation are for validation. */
static void order_share(const weft__config *config, int64_t rows, int64_t *order) {
    for (int64_t i = 0; i < rows; i++) order[i] = permuted(config, rows, i);
}

/* Deals the samples to the parts like cards, class after class, each class in the order of the permutation.
 * So parts differ by at most one sample, and by at most one of each class. `dealt` has a place for each
 * class, where its first card goes. Validation samples are collected at the end of `order`. Returns the
 * number of others. */
static int64_t order_fold(const weft__config *config, const int32_t *classes, int64_t rows, int64_t *dealt,
                          int64_t *order) {
    int64_t kept = 0, last = rows;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = permuted(config, rows, i);
        const int64_t card = dealt[classes ? classes[row] : 0]++;
        if (card % config->data_folds == config->data_fold - 1)
            order[--last] = row;
        else
            order[kept++] = row;
    }
    return kept;
}

/* The number of classes; 0 if some label is no class, which an error will say later. */
static int64_t classes_of(const int32_t *labels, int64_t rows) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (labels[i] < 0 || labels[i] >= WEFT__CLASSES_MOST) return 0;
        if (labels[i] >= count) count = (int64_t)labels[i] + 1;
    }
    return count;
}

static weft_status divide(weft_context *ctx, const weft__config *config, int64_t rows, const int32_t *labels,
                          int64_t *order, int64_t *kept) {
    int64_t count = labels ? classes_of(labels, rows) : 0;
    if (count == 0) labels = NULL;
    if (!labels) count = 1;
    if (rows < config->data_folds)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.folds: %lld samples cannot be divided into %lld parts: give fewer folds",
                          (long long)rows, (long long)config->data_folds);
    int64_t *dealt = weft__array(ctx, (size_t)count + 1, sizeof *dealt);
    if (!dealt) return weft__fail_oom(ctx, ((size_t)count + 1) * sizeof *dealt, "the parts of the data");
    for (int64_t i = 0; i < rows && labels; i++) dealt[labels[i] + 1]++;
    for (int64_t c = 0; c < count; c++) dealt[c + 1] += dealt[c];
    *kept = order_fold(config, labels, rows, dealt, order);
    weft__free(ctx, dealt);
    return WEFT_OK;
}

weft_status weft__dataset_order(weft_context *ctx, const weft__config *config, int64_t rows,
                                const int32_t *labels, int64_t **order, int64_t *kept) {
    *order = NULL;
    *kept = rows - (int64_t)((double)rows * config->data_val_fraction);
    if (config->data_folds == 0 && *kept == rows) return WEFT_OK;
    if (config->data_folds == 0 && *kept < 1)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.val_fraction: none of the %lld samples is left for training: make it "
                          "smaller, or give more data",
                          (long long)rows);
    *order = weft__array(ctx, (size_t)rows, sizeof **order);
    if (!*order) return weft__fail_oom(ctx, (size_t)rows * sizeof **order, "the order of the samples");
    if (config->data_folds > 0) return divide(ctx, config, rows, labels, *order, kept);
    order_share(config, rows, *order);
    return WEFT_OK;
}

weft_status weft__dataset_training_rows(weft_context *ctx, const weft__config *config, int64_t rows,
                                        const int32_t *labels, bool **training) {
    int64_t *order = NULL, kept;
    *training = NULL;
    if (config->data_val_path || rows < 1) return WEFT_OK;
    weft_status status = weft__dataset_order(ctx, config, rows, labels, &order, &kept);
    if (status == WEFT_OK && order) {
        *training = weft__array(ctx, (size_t)rows, sizeof **training);
        if (!*training) status = weft__fail_oom(ctx, (size_t)rows, "the training rows");
        for (int64_t i = 0; *training && i < kept; i++) (*training)[order[i]] = true;
    }
    weft__free(ctx, order);
    return status;
}
