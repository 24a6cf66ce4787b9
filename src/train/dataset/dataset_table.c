/* Data of classification and regression, which sources read file by file: shapes, checks and splits them.
 * Must not know: formats (train/source), models. Read next: train/source/csv.c, dataset_scale.c. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "data/shard_files.h"
#include "train/dataset/dataset.h"

/* ---- dtypes and shapes ---- */

size_t weft__array_length(const weft_array *array) {
    size_t size = weft_dtype_size(array->dtype);
    return size ? array->bytes / size : 0;
}

/* Makes i32 of numbers that are classes. */
static weft_status to_classes(weft_context *ctx, const char *path, weft_array *array) {
    weft_array made;
    if (array->dtype == WEFT_I32) return WEFT_OK;
    WEFT_TRY(weft_array_new(ctx, WEFT_I32, array->rank, array->shape, &made));
    for (size_t i = 0; i < weft__array_length(array); i++) {
        const double value = weft__element(array->dtype, array->data, (int64_t)i);
        if (!(value >= 0 && value <= INT32_MAX && value == floor(value))) {
            weft_array_free(ctx, &made);
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: element %zu is %g, which is not a class", path, i,
                              value);
        }
        ((int32_t *)made.data)[i] = (int32_t)value;
    }
    weft_array_free(ctx, array);
    *array = made;
    return WEFT_OK;
}

/* Refuses NaN, infinities and numbers beyond f32. They would turn every weight into NaN. */
static weft_status check_finite(weft_context *ctx, const char *path, const weft_array *array) {
    const size_t count = weft__array_length(array), row = count / (size_t)array->shape[0];
    for (size_t i = 0; i < count; i++) {
        const double value = weft__element(array->dtype, array->data, (int64_t)i);
        if (!(fabs(value) <= FLT_MAX))
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: sample %zu, number %zu is %g: repair it or leave the sample out", path,
                              i / row, i % row, value);
    }
    return WEFT_OK;
}

/* Returns how many numbers a sample has. */
static int64_t sample_length(const weft_array *x) {
    int64_t length = 1;
    for (int i = 1; i < x->rank; i++) length *= x->shape[i];
    return length;
}

/* Sets channels, rows and columns of the samples, from the file or from model.image. */
static weft_status shape_images(weft_context *ctx, const weft__config *config, const char *path,
                                const weft_array *x, weft__dataset *d) {
    int64_t image[3] = {1, 0, 0}, pixels;
    if (!weft__config_is(config, WEFT__TRAIT_IMAGES)) return WEFT_OK;
    if (config->model_image.count == 3)
        memcpy(image, config->model_image.values, sizeof image);
    else if (x->rank < 3 && d->image[0])
        memcpy(image, d->image, sizeof image); /* plain rows, where the training data were images */
    else if (x->rank == 3 || x->rank == 4)
        memcpy(image + (4 - x->rank), x->shape + 1, (size_t)(x->rank - 1) * sizeof *image);
    else
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "%s: the samples are rows of numbers: set model.image to the channels, rows and "
                          "columns of a sample, such as [1, 8, 8]",
                          path);
    const bool fits = weft__numel(3, image, &pixels) && x->shape[0] > 0 && pixels == sample_length(x);
    if (!fits || (d->image[0] && memcmp(d->image, image, sizeof image) != 0))
        return weft__fail(
            ctx, WEFT_ERR_FORMAT, "%s: samples of %lld numbers are not images of %lld x %lld x %lld", path,
            (long long)sample_length(x), (long long)(fits ? d->image[0] : image[0]),
            (long long)(fits ? d->image[1] : image[1]), (long long)(fits ? d->image[2] : image[2]));
    memcpy(d->image, image, sizeof image);
    return WEFT_OK;
}

/* Reshapes samples to vectors (N, features). shape_targets makes targets i32 (N) for classes and (N, outputs)
 * for numbers. Numbers stay what they are until they are scaled. */
static weft_status shape_inputs(weft_context *ctx, const char *path, weft__dataset *d, weft_array *x) {
    if (x->rank < 1) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: a single number is not a data set", path);
    if (d->source->form == WEFT__FORM_TEXTS) return WEFT_OK; /* rows of tokens, which stay as they are */
    const int64_t features = sample_length(x);
    if (x->shape[0] < 1) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there are no samples", path);
    if (features < 1)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: row 1 has no numbers, and neither has any other of the %lld rows", path,
                          (long long)x->shape[0]);
    if (d->features > 0 && d->features != features)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: each sample has %lld numbers, but the model takes %lld",
                          path, (long long)features, (long long)d->features);
    d->features = features;
    x->rank = 2;
    x->shape[1] = features;
    return x->dtype == WEFT_U8 ? WEFT_OK : check_finite(ctx, path, x);
}

