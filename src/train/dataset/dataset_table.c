/* Data of classification and regression. Reads idx, npy, csv and json files into arrays, and splits, checks
 * and normalizes them. Must not know: text, models. Read next: dataset_text.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "train/dataset/dataset_summary.h"

/* Finds the label file for the inputs of a split: the file that the configuration names, or the file name
 * that belongs to it in the MNIST collections. */
static weft_status labels_path(weft_context *ctx, const weft__config *config, const char *inputs,
                               weft__split split, char out[4096]) {
    if ((size_t)split < config->data_labels.count) {
        snprintf(out, 4096, "%s", config->data_labels.values[split]);
        return WEFT_OK;
    }
    const char *slash = strrchr(inputs, '/'), *name = slash ? slash + 1 : inputs,
               *at = strstr(name, "images-idx3");
    if (!at)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.labels: no label file is given for %s: name it there (one for each of path, "
                          "val_path, test_path)",
                          inputs);
    int wanted =
        snprintf(out, 4096, "%.*slabels-idx1%s", (int)(at - inputs), inputs, at + strlen("images-idx3"));
    if (wanted >= 4096) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", inputs);
    return WEFT_OK;
}

/* Reads the columns that the training data had, by their names. The file may have them in any order, and may
 * have other columns. A file without names is read by position. */
static weft_status read_named(weft_context *ctx, const char *path, const weft_csv_options *options,
                              const weft__dataset *d, weft_table *table) {
    weft_csv_options named = *options;
    named.columns = (const char *const *)d->columns;
    named.column_count = (size_t)d->features;
    if (options->target_column != 0 && d->target) {
        named.target = d->target;
        named.target_column = 0;
    }
    weft_status status = weft_read_csv(ctx, path, &named, table);
    if (status != WEFT_ERR_FORMAT && status != WEFT_ERR_ARGUMENT) return status;
    if (weft_read_csv(ctx, path, options, table) == WEFT_OK) {
        if (strcmp(table->columns[0], "1") == 0) return WEFT_OK;
        weft_table_free(ctx, table);
    }
    /* repeated for its message, which names the missing column */
    return weft_read_csv(ctx, path, &named, table);
}

/* Keeps the column names of the training data. Later files must have these columns. */
static weft_status keep_names(weft_context *ctx, weft__dataset *d, weft_table *table) {
    if (d->columns || strcmp(table->columns[0], "1") == 0) return WEFT_OK;
    for (size_t i = 0; i < table->column_count; i++)
        for (size_t j = 0; j < i && table->column_count <= 4096; j++)
            if (strcmp(table->columns[i], table->columns[j]) == 0)
                return WEFT_OK; /* equal names cannot be told apart */
    d->columns = table->columns;
    table->columns = NULL;
    d->features = (int64_t)table->column_count;
    if (!table->target_name || (d->target = weft__strdup(ctx, table->target_name))) return WEFT_OK;
    return weft__fail_oom(ctx, strlen(table->target_name) + 1, "the name of the target's column");
}

/* Reports class names in a file although the training data have numbers as classes. */
static weft_status refuse_names(weft_context *ctx, const char *path, const weft_table *table) {
    size_t row = 0;
    const char *name = table->classes[0];
    for (; row < (size_t)table->target.shape[0]; row++) {
        name = table->classes[((const int32_t *)table->target.data)[row]];
        if (strspn(name, "0123456789") != strlen(name) || (name[0] == '0' && name[1])) break;
    }
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: row %zu, column \"%.100s\": class \"%.100s\", but the classes of the training "
                      "data are numbers from 0 on",
                      path, row + 1, table->target_name, name);
}

static bool is_utf8(const char *text) {
    uint32_t point;
    for (size_t left = strlen(text); left > 0;) {
        int size = weft__utf8_read(text, left, &point);
        if (size <= 0) return false;
        text += size;
        left -= (size_t)size;
    }
    return true;
}

weft_status weft__dataset_take_classes(weft_context *ctx, const char *path, char *const *names, size_t count,
                                       weft__dataset *d) {
    d->classes = weft__array(ctx, count, sizeof *d->classes);
    if (!d->classes) return weft__fail_oom(ctx, count * sizeof *d->classes, path);
    d->outputs = (int64_t)count;
    for (size_t i = 0; i < count; i++) d->classes[i] = weft__strdup(ctx, names[i]);
    for (size_t i = 0; i < count; i++) {
        if (!d->classes[i]) return weft__fail_oom(ctx, strlen(names[i]), path);
        if (!is_utf8(d->classes[i])) /* run folders store names as JSON */
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the name of class %zu is not UTF-8: convert it",
                              path, i);
    }
    return WEFT_OK;
}

