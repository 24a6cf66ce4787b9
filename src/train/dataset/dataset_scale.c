/* Normalizes data: measures the training samples, and scales all samples by the result. Must not know: files.
 * Read next: dataset_table.c. */
#include <math.h>
#include <string.h>

#include "train/dataset/dataset.h"

/* Computes mean and standard deviation of each column of a (N, columns) array in f64. `sums` is scratch
 * memory, [2 * columns] zeros. */
static void measure_columns(const weft_array *array, int64_t columns, double *sums, float *mean,
                            float *deviation) {
    const int64_t rows = array->shape[0];
    const float *values = array->data;
    double *squares = sums + columns;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) sums[c] += (double)values[i * columns + c];
    for (int64_t c = 0; c < columns; c++) sums[c] /= (double)rows;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) {
            const double off = (double)values[i * columns + c] - sums[c];
            squares[c] += off * off;
        }
    for (int64_t c = 0; c < columns; c++) {
        const double spread = sqrt(squares[c] / (double)rows),
                     rounding = (double)rows * 2.2e-16 * fabs(sums[c]);
        mean[c] = (float)sums[c];
        deviation[c] = (float)spread;
        if (!(spread > rounding) || !(deviation[c] > 0) || !isfinite(deviation[c]))
            deviation[c] = 1; /* a constant column becomes 0 */
    }
}

/* Measures all columns, unless their statistics are known already. */
static weft_status measure(weft_context *ctx, const weft_array *array, int64_t columns, float **mean,
                           float **deviation) {
    if (*mean) return WEFT_OK;
    double *sums = weft__array(ctx, 2 * (size_t)columns, sizeof *sums);
    *mean = weft__array(ctx, (size_t)columns, sizeof **mean);
    *deviation = weft__array(ctx, (size_t)columns, sizeof **deviation);
    const bool made = sums && *mean && *deviation;
    if (made) measure_columns(array, columns, sums, *mean, *deviation);
    weft__free(ctx, sums);
    return made ? WEFT_OK : weft__fail_oom(ctx, (size_t)columns * 24, "scaling");
}

void weft__dataset_scale_rows(weft_array *array, int64_t columns, const float *mean, const float *deviation) {
    float *values = array->data;
    const size_t rows = weft__array_length(array) / (size_t)columns;
    for (size_t i = 0; i < rows; i++, values += columns)
        for (int64_t c = 0; c < columns; c++) values[c] = (values[c] - mean[c]) / deviation[c];
}

/* Measures mean and standard deviation of each channel of u8 images. The results refer to values after
 * `scale`. */
static weft_status measure_channels(weft_context *ctx, weft__dataset *d) {
    const size_t channels = (size_t)d->image[0], pixels = (size_t)(d->image[1] * d->image[2]);
    const uint8_t *values = d->x[WEFT__TRAIN].data; /* NULL: the notes have the sums */
    const weft__image_note *notes = d->notes[WEFT__TRAIN].data;
    const size_t samples = (size_t)d->x[WEFT__TRAIN].shape[0];
    if (d->pixel_mean) return WEFT_OK;
    d->pixel_mean = weft__array(ctx, channels, sizeof *d->pixel_mean);
    d->pixel_deviation = weft__array(ctx, channels, sizeof *d->pixel_deviation);
    if (!d->pixel_mean || !d->pixel_deviation) return weft__fail_oom(ctx, channels * 8, "scaling");
    for (size_t c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0; /* exact: below 2^64 for up to 2^48 pixels */
        for (size_t i = 0; !values && i < samples; i++)
            sum += notes[i].sums[c], squares += notes[i].squares[c];
        for (size_t i = 0; values && i < samples; i++)
            for (size_t k = 0; k < pixels; k++) {
                const uint64_t v = values[(i * channels + c) * pixels + k];
                sum += v, squares += v * v;
            }
        const double n = (double)samples * (double)pixels, mean = (double)sum / n;
        const double deviation = sqrt((double)squares / n - mean * mean);
        d->pixel_mean[c] = (float)(mean * d->scale);
        d->pixel_deviation[c] = deviation > 0 ? (float)(deviation * d->scale) : 1.0F;
    }
    return WEFT_OK;
}

weft_status weft__dataset_scale(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    /* without training data, what the model knows decides; for an autoencoder pixels are numbers */
    const bool trains = d->x[WEFT__TRAIN].rank > 0,
               reproduces = weft__config_is(config, WEFT__TRAIT_NO_TARGETS),
               images = trains ? d->x[WEFT__TRAIN].dtype == WEFT_U8 && !reproduces : d->scale != 0;
    /* bytes are plain numbers if the training data are numbers */
    for (int i = 1; i < WEFT__SPLIT_COUNT && !images; i++)
        if (d->x[i].data) WEFT_TRY(weft__dataset_convert(ctx, paths[i], WEFT_F32, &d->x[i]));
    if (images) {
        d->scale = config->data_standardize ? 1.0 / 255.0 : 1;
        for (int i = 1; i < WEFT__SPLIT_COUNT; i++)
            if (d->x[i].data && d->x[i].dtype != WEFT_U8)
                return weft__fail(ctx, WEFT_ERR_FORMAT,
                                  "data.val_path, data.test_path: the training inputs are bytes (u8), so "
                                  "these inputs must be bytes, too");
    }
    if (!config->data_standardize) return WEFT_OK;
    if (images && d->image[0]) WEFT_TRY(measure_channels(ctx, d));
    if (!images) WEFT_TRY(measure(ctx, &d->x[WEFT__TRAIN], d->features, &d->mean, &d->deviation));
    if (!images && d->mean) weft__columns_unscale(&d->table, d->mean, d->deviation);
    const bool numbers = d->task == WEFT__TASK_REGRESSION;
    if (numbers)
        WEFT_TRY(measure(ctx, &d->y[WEFT__TRAIN], d->outputs, &d->target_mean, &d->target_deviation));
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        if (!d->x[i].data) continue;
        if (!images) weft__dataset_scale_rows(&d->x[i], d->features, d->mean, d->deviation);
        if (numbers) weft__dataset_scale_rows(&d->y[i], d->outputs, d->target_mean, d->target_deviation);
    }
    return WEFT_OK;
}

/* Makes an array with one number everywhere, unless there is one already. */
static weft_status fill_array(weft_context *ctx, int64_t count, float value, float **out) {
    if (*out) return WEFT_OK;
    *out = weft__array(ctx, (size_t)count, sizeof **out);
    if (!*out) return weft__fail_oom(ctx, (size_t)count * sizeof **out, "scaling");
    for (int64_t i = 0; i < count; i++) (*out)[i] = value;
    return WEFT_OK;
}

/* Normalizes pixels to 0..1, all with the same factor. */
weft_status weft__dataset_scale_pixels(weft_context *ctx, weft__dataset *d) {
    WEFT_TRY(fill_array(ctx, d->features, 0, &d->mean));
    WEFT_TRY(fill_array(ctx, d->features, 255, &d->deviation));
    WEFT_TRY(fill_array(ctx, d->features, 0, &d->target_mean));
    return fill_array(ctx, d->features, 255, &d->target_deviation);
}