static weft_status shape_targets(weft_context *ctx, const char *path, weft__dataset *d, int64_t rows,
                                 weft_array *y) {
    if (!y->data || y->rank < 1 || y->shape[0] != rows)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there are %lld samples, but %lld targets", path,
                          (long long)rows, y->data && y->rank > 0 ? (long long)y->shape[0] : 0LL);
    int64_t width = 1;
    for (int i = 1; i < y->rank; i++) width *= y->shape[i];
    if (d->task == WEFT__TASK_REGRESSION) {
        if (d->outputs > 0 && d->outputs != width)
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: each target has %lld numbers, but the model predicts %lld", path,
                              (long long)width, (long long)d->outputs);
        d->outputs = width;
        y->rank = 2;
        y->shape[1] = width;
        return check_finite(ctx, path, y);
    }
    if (width != 1)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there must be one class for each sample", path);
    y->rank = 1;
    return to_classes(ctx, path, y);
}

/* ---- splitting ---- */

/* Copies the rows of a list into a new array. */
static weft_status pick(weft_context *ctx, const weft_array *from, const int64_t *list, int64_t count,
                        weft_array *out) {
    int64_t shape[WEFT_ARRAY_MAX_RANK];
    memcpy(shape, from->shape, sizeof shape);
    shape[0] = count;
    WEFT_TRY(weft_array_new(ctx, from->dtype, from->rank, shape, out));
    size_t bytes = from->bytes / (size_t)from->shape[0];
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)out->data + (size_t)i * bytes, (const char *)from->data + (size_t)list[i] * bytes,
               bytes);
    return WEFT_OK;
}

/* Moves samples to the validation data: those of the list `order` behind the first `kept`. */
static weft_status set_aside(weft_context *ctx, const int64_t *order, int64_t kept, weft__dataset *d) {
    const int64_t rows = d->x[WEFT__TRAIN].shape[0];
    weft_array *pairs[][2] = {{&d->x[WEFT__TRAIN], &d->x[WEFT__VALIDATION]},
                              {&d->y[WEFT__TRAIN], &d->y[WEFT__VALIDATION]},
                              {&d->weights[WEFT__TRAIN], &d->weights[WEFT__VALIDATION]},
                              {&d->images.paths[WEFT__TRAIN], &d->images.paths[WEFT__VALIDATION]},
                              {&d->images.members[WEFT__TRAIN], &d->images.members[WEFT__VALIDATION]},
                              {&d->images.notes[WEFT__TRAIN], &d->images.notes[WEFT__VALIDATION]},
                              {&d->lengths[WEFT__TRAIN], &d->lengths[WEFT__VALIDATION]}};
    const int count = sizeof pairs / sizeof *pairs;
    weft_status status = WEFT_OK;
    for (int i = 0; i < count && kept < rows && status == WEFT_OK; i++) {
        if (!pairs[i][0]->data) continue;
        weft_array whole = *pairs[i][0], train = {0};
        status = pick(ctx, &whole, order + kept, rows - kept, pairs[i][1]);
        if (status == WEFT_OK) status = pick(ctx, &whole, order, kept, &train);
        if (status != WEFT_OK) break;
        weft_array_free(ctx, &whole);
        *pairs[i][0] = train;
    }
    if (d->in_files && kept < rows) {
        d->images.shards[WEFT__VALIDATION] = d->images.shards[WEFT__TRAIN];
        d->x[WEFT__VALIDATION] = d->x[WEFT__TRAIN];
        d->x[WEFT__VALIDATION].shape[0] = rows - kept;
        d->x[WEFT__TRAIN].shape[0] = kept;
    }
    return status;
}

/* Scales the data, and sets samples aside for validation unless there is a file of them. */
static weft_status scale_and_split(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const bool classes = d->task == WEFT__TASK_CLASSIFICATION;
    int64_t *order = NULL, kept = d->x[WEFT__TRAIN].shape[0];
    if (!config->data_val_path)
        WEFT_TRY(
            weft__dataset_order(ctx, config, kept, classes ? d->y[WEFT__TRAIN].data : NULL, &order, &kept));
    weft_status status =
        d->source->form == WEFT__FORM_TEXTS ? WEFT_OK : weft__dataset_scale(ctx, config, order, kept, d);
    if (status == WEFT_OK && order) status = set_aside(ctx, order, kept, d);
    weft__free(ctx, order);
    return status;
}