static weft_status read_csv(weft_context *ctx, const weft__config *config, const char *path,
                            weft__split split, bool target, weft__dataset *d, weft_array *x, weft_array *y) {
    weft_table table;
    weft_csv_options options = {.columns = (const char *const *)config->data_columns.values,
                                .column_count = config->data_columns.count,
                                .target = target ? config->data_target : NULL,
                                .target_column = target && !config->data_target ? -1 : 0,
                                .classes = (const char *const *)d->classes,
                                .class_count = d->classes ? (size_t)d->outputs : 0};
    static const weft_csv_header headers[] = {WEFT_CSV_HEADER_AUTO, WEFT_CSV_HEADER_YES, WEFT_CSV_HEADER_NO};
    if (config->data_columns.count == 0) options.columns = NULL;
    options.header = headers[config->data_header];
    const bool tab = config->data_delimiter && strcmp(config->data_delimiter, "tab") == 0;
    if (config->data_delimiter) options.delimiter = tab ? '\t' : config->data_delimiter[0];
    if (config->data_delimiter && config->data_delimiter[1] && !tab)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "data.delimiter: one character is wanted, or tab, not '%.20s'",
                          config->data_delimiter);
    if (target)
        options.target_type =
            config->task == WEFT__TASK_CLASSIFICATION ? WEFT_CSV_TARGET_CLASS : WEFT_CSV_TARGET_NUMBER;
    if (d->columns)
        WEFT_TRY(read_named(ctx, path, &options, d, &table));
    else
        WEFT_TRY(weft_read_csv(ctx, path, &options, &table));
    if (split == WEFT__TRAIN) {
        d->unnamed = strcmp(table.columns[0], "1") == 0;
        d->unused = table.unused;
        d->unused_count = table.unused_count;
        table.unused = NULL;
    }
    weft_status status = target ? keep_names(ctx, d, &table) : WEFT_OK;
    if (status == WEFT_OK && target && !d->classes && table.classes)
        status = split == WEFT__TRAIN && d->outputs == 0
                     ? weft__dataset_take_classes(ctx, path, table.classes, table.class_count, d)
                     : refuse_names(ctx, path, &table);
    if (status == WEFT_OK) {
        *x = table.features;
        if (y)
            *y = table.target;
        else
            weft_array_free(ctx, &table.target);
        table.features = table.target = (weft_array){0};
    }
    weft_table_free(ctx, &table);
    return status;
}

static weft_status read_json(weft_context *ctx, const weft__config *config, const char *path, bool target,
                             weft_array *x, weft_array *y) {
    const weft_json_options members[] = {
        {config->data_columns.count > 0 ? config->data_columns.values[0] : "x", WEFT_JSON_F32},
        {config->data_target ? config->data_target : "y",
         config->task == WEFT__TASK_CLASSIFICATION ? WEFT_JSON_I32 : WEFT_JSON_F32}};
    weft_array arrays[2] = {0};
    WEFT_TRY(weft_read_json_matrices(ctx, path, members, target ? 2 : 1, arrays));
    *x = arrays[0];
    if (target) *y = arrays[1];
    return WEFT_OK;
}

/* Reads the inputs of one file and, if y is not NULL, its targets. */
static weft_status read_file(weft_context *ctx, const weft__config *config, const char *path,
                             weft__split split, weft__dataset *d, weft_array *x, weft_array *y) {
    char labels[4096];
    if (config->data_source == WEFT__SOURCE_CSV)
        return read_csv(ctx, config, path, split, y != NULL, d, x, y);
    if (config->data_source == WEFT__SOURCE_JSON) return read_json(ctx, config, path, y != NULL, x, y);
    if (config->data_source == WEFT__SOURCE_IMAGES)
        return weft__dataset_read_images(ctx, config, path, d, x, y, NULL);
    if (config->data_source == WEFT__SOURCE_CIFAR10) {
        weft_array classes = {0};
        WEFT_TRY(weft_read_cifar10(ctx, path, x, &classes));
        if (y)
            *y = classes;
        else
            weft_array_free(ctx, &classes);
        return WEFT_OK;
    }
    bool idx = config->data_source == WEFT__SOURCE_IDX;
    WEFT_TRY(idx ? weft_read_idx(ctx, path, x) : weft_read_npy(ctx, path, x));
    if (!y) return WEFT_OK;
    WEFT_TRY(labels_path(ctx, config, path, split, labels));
    return idx ? weft_read_idx(ctx, labels, y) : weft_read_npy(ctx, labels, y);
}

