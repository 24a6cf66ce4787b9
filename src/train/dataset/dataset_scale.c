/* Normalizes data: measures the training samples, and scales all samples by the result. Must not know: files.
 * Read next: dataset_table.c. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "train/dataset/dataset.h"

/* The samples that statistics come from: those of a list, or the first ones. */
typedef struct measured {
    const weft_array *array;
    const int64_t *list;
    int64_t count;
} measured;

static double value_at(const measured *m, int64_t i, int64_t columns, int64_t c) {
    const int64_t row = m->list ? m->list[i] : i;
    return weft__element(m->array->dtype, m->array->data, row * columns + c);
}

/* Computes mean and standard deviation of each column of a (N, columns) array in f64. mean and deviation are
 * zeros. */
static void measure_columns(const measured *m, int64_t columns, double *mean, double *deviation) {
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t c = 0; c < columns; c++) mean[c] += value_at(m, i, columns, c);
    for (int64_t c = 0; c < columns; c++) mean[c] /= (double)m->count;
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t c = 0; c < columns; c++) {
            const double off = value_at(m, i, columns, c) - mean[c];
            deviation[c] += off * off;
        }
    for (int64_t c = 0; c < columns; c++) {
        const double rounding = (double)m->count * 2.2e-16 * fabs(mean[c]);
        deviation[c] = sqrt(deviation[c] / (double)m->count);
        if (!(deviation[c] > rounding) || !((float)deviation[c] > 0) || !(deviation[c] <= FLT_MAX))
            deviation[c] = 1; /* a constant column becomes 0 */
    }
}

/* Measures all columns, unless their statistics are known already. */
static weft_status measure(weft_context *ctx, const measured *m, int64_t columns, double **mean,
                           double **deviation) {
    if (*mean) return WEFT_OK;
    *mean = weft__array(ctx, (size_t)columns, sizeof **mean);
    *deviation = weft__array(ctx, (size_t)columns, sizeof **deviation);
    if (!*mean || !*deviation) return weft__fail_oom(ctx, (size_t)columns * 16, "scaling");
    measure_columns(m, columns, *mean, *deviation);
    return WEFT_OK;
}

weft_status weft__dataset_scale_rows(weft_context *ctx, const char *path, int64_t columns, const double *mean,
                                     const double *deviation, weft_array *array) {
    weft_array made = *array;
    const int64_t count = (int64_t)weft__array_length(array);
    if (array->dtype != WEFT_F32) WEFT_TRY(weft_array_new(ctx, WEFT_F32, array->rank, array->shape, &made));
    float *out = made.data; /* the place of the values themselves, if they are f32 */
    int64_t bad = count;
    for (int64_t i = 0, c = 0; i < count; i++, c = c + 1 < columns ? c + 1 : 0) {
        const double value = weft__element(array->dtype, array->data, i);
        out[i] = (float)(mean ? (value - mean[c]) / deviation[c] : value);
        if (!isfinite(out[i])) bad = weft__smaller(bad, i);
    }
    if (made.data != array->data) weft_array_free(ctx, array);
    *array = made;
    if (bad == count) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: sample %lld, number %lld is too large for f32: repair it or leave the sample out",
                      path, (long long)(bad / columns), (long long)(bad % columns));
}

/* Measures mean and standard deviation of each channel of u8 images. The results refer to values after
 * `scale`. */
static weft_status measure_channels(weft_context *ctx, const measured *m, weft__dataset *d) {
    const size_t channels = (size_t)d->image[0], pixels = (size_t)(d->image[1] * d->image[2]);
    const uint8_t *values = m->array->data; /* NULL: the notes have the sums */
    const weft__image_note *notes = d->images.notes[WEFT__TRAIN].data;
    if (d->scaling.pixel_mean) return WEFT_OK;
    d->scaling.pixel_mean = weft__array(ctx, channels, sizeof *d->scaling.pixel_mean);
    d->scaling.pixel_deviation = weft__array(ctx, channels, sizeof *d->scaling.pixel_deviation);
    if (!d->scaling.pixel_mean || !d->scaling.pixel_deviation)
        return weft__fail_oom(ctx, channels * 8, "scaling");
    for (size_t c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0; /* exact: below 2^64 for up to 2^48 pixels */
        for (int64_t i = 0; i < m->count; i++) {
            const size_t sample = (size_t)(m->list ? m->list[i] : i);
            if (!values) sum += notes[sample].sums[c], squares += notes[sample].squares[c];
            for (size_t k = 0; values && k < pixels; k++) {
                const uint64_t v = values[(sample * channels + c) * pixels + k];
                sum += v, squares += v * v;
            }
        }
        const double n = (double)m->count * (double)pixels, mean = (double)sum / n;
        const double deviation = sqrt((double)squares / n - mean * mean);
        d->scaling.pixel_mean[c] = (float)(mean * d->scaling.factor);
        d->scaling.pixel_deviation[c] = deviation > 0 ? (float)(deviation * d->scaling.factor) : 1.0F;
    }
    return WEFT_OK;
}