/* ---- classes ---- */

weft_status weft__dataset_take_classes(weft_context *ctx, const char *path, char *const *names, size_t count,
                                       weft__dataset *d) {
    d->classes = weft__array(ctx, count, sizeof *d->classes);
    if (!d->classes) return weft__fail_oom(ctx, count * sizeof *d->classes, path);
    d->outputs = (int64_t)count;
    for (size_t i = 0; i < count; i++) d->classes[i] = weft__strdup(ctx, names[i]);
    for (size_t i = 0; i < count; i++) {
        if (!d->classes[i]) return weft__fail_oom(ctx, strlen(names[i]), path);
        if (!weft__is_utf8(d->classes[i])) /* run folders store names as JSON */
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the name of class %zu is not UTF-8: convert it",
                              path, i);
    }
    return WEFT_OK;
}

/* Counts the classes of the training data. Classes of other splits must be among them. */
static weft_status count_classes(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    if (d->task != WEFT__TASK_CLASSIFICATION) return WEFT_OK;
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        const int32_t *labels = d->y[i].data;
        for (size_t j = 0; labels && j < weft__array_length(&d->y[i]); j++) {
            if (i == WEFT__TRAIN && !d->classes && labels[j] >= d->outputs)
                d->outputs = (int64_t)labels[j] + 1;
            if (labels[j] >= 0 && labels[j] < d->outputs) continue;
            char place[WEFT__PLACE_BYTES];
            const weft__source_file file = {ctx, config, paths[i], (weft__split)i, d, NULL, NULL, NULL};
            snprintf(place, sizeof place, "%s: sample %zu", paths[i], j);
            if (d->source->place) d->source->place(&file, j, place);
            return weft__fail(ctx, WEFT_ERR_INDEX, "%.700s: class %d, but %s 0 to %lld", place, labels[j],
                              i == WEFT__TRAIN && labels[j] < 0 ? "classes are" : "the training data has",
                              (long long)d->outputs - 1);
        }
    }
    if (d->outputs == 1)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: all %lld samples are of one class, so there is nothing to learn: give samples "
                          "of at least two classes",
                          config->data_path, (long long)d->x[WEFT__TRAIN].shape[0]);
    if (d->outputs > WEFT__CLASSES_MOST)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: %lld classes are too many; did you mean task: regression?", config->data_path,
                          (long long)d->outputs);
    return WEFT_OK;
}

/* ---- autoencoders: the inputs are the targets ---- */

static weft_status take_inputs_as_targets(weft_context *ctx, const weft__config *config, weft__dataset *d,
                                          const weft_array *x, weft_array *y) {
    d->outputs = d->features;
    if (x->dtype == WEFT_U8 && config->data_standardize) WEFT_TRY(weft__dataset_scale_pixels(ctx, d));
    if (x->dtype == WEFT_U8 && d->in_files) return WEFT_OK; /* the loader does all this */
    WEFT_TRY(weft_array_new(ctx, x->dtype, x->rank, x->shape, y));
    memcpy(y->data, x->data, x->bytes);
    return WEFT_OK;
}

/* Notes that a sample is an image, also if the model reads it as a row of numbers. */
static void note_image(const weft_array *x, weft__dataset *d) {
    if (d->source->cells || d->sample[0]) return;
    memcpy(d->sample, d->image, sizeof d->sample);
    if (d->sample[0] || !d->source->images || x->rank < 3 || x->rank > 4) return;
    d->sample[0] = 1;
    memcpy(d->sample + (4 - x->rank), x->shape + 1, (size_t)(x->rank - 1) * sizeof *d->sample);
}

/* Adds an array to the hash. Pixels that stay in files were added when they were read. */
static void hash_array(weft_hash *hash, const weft_array *array) {
    if (array->data) weft__hash_bytes(hash, array->data, array->bytes);
}