/* ---- dtypes and shapes ---- */

static size_t elements(const weft_array *array) {
    size_t size = weft_dtype_size(array->dtype);
    return size ? array->bytes / size : 0;
}

/* Converts an array to another dtype: f32, or i32 for classes. */
static weft_status convert(weft_context *ctx, const char *path, weft_dtype dtype, weft_array *array) {
    weft_array made;
    if (array->dtype == dtype) return WEFT_OK;
    WEFT_TRY(weft_array_new(ctx, dtype, array->rank, array->shape, &made));
    for (size_t i = 0; i < elements(array); i++) {
        double value = weft__element(array->dtype, array->data, (int64_t)i);
        bool fits =
            dtype == WEFT_I32 ? value >= 0 && value <= INT32_MAX && value == floor(value) : !isnan(value);
        if (!fits) {
            weft_array_free(ctx, &made);
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: element %zu is %g, which is not a %s", path, i,
                              value, dtype == WEFT_I32 ? "class" : "number");
        }
        if (dtype == WEFT_I32)
            ((int32_t *)made.data)[i] = (int32_t)value;
        else
            ((float *)made.data)[i] = (float)value;
    }
    weft_array_free(ctx, array);
    *array = made;
    return WEFT_OK;
}

/* Refuses NaN and infinities. They would turn every weight into NaN. */
static weft_status check_finite(weft_context *ctx, const char *path, const weft_array *array) {
    const float *values = array->data;
    size_t count = elements(array), row = count / (size_t)array->shape[0];
    if (array->dtype != WEFT_F32) return WEFT_OK;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: sample %zu, number %zu is %f: repair it or leave the sample out", path,
                              i / row, i % row, (double)values[i]);
    return WEFT_OK;
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
                          "%s: has rows of numbers: set model.image to the channels, rows and columns of a "
                          "sample, such as [1, 8, 8]",
                          path);
    const bool fits = weft__numel(3, image, &pixels) && x->shape[0] > 0 &&
                      (size_t)pixels == elements(x) / (size_t)x->shape[0];
    if (!fits || (d->image[0] && memcmp(d->image, image, sizeof image) != 0))
        return weft__fail(
            ctx, WEFT_ERR_FORMAT, "%s: samples of %zu numbers are not images of %lld x %lld x %lld", path,
            x->shape[0] > 0 ? elements(x) / (size_t)x->shape[0] : 0,
            (long long)(fits ? d->image[0] : image[0]), (long long)(fits ? d->image[1] : image[1]),
            (long long)(fits ? d->image[2] : image[2]));
    memcpy(d->image, image, sizeof image);
    return WEFT_OK;
}

/* Reshapes samples to vectors (N, features). shape_targets makes targets (N) for classes and (N, outputs) for
 * numbers. */
static weft_status shape_inputs(weft_context *ctx, const char *path, weft__dataset *d, weft_array *x) {
    if (x->rank < 1) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: a single number is not a data set", path);
    int64_t features = 1;
    for (int i = 1; i < x->rank; i++) features *= x->shape[i];
    if (x->shape[0] < 1) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there are no samples", path);
    if (features < 1)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: row 1 has no numbers, and neither has any other of the %lld rows", path,
                          (long long)x->shape[0]);
    if (d->features > 0 && d->features != features)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: samples of %lld numbers, but the model takes %lld", path,
                          (long long)features, (long long)d->features);
    d->features = features;
    x->rank = 2;
    x->shape[1] = features;
    if (x->dtype == WEFT_U8) return WEFT_OK;
    WEFT_TRY(convert(ctx, path, WEFT_F32, x));
    return check_finite(ctx, path, x);
}