/* Measures the training samples. */
static weft_status measure_all(weft_context *ctx, const weft__config *config, bool images,
                               const int64_t *list, int64_t count, weft__dataset *d) {
    const measured x = {&d->x[WEFT__TRAIN], list, count}, y = {&d->y[WEFT__TRAIN], list, count};
    if (!config->data_standardize) return WEFT_OK;
    if (images && d->image[0]) WEFT_TRY(measure_channels(ctx, &x, d));
    if (!images) WEFT_TRY(measure(ctx, &x, d->features, &d->scaling.mean, &d->scaling.deviation));
    if (!images) weft__columns_unscale(&d->table.kinds, d->scaling.mean, d->scaling.deviation);
    if (d->task != WEFT__TASK_REGRESSION) return WEFT_OK;
    return measure(ctx, &y, d->outputs, &d->scaling.target_mean, &d->scaling.target_deviation);
}

weft_status weft__dataset_scale(weft_context *ctx, const weft__config *config, const int64_t *list,
                                int64_t count, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    /* without training data, what the model knows decides; for an autoencoder pixels are numbers */
    const bool trains = d->x[WEFT__TRAIN].rank > 0,
               reproduces = weft__config_is(config, WEFT__TRAIT_NO_TARGETS),
               images = trains ? d->x[WEFT__TRAIN].dtype == WEFT_U8 && !reproduces : d->scaling.factor != 0;
    if (images) {
        d->scaling.factor = config->data_standardize ? 1.0 / 255.0 : 1;
        for (int i = 1; i < WEFT__SPLIT_COUNT; i++)
            if (d->x[i].data && d->x[i].dtype != WEFT_U8)
                return weft__fail(ctx, WEFT_ERR_FORMAT,
                                  "data.val_path, data.test_path: the training inputs are bytes (u8), so "
                                  "these inputs must be bytes, too");
    }
    WEFT_TRY(measure_all(ctx, config, images, list, count, d));
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        if (!d->x[i].data) continue;
        if (!images)
            WEFT_TRY(weft__dataset_scale_rows(ctx, paths[i], d->features, d->scaling.mean,
                                              d->scaling.deviation, &d->x[i]));
        if (d->task == WEFT__TASK_REGRESSION)
            WEFT_TRY(weft__dataset_scale_rows(ctx, paths[i], d->outputs, d->scaling.target_mean,
                                              d->scaling.target_deviation, &d->y[i]));
    }
    return WEFT_OK;
}

/* Makes an array with one number everywhere, unless there is one already. */
static weft_status fill_array(weft_context *ctx, int64_t count, double value, double **out) {
    if (*out) return WEFT_OK;
    *out = weft__array(ctx, (size_t)count, sizeof **out);
    if (!*out) return weft__fail_oom(ctx, (size_t)count * sizeof **out, "scaling");
    for (int64_t i = 0; i < count; i++) (*out)[i] = value;
    return WEFT_OK;
}

/* Normalizes pixels to 0..1, all with the same factor. */
weft_status weft__dataset_scale_pixels(weft_context *ctx, weft__dataset *d) {
    WEFT_TRY(fill_array(ctx, d->features, 0, &d->scaling.mean));
    WEFT_TRY(fill_array(ctx, d->features, 255, &d->scaling.deviation));
    WEFT_TRY(fill_array(ctx, d->features, 0, &d->scaling.target_mean));
    return fill_array(ctx, d->features, 255, &d->scaling.target_deviation);
}