static weft_status read_split(weft_context *ctx, const weft__config *config, const char *path,
                              weft__split split, weft__dataset *d) {
    const bool itself = weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    weft_array *x = &d->x[split], *y = &d->y[split];
    const weft__source_file file = {ctx, config, path, split, d, x, itself ? NULL : y, NULL};
    WEFT_TRY(d->source->file(&file));
    WEFT_TRY(shape_images(ctx, config, path, x, d));
    note_image(x, d);
    WEFT_TRY(shape_inputs(ctx, path, d, x));
    hash_array(d->hashing, x);
    if (itself) return take_inputs_as_targets(ctx, config, d, x, y);
    WEFT_TRY(shape_targets(ctx, path, d, x->shape[0], y));
    if (d->source->named_numbers) WEFT_TRY(weft__dataset_name_numbers(ctx, path, split, d, y));
    hash_array(d->hashing, y);
    hash_array(d->hashing, &d->weights[split]);
    return WEFT_OK;
}

weft_status weft__dataset_read_tables(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_hash hash;
    if (config->data_weight && (!d->source->cells || weft__config_is(config, WEFT__TRAIT_NO_TARGETS)))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.weight: only csv files with a target can have weights");
    if (d->source->begin) WEFT_TRY(d->source->begin(ctx, config, paths, WEFT__SPLIT_COUNT, d));
    weft__hash_init(&hash);
    d->hashing = &hash;
    weft_status status = WEFT_OK;
    for (int i = 0; i < WEFT__SPLIT_COUNT && status == WEFT_OK; i++)
        if (paths[i]) status = read_split(ctx, config, paths[i], (weft__split)i, d);
    d->hashing = NULL;
    WEFT_TRY(status);
    d->hash = hash.a ^ weft__mix64(hash.b);
    WEFT_TRY(count_classes(ctx, config, d));
    return scale_and_split(ctx, config, d);
}

void weft__inputs_free(weft_context *ctx, weft__inputs *inputs) {
    weft_array_free(ctx, &inputs->x);
    weft_array_free(ctx, &inputs->lengths);
    weft__free(ctx, inputs->files);
    weft__free(ctx, inputs->members);
    weft__shards_free(ctx, inputs->shards);
    *inputs = (weft__inputs){0};
}

weft_status weft__dataset_inputs(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 const char *path, weft__inputs *inputs) {
    weft__dataset known = *dataset; /* used for its sizes and names; it frees nothing */
    weft_array *x = &inputs->x;
    const weft__source_file file = {ctx, config, path, WEFT__TEST, &known, x, NULL, inputs};
    weft_status status = WEFT_OK;
    *inputs = (weft__inputs){0};
    known.lengths[WEFT__TEST] = (weft_array){0};
    if (known.source->begin) status = known.source->begin(ctx, config, &path, 1, &known);
    if (status == WEFT_OK) status = known.source->file(&file);
    if (status == WEFT_OK && x->rank == 4) memcpy(inputs->sample, x->shape + 1, sizeof inputs->sample);
    if (status == WEFT_OK) status = shape_images(ctx, config, path, x, &known);
    if (status == WEFT_OK) status = shape_inputs(ctx, path, &known, x);
    const bool numbers = weft__config_is(config, WEFT__TRAIT_NO_TARGETS) || dataset->scaling.factor == 0;
    if (status == WEFT_OK && x->data && x->rank == 2 && (numbers || x->dtype != WEFT_U8))
        status = weft__dataset_scale_rows(ctx, path, dataset->features, dataset->scaling.mean,
                                          dataset->scaling.deviation, x);
    if (status != WEFT_OK) weft__inputs_free(ctx, inputs);
    return status;
}

weft_status weft__dataset_finish_rows(weft_context *ctx, const weft__dataset *dataset, weft_array *x) {
    weft_status status = check_finite(ctx, "rows", x);
    if (status == WEFT_OK)
        status = weft__dataset_scale_rows(ctx, "rows", dataset->features, dataset->scaling.mean,
                                          dataset->scaling.deviation, x);
    if (status != WEFT_OK) weft_array_free(ctx, x);
    return status;
}

weft_status weft__dataset_rows(weft_context *ctx, const weft__dataset *dataset, const double *rows, int64_t n,
                               weft_array *x) {
    WEFT_TRY(weft_array_new(ctx, WEFT_F64, 2, (int64_t[]){n, dataset->features}, x));
    memcpy(x->data, rows, x->bytes);
    return weft__dataset_finish_rows(ctx, dataset, x);
}

weft_status weft__dataset_cells(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                const char *const *cells, int64_t n, weft__inputs *inputs) {
    *inputs = (weft__inputs){0};
    return dataset->source->cells(ctx, dataset, config, cells, n, inputs);
}