static weft_status shape_targets(weft_context *ctx, const char *path, weft__dataset *d, int64_t rows,
                                 weft_array *y) {
    if (!y->data || y->rank < 1 || y->shape[0] != rows)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %lld samples, but %lld targets", path, (long long)rows,
                          y->data && y->rank > 0 ? (long long)y->shape[0] : 0LL);
    int64_t width = 1;
    for (int i = 1; i < y->rank; i++) width *= y->shape[i];
    if (d->task == WEFT__TASK_REGRESSION) {
        if (d->outputs > 0 && d->outputs != width)
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %lld numbers to predict, but the model gives %lld",
                              path, (long long)width, (long long)d->outputs);
        d->outputs = width;
        y->rank = 2;
        y->shape[1] = width;
        WEFT_TRY(convert(ctx, path, WEFT_F32, y));
        return check_finite(ctx, path, y);
    }
    if (width != 1) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: one class for each sample is wanted", path);
    y->rank = 1;
    return convert(ctx, path, WEFT_I32, y);
}

/* ---- splitting and scaling ---- */

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

static weft_status set_aside(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const int64_t rows = d->x[WEFT__TRAIN].shape[0];
    int64_t kept, *order;
    WEFT_TRY(weft__dataset_order(ctx, config, d, &order, &kept));
    weft_array *pairs[][2] = {{&d->x[WEFT__TRAIN], &d->x[WEFT__VALIDATION]},
                              {&d->y[WEFT__TRAIN], &d->y[WEFT__VALIDATION]}};
    weft_status status = WEFT_OK;
    for (int i = 0; i < 2 && kept < rows && status == WEFT_OK; i++) {
        weft_array whole = *pairs[i][0], train = {0};
        status = pick(ctx, &whole, order + kept, rows - kept, pairs[i][1]);
        if (status == WEFT_OK) status = pick(ctx, &whole, order, kept, &train);
        if (status != WEFT_OK) break;
        weft_array_free(ctx, &whole);
        *pairs[i][0] = train;
    }
    weft__free(ctx, order);
    return status;
}

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
static weft_status dataset_table_measure(weft_context *ctx, const weft_array *array, int64_t columns,
                                         float **mean, float **deviation) {
    if (*mean) return WEFT_OK;
    double *sums = weft__array(ctx, 2 * (size_t)columns, sizeof *sums);
    *mean = weft__array(ctx, (size_t)columns, sizeof **mean);
    *deviation = weft__array(ctx, (size_t)columns, sizeof **deviation);
    const bool made = sums && *mean && *deviation;
    if (made) measure_columns(array, columns, sums, *mean, *deviation);
    weft__free(ctx, sums);
    return made ? WEFT_OK : weft__fail_oom(ctx, (size_t)columns * 24, "scaling");
}

static void scale_rows(weft_array *array, int64_t columns, const float *mean, const float *deviation) {
    float *values = array->data;
    const size_t rows = elements(array) / (size_t)columns;
    for (size_t i = 0; i < rows; i++, values += columns)
        for (int64_t c = 0; c < columns; c++) values[c] = (values[c] - mean[c]) / deviation[c];
}

/* Measures mean and standard deviation of each channel of u8 images. The results refer to values after
 * `scale`. */
static weft_status measure_channels(weft_context *ctx, weft__dataset *d) {
    const size_t channels = (size_t)d->image[0], pixels = (size_t)(d->image[1] * d->image[2]);
    const uint8_t *values = d->x[WEFT__TRAIN].data;
    const size_t samples = (size_t)d->x[WEFT__TRAIN].shape[0];
    if (d->pixel_mean) return WEFT_OK;
    d->pixel_mean = weft__array(ctx, channels, sizeof *d->pixel_mean);
    d->pixel_deviation = weft__array(ctx, channels, sizeof *d->pixel_deviation);
    if (!d->pixel_mean || !d->pixel_deviation) return weft__fail_oom(ctx, channels * 8, "scaling");
    for (size_t c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0; /* exact: below 2^64 for up to 2^48 pixels */
        for (size_t i = 0; i < samples; i++)
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

static weft_status scale(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    bool images = d->x[WEFT__TRAIN].dtype == WEFT_U8;
    /* bytes are plain numbers if the training data are numbers */
    for (int i = 1; i < WEFT__SPLIT_COUNT && !images; i++)
        if (d->x[i].data) WEFT_TRY(convert(ctx, paths[i], WEFT_F32, &d->x[i]));
    if (images) {
        d->scale = config->data_standardize ? 1.0 / 255.0 : 1;
        for (int i = 1; i < WEFT__SPLIT_COUNT; i++)
            if (d->x[i].data && d->x[i].dtype != WEFT_U8)
                return weft__fail(ctx, WEFT_ERR_FORMAT,
                                  "data: the training inputs are u8, but other inputs are not");
    }
    if (!config->data_standardize) return WEFT_OK;
    if (images && d->image[0]) WEFT_TRY(measure_channels(ctx, d));
    if (!images)
        WEFT_TRY(dataset_table_measure(ctx, &d->x[WEFT__TRAIN], d->features, &d->mean, &d->deviation));
    const bool numbers = d->task == WEFT__TASK_REGRESSION;
    if (numbers)
        WEFT_TRY(dataset_table_measure(ctx, &d->y[WEFT__TRAIN], d->outputs, &d->target_mean,
                                       &d->target_deviation));
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        if (!d->x[i].data) continue;
        if (!images) scale_rows(&d->x[i], d->features, d->mean, d->deviation);
        if (numbers) scale_rows(&d->y[i], d->outputs, d->target_mean, d->target_deviation);
    }
    return WEFT_OK;
}

/* Writes where the label of a sample is: row and column, index, or byte. */
static void label_place(weft_context *ctx, const weft__config *config, const weft__dataset *d,
                        const char *path, weft__split split, size_t sample, char out[4352]) {
    char labels[4096];
    if (config->data_source == WEFT__SOURCE_CSV)
        snprintf(out, 4352, "%s: row %zu, column \"%.100s\"", path, sample + 1,
                 config->data_target ? config->data_target
                 : d->target         ? d->target
                                     : "the last");
    else if (config->data_source == WEFT__SOURCE_JSON)
        snprintf(out, 4352, "%s: %.100s[%zu]", path, config->data_target ? config->data_target : "y", sample);
    else if (config->data_source == WEFT__SOURCE_CIFAR10) /* a record is a label and 3,072 pixels */
        snprintf(out, 4352, "%s: byte %zu", path, sample * 3073);
    else if (labels_path(ctx, config, path, split, labels) != WEFT_OK)
        snprintf(out, 4352, "%s: sample %zu", path, sample);
    else if (config->data_source == WEFT__SOURCE_IDX) /* a header of 8 bytes, then one byte per label */
        snprintf(out, 4352, "%s: byte %zu", labels, sample + 8);
    else
        snprintf(out, 4352, "%s: element %zu", labels, sample);
}

/* Counts the classes of the training data. Classes of other splits must be among them. */
static weft_status count_classes(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    if (d->task != WEFT__TASK_CLASSIFICATION) return WEFT_OK;
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        const int32_t *labels = d->y[i].data;
        for (size_t j = 0; labels && j < elements(&d->y[i]); j++) {
            if (i == WEFT__TRAIN && !d->classes && labels[j] >= d->outputs)
                d->outputs = (int64_t)labels[j] + 1;
            if (labels[j] >= 0 && labels[j] < d->outputs) continue;
            char place[4352];
            label_place(ctx, config, d, paths[i], (weft__split)i, j, place);
            return weft__fail(ctx, WEFT_ERR_INDEX, "%.700s: class %d, but %s 0 to %lld", place, labels[j],
                              i == WEFT__TRAIN && labels[j] < 0 ? "classes are" : "the training data has",
                              (long long)d->outputs - 1);
        }
    }
    if (d->outputs == 1)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: all %lld samples are of one class: there is nothing to tell apart",
                          config->data_path, (long long)d->x[WEFT__TRAIN].shape[0]);
    if (d->outputs > 1000000)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: %lld classes are too many; did you mean task: regression?", config->data_path,
                          (long long)d->outputs);
    return WEFT_OK;
}

/* ---- the task ---- */

static int by_number(const void *x, const void *y) {
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* Tells why numbers are no classes; NULL if they may be. Sorts them. */
static const char *no_classes(float *values, size_t count) {
    enum { CLASSES_MOST = 100 };
    size_t distinct = count > 0;
    for (size_t i = 0; i < count; i++)
        if (values[i] != floorf(values[i])) return "has numbers with fractions";
    qsort(values, count, sizeof *values, by_number);
    for (size_t i = 1; i < count; i++) distinct += values[i] != values[i - 1];
    return distinct > CLASSES_MOST ? "has more than 100 different numbers" : NULL;
}

weft_status weft__dataset_guess_task(weft_context *ctx, weft__config *config, const char **why) {
    weft__dataset d = {.task = WEFT__TASK_REGRESSION};
    weft_array x = {0}, y = {0};
    weft__config numbers = *config;
    *why = NULL;
    if (weft__config_given(config, WEFT__KEY_task) || config->task != WEFT__TASK_CLASSIFICATION ||
        config->model_type != WEFT__MODEL_MLP || config->data_source != WEFT__SOURCE_CSV ||
        config->train_class_weights.count || config->train_label_smoothing > 0)
        return WEFT_OK;
    numbers.task = WEFT__TASK_REGRESSION;
    weft_status status = read_csv(ctx, &numbers, config->data_path, WEFT__TRAIN, true, &d, &x, &y);
    if (status == WEFT_OK) *why = no_classes(y.data, elements(&y));
    if (*why) {
        config->task = WEFT__TASK_REGRESSION;
        config->origin[WEFT__KEY_task] = WEFT__ORIGIN_FOUND;
    }
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    weft__dataset_free(ctx, &d);
    return status == WEFT_ERR_OOM ? status
                                  : WEFT_OK; /* reading the data for training says what else is wrong */
}

/* ---- autoencoders: the inputs are the targets ---- */

/* Makes an array with one number everywhere, unless there is one already. */
static weft_status dataset_table_fill(weft_context *ctx, int64_t count, float value, float **out) {
    if (*out) return WEFT_OK;
    *out = weft__array(ctx, (size_t)count, sizeof **out);
    if (!*out) return weft__fail_oom(ctx, (size_t)count * sizeof **out, "scaling");
    for (int64_t i = 0; i < count; i++) (*out)[i] = value;
    return WEFT_OK;
}

/* Normalizes pixels to 0..1, all with the same factor. */
static weft_status scale_pixels(weft_context *ctx, weft__dataset *d) {
    WEFT_TRY(dataset_table_fill(ctx, d->features, 0, &d->mean));
    WEFT_TRY(dataset_table_fill(ctx, d->features, 255, &d->deviation));
    WEFT_TRY(dataset_table_fill(ctx, d->features, 0, &d->target_mean));
    return dataset_table_fill(ctx, d->features, 255, &d->target_deviation);
}

static weft_status take_inputs_as_targets(weft_context *ctx, const weft__config *config, const char *path,
                                          weft__dataset *d, weft_array *x, weft_array *y) {
    d->outputs = d->features;
    if (x->dtype == WEFT_U8) {
        WEFT_TRY(convert(ctx, path, WEFT_F32, x));
        if (config->data_standardize) WEFT_TRY(scale_pixels(ctx, d));
    }
    WEFT_TRY(weft_array_new(ctx, x->dtype, x->rank, x->shape, y));
    memcpy(y->data, x->data, x->bytes);
    return WEFT_OK;
}

/* Notes that a sample is an image, also if the model reads it as a row of numbers. */
static void note_image(const weft__config *config, const weft_array *x, weft__dataset *d) {
    const int source = config->data_source;
    const bool images =
        source == WEFT__SOURCE_IMAGES || source == WEFT__SOURCE_IDX || source == WEFT__SOURCE_CIFAR10;
    if (source == WEFT__SOURCE_CSV || d->sample[0]) return;
    memcpy(d->sample, d->image, sizeof d->sample);
    if (d->sample[0] || !images || x->rank < 3 || x->rank > 4) return;
    d->sample[0] = 1;
    memcpy(d->sample + (4 - x->rank), x->shape + 1, (size_t)(x->rank - 1) * sizeof *d->sample);
}

static weft_status read_split(weft_context *ctx, const weft__config *config, const char *path,
                              weft__split split, weft__dataset *d) {
    const bool itself = weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    weft_array *x = &d->x[split], *y = &d->y[split];
    WEFT_TRY(read_file(ctx, config, path, split, d, x, itself ? NULL : y));
    WEFT_TRY(shape_images(ctx, config, path, x, d));
    note_image(config, x, d);
    WEFT_TRY(shape_inputs(ctx, path, d, x));
    return itself ? take_inputs_as_targets(ctx, config, path, d, x, y)
                  : shape_targets(ctx, path, d, x->shape[0], y);
}

weft_status weft__dataset_read_tables(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_hash hash;
    weft__hash_init(&hash);
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        if (!paths[i]) continue;
        WEFT_TRY(read_split(ctx, config, paths[i], (weft__split)i, d));
        weft__hash_bytes(&hash, d->x[i].data, d->x[i].bytes);
        weft__hash_bytes(&hash, d->y[i].data, d->y[i].bytes);
    }
    d->hash = hash.a ^ weft__mix64(hash.b);
    WEFT_TRY(count_classes(ctx, config, d));
    if (!paths[WEFT__VALIDATION]) WEFT_TRY(set_aside(ctx, config, d));
    return scale(ctx, config, d);
}

weft_status weft__dataset_inputs(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 const char *path, weft_array *x, char ***files) {
    weft__dataset known = *dataset; /* used for its sizes and names; it frees nothing */
    *files = NULL;
    weft_status status = config->data_source == WEFT__SOURCE_IMAGES
                             ? weft__dataset_read_images(ctx, config, path, &known, x, NULL, files)
                             : read_file(ctx, config, path, WEFT__TEST, &known, x, NULL);
    if (status == WEFT_OK) status = shape_images(ctx, config, path, x, &known);
    if (status == WEFT_OK) status = shape_inputs(ctx, path, &known, x);
    if (status == WEFT_OK && (weft__config_is(config, WEFT__TRAIT_NO_TARGETS) || dataset->scale == 0))
        status = convert(ctx, path, WEFT_F32, x);
    if (status == WEFT_OK && x->dtype == WEFT_F32 && dataset->mean)
        scale_rows(x, dataset->features, dataset->mean, dataset->deviation);
    if (status != WEFT_OK) weft_array_free(ctx, x);
    return status;
}

/* ---- the summary ---- */

/* Tells whether a column has the same number in all rows of the training data. */
static bool is_constant(const weft__dataset *d, int64_t column) {
    const weft_array *x = &d->x[WEFT__TRAIN];
    const float *values = x->data;
    if (x->dtype != WEFT_F32) return false;
    for (int64_t i = 1; i < x->shape[0]; i++)
        if (values[i * d->features + column] != values[column]) return false;
    return x->shape[0] > 1;
}

/* Puts the names of the input columns. If `constant`, only of those that have one value. */
static void put_columns(const weft__dataset *d, bool constant, weft__lines *l) {
    int64_t count = 0, last = -1;
    for (int64_t i = 0; i < d->features; i++) {
        if (constant && !is_constant(d, i)) continue;
        count++;
        last = i;
    }
    if (count == 0) return;
    weft__line(l,
               constant ? "no effect: %lld column%s with the same number in all training rows%s"
                        : "inputs: %lld column%s of numbers%s",
               (long long)count, weft__plural(count), d->columns ? ": " : "");
    for (int64_t i = 0; i <= last && d->columns && !l->full; i++)
        if (!constant || is_constant(d, i)) weft__line_item(l, i == last, "%.400s", d->columns[i]);
}

void weft__dataset_table_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const char *file = weft__line_file(config->data_path);
    long long rows = (long long)weft__dataset_samples(d, WEFT__TRAIN);
    if (!config->data_val_path) rows += (long long)weft__dataset_samples(d, WEFT__VALIDATION);
    if (config->data_source != WEFT__SOURCE_CSV) {
        weft__line(l, "data: %lld samples of %lld numbers, from %.300s", rows, (long long)d->features, file);
        return;
    }
    const bool target = !weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    weft__line(l, "data: %lld rows, %lld columns%s, from %.300s", rows,
               (long long)d->features + target + (long long)d->unused_count,
               d->unnamed ? " without names" : "", file);
    put_columns(d, false, l);
    put_columns(d, true, l);
    if (d->unused_count == 0) return;
    weft__line(l, "not used: %zu column%s: ", d->unused_count, weft__plural((int64_t)d->unused_count));
    for (size_t i = 0; i < d->unused_count; i++)
        weft__line_item(l, i + 1 == d->unused_count, "%.400s", d->unused[i]);
}
