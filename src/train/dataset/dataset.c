/* The data of a run: reads them, makes loaders, and writes the files that let a trained model be used without
 * its data. Must not know: formats (train/source). Read next: dataset_table.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/io.h>
#include <weft/published.h>

#include "base/text.h"
#include "data/loader.h"
#include "data/parse.h"
#include "data/shard_files.h"
#include "io/sealed.h"
#include "io/sum.h"
#include "train/dataset/dataset.h"

#define PATH_BYTES    4096
#define TOKENIZER_MAX ((size_t)256 << 20) /* most bytes of tokenizer.json */

static bool is_corpus(const weft__config *config) {
    return weft__source_of(config)->form == WEFT__FORM_CORPUS;
}

static weft_status take_tokenizer(weft_context *ctx, const char *path, weft__dataset *dataset) {
    WEFT_TRY(weft_published_tokenizer(ctx, path, &dataset->tokens.tokenizer));
    dataset->tokens.vocabulary = (int64_t)weft_tokenizer_vocabulary(dataset->tokens.tokenizer);
    return WEFT_OK;
}

/* Computes the checksum of a whole file. */
static weft_status sum_of(weft_context *ctx, const char *path, char out[WEFT__SUM_TEXT]) {
    weft_bytes bytes;
    weft__sum sum;
    WEFT_TRY(weft_read_file(ctx, path, TOKENIZER_MAX, &bytes));
    weft__sum_init(&sum);
    weft__sum_all(&sum, bytes.data, bytes.size);
    weft__sum_text(&sum, out);
    weft_bytes_free(ctx, &bytes);
    return WEFT_OK;
}

/* Reads data.json and verifies its seal. data.json holds the checksum of tokenizer.json, which is verified
 * too. The caller closes `json`, also after a failure. */
static weft_status read_description(weft_context *ctx, const char *run, weft__json *json, json_t **root) {
    char path[PATH_BYTES], sum[WEFT__SUM_TEXT];
    const weft_status status = weft__sealed_read(ctx, run, "data.json", json, root);
    if (status == WEFT_ERR_STATE)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s/data.json: missing: the run folder is incomplete, or an older Weft wrote it; "
                          "restore the file, or train again",
                          run);
    WEFT_TRY(status);
    const char *expected = json_string_value(json_object_get(*root, "tokenizer"));
    if (!expected) return WEFT_OK;
    if (!weft__join(path, sizeof path, run, "tokenizer.json"))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", run);
    WEFT_TRY(sum_of(ctx, path, sum));
    if (strcmp(sum, expected) == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: checksum %s, %s was written: damaged or edited; restore the file, or train again",
                      path, sum, expected);
}

weft_status weft__dataset_check(weft_context *ctx, const char *run) {
    weft__json json;
    json_t *root;
    const weft_status status = read_description(ctx, run, &json, &root);
    weft__json_close(&json);
    return status;
}

static weft_status load_tokenizer(weft_context *ctx, const char *run, weft__dataset *dataset) {
    char path[PATH_BYTES];
    WEFT_TRY(weft__dataset_check(ctx, run));
    if (!weft__join(path, sizeof path, run, "tokenizer.json"))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", run);
    return take_tokenizer(ctx, path, dataset);
}

static weft_status given_tokenizer(weft_context *ctx, const weft__config *config, weft__dataset *dataset) {
    const char *path = config->data_tokenizer_path;
    char name[32];
    WEFT_TRY(take_tokenizer(ctx, path, dataset));
    const char *kind = weft_tokenizer_kind_name(weft_tokenizer_kind_of(dataset->tokens.tokenizer));
    weft__config_choice(WEFT__KEY_data_tokenizer, config->data_tokenizer, name);
    if (!weft__config_given(config, WEFT__KEY_data_tokenizer) || strcmp(kind, name) == 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: this tokenizer has the kind %s, but data.tokenizer is %s",
                      path, kind, name);
}

weft_status weft__dataset_read(weft_context *ctx, const weft__config *config, const char *run,
                               weft__dataset *dataset) {
    memset(dataset, 0, sizeof *dataset);
    WEFT_TRY(weft__config_check_data(config));
    dataset->task = (weft__task)config->task;
    dataset->source = weft__source_of(config);
    dataset->images.max_pixels = config->data_image_pixels;
    if (!is_corpus(config)) {
        if (run) WEFT_TRY(weft__dataset_describe(ctx, config, run, dataset));
        return weft__dataset_read_tables(ctx, config, dataset);
    }
    if (run && weft__is_run(run) && weft__source_has_tokenizer(config))
        WEFT_TRY(load_tokenizer(ctx, run, dataset));
    else if (run && weft__is_run(run))
        WEFT_TRY(weft__dataset_check(ctx, run));
    else if (config->data_tokenizer_path)
        WEFT_TRY(given_tokenizer(ctx, config, dataset));
    return dataset->source->read(ctx, config, dataset);
}

void weft__dataset_free(weft_context *ctx, weft__dataset *dataset) {
    weft_corpus_free(dataset->tokens.corpus);
    weft_tokenizer_free(dataset->tokens.tokenizer);
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        weft__free(ctx, dataset->tokens.ids[i]);
        weft_tokens_free(dataset->tokens.files[i]);
        weft_array_free(ctx, &dataset->x[i]);
        weft_array_free(ctx, &dataset->y[i]);
        weft_array_free(ctx, &dataset->weights[i]);
        weft_array_free(ctx, &dataset->lengths[i]);
        weft_array_free(ctx, &dataset->chats.reference[i]);
        weft_array_free(ctx, &dataset->images.paths[i]);
        weft_array_free(ctx, &dataset->images.notes[i]);
        weft__free(ctx, dataset->images.names[i]);
        weft_array_free(ctx, &dataset->images.members[i]);
        if (i == WEFT__TRAIN || dataset->images.shards[i] != dataset->images.shards[WEFT__TRAIN])
            weft__shards_free(ctx, dataset->images.shards[i]);
    }
    weft__free(ctx, dataset->scaling.mean);
    weft__free(ctx, dataset->scaling.deviation);
    weft__free(ctx, dataset->scaling.pixel_mean);
    weft__free(ctx, dataset->scaling.pixel_deviation);
    weft__free(ctx, dataset->scaling.target_mean);
    weft__free(ctx, dataset->scaling.target_deviation);
    for (int64_t i = 0; dataset->classes && i < dataset->outputs; i++) weft__free(ctx, dataset->classes[i]);
    weft__free(ctx, dataset->classes);
    weft__columns_free(ctx, &dataset->table.kinds);
    weft__free(ctx, dataset->table.inputs);
    weft__free(ctx, dataset->texts.columns);
    weft__free(ctx, dataset->table.target);
    weft__free(ctx, dataset->table.unused);
    memset(dataset, 0, sizeof *dataset);
}

void weft__dataset_hash(const weft__dataset *dataset, char out[17]) {
    snprintf(out, 17, "%016llx", (unsigned long long)dataset->hash);
}

const weft_tokenizer *weft__dataset_tokenizer(const weft__dataset *dataset) {
    if (dataset->tokens.tokenizer) return dataset->tokens.tokenizer;
    return dataset->tokens.corpus ? weft_corpus_tokenizer(dataset->tokens.corpus) : NULL;
}

const int32_t *weft__dataset_ids(const weft__dataset *dataset, weft__split split, size_t *count) {
    static const weft_corpus_part parts[] = {WEFT_CORPUS_TRAIN, WEFT_CORPUS_VALIDATION, WEFT_CORPUS_TEST};
    if (dataset->tokens.corpus) return weft_corpus_ids(dataset->tokens.corpus, parts[split], count);
    *count = dataset->tokens.id_count[split];
    return dataset->tokens.ids[split];
}

int64_t weft__dataset_samples(const weft__dataset *dataset, weft__split split) {
    size_t count = 0;
    if (dataset->chats.rows) return dataset->chats.packed[split].tokens;
    if (dataset->x[split].rank > 0) return dataset->x[split].shape[0];
    (void)weft__dataset_ids(dataset, split, &count);
    return (int64_t)count;
}

int64_t weft__dataset_row_tokens(const weft__dataset *dataset, const weft__config *config) {
    return dataset->chats.pairs ? dataset->x[WEFT__TRAIN].shape[2] : config->model_context;
}

double weft__dataset_weight(const weft__dataset *dataset) {
    const weft_array *weights = &dataset->weights[WEFT__TRAIN];
    double sum = 0;
    if (!weights->data) return (double)weft__dataset_samples(dataset, WEFT__TRAIN);
    for (int64_t i = 0; i < weights->shape[0]; i++) sum += (double)((const float *)weights->data)[i];
    return sum;
}

bool weft__dataset_has(const weft__dataset *dataset, weft__split split) {
    return weft__dataset_samples(dataset, split) > (dataset->source->form == WEFT__FORM_CORPUS);
}

weft_status weft__dataset_guess_task(weft_context *ctx, weft__config *config, const char **why) {
    const weft__source_kind *source = weft__source_of(config);
    *why = NULL;
    if (weft__config_given(config, WEFT__KEY_task) || config->task != WEFT__TASK_CLASSIFICATION ||
        config->model_type != WEFT__MODEL_MLP || !source->guess_task || config->train_class_weights.count ||
        config->train_label_smoothing > 0)
        return WEFT_OK;
    return source->guess_task(ctx, config, why);
}

void weft__dataset_unscale(const weft__dataset *d, double *values, int64_t rows) {
    for (int64_t i = 0; d->scaling.target_mean && i < rows * d->outputs; i++) {
        const int64_t column = i % d->outputs;
        values[i] = values[i] * d->scaling.target_deviation[column] + d->scaling.target_mean[column];
    }
}

int64_t weft__dataset_limit(int64_t most, int64_t batch, int64_t all) {
    int64_t wanted;
    return most > 0 && weft__mul(most, batch, &wanted) && wanted < all ? wanted : all;
}

/* Returns the first rows of an array, without a copy. */
static weft_array first_rows(const weft_array *array, int64_t rows) {
    weft_array first = *array;
    if (first.rank > 0) first.shape[0] = rows;
    first.bytes = 0; /* 0: the size follows from the shape */
    return first;
}

int64_t weft__dataset_streams(const weft__config *config, int64_t count, int64_t batch) {
    return (count / batch - 1) / config->model_context;
}

int64_t weft__dataset_whole_steps(const weft__config *config, int64_t all) {
    return all < config->train_accumulate ? all : all - all % config->train_accumulate;
}

int64_t weft__dataset_left_out(const weft__dataset *dataset, const weft__config *config) {
    const int64_t batch = config->train_batch, count = weft__dataset_samples(dataset, WEFT__TRAIN);
    if (batch < 1 || batch > count) return 0;
    if (!is_corpus(config))
        return weft__config_is(config, WEFT__TRAIT_WHOLE_BATCHES)
                   ? count - batch * weft__dataset_whole_steps(config, count / batch)
                   : 0;
    const int64_t all = weft__dataset_streams(config, count, batch);
    if (!config->data_streams || all < 1) return 0;
    return count - batch * (weft__dataset_whole_steps(config, all) * config->model_context + 1);
}

weft_image_options weft__dataset_images(const weft__dataset *d, const weft__image_places *places) {
    const bool in_files = places->files || places->members;
    const int64_t *image = in_files ? places->sample : d->image;
    weft_image_options options = {.channels = image[0],
                                  .rows = image[1],
                                  .columns = image[2],
                                  .mean = d->scaling.pixel_mean,
                                  .deviation = d->scaling.pixel_deviation,
                                  .files = places->files,
                                  .members = places->members,
                                  .shards = places->shards,
                                  .max_pixels = d->images.max_pixels};
    if (in_files && d->scaling.mean) { /* an autoencoder: see weft__dataset_scale_pixels */
        static const float zero[4], most[4] = {255, 255, 255, 255};
        options.mean = zero;
        options.deviation = most;
    }
    return options;
}

weft_status weft__dataset_loader(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 weft__split split, int64_t most, weft_loader **out) {
    int64_t batch = config->train_batch ? config->train_batch : 1;       /* auto is not chosen yet */
    const bool trains = weft__dataset_samples(dataset, WEFT__TRAIN) > 0; /* not where new data are measured */
    if (batch == WEFT__BATCH_FULL) batch = weft__dataset_samples(dataset, trains ? WEFT__TRAIN : split);
    weft_loader_options options = {
        .batch = batch,
        .in_order = split != WEFT__TRAIN,
        .streams = split == WEFT__TRAIN && config->data_streams,
        .seed = (uint64_t)config->train_seed,
        .accumulate = split == WEFT__TRAIN ? (int)config->train_accumulate : 1,
        .scale = dataset->scaling.factor,
        .drop_last = split == WEFT__TRAIN && weft__config_is(config, WEFT__TRAIT_WHOLE_BATCHES),
        .images = weft__dataset_images(dataset,
                                       &(weft__image_places){.files = dataset->images.paths[split].data,
                                                             .members = dataset->images.members[split].data,
                                                             .shards = dataset->images.shards[split],
                                                             .sample = dataset->sample})};
    options.images.shift = config->data_shift;
    options.images.flip = config->data_flip;
    options.images.crop = config->data_crop;
    options.images.rotate = config->data_rotate;
    options.images.brightness = config->data_brightness;
    options.images.contrast = config->data_contrast;
    options.images.saturation = config->data_saturation;
    options.images.erase = config->data_erase;
    options.images.mixup = config->data_mixup;
    options.images.cutmix = config->data_cutmix;
    options.skip_negative = dataset->chats.rows && !dataset->chats.pairs;
    if (dataset->source->loader)
        return dataset->source->loader(ctx, dataset, config, split, most, &options, out);
    const int64_t rows = weft__dataset_limit(most, options.batch, dataset->x[split].shape[0]);
    const weft_array x = first_rows(&dataset->x[split], rows), y = first_rows(&dataset->y[split], rows);
    const weft_array reference = first_rows(&dataset->chats.reference[split], rows);
    if (dataset->chats.pairs) options.extra = &reference;
    options.weights = dataset->weights[split].data;
    options.lengths = dataset->texts.whole ? NULL : dataset->lengths[split].data;
    if (options.batch > rows) options.batch = rows; /* the whole split is one batch */
    if (dataset->task == WEFT__TASK_CLASSIFICATION) options.classes = dataset->outputs;
    const bool reproduces = dataset->in_files && weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    WEFT_TRY(weft_loader_new(ctx, &x, reproduces ? NULL : &y, &options, out));
    if (dataset->in_files) weft__loader_expect(*out, dataset->images.notes[split].data, reproduces);
    return WEFT_OK;
}

/* ---- what a trained model must know about its data ---- */

static json_t *numbers(const double *values, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_real(values[i])) != 0) return NULL;
    return array;
}

static json_t *floats(const float *values, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_real((double)values[i])) != 0) return NULL;
    return array;
}

static bool put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}

bool weft__dataset_put_texts(json_t *object, const char *key, char *const *values, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(values[i])) != 0) return false;
    return put(object, key, array);
}

static json_t *dataset_describe(const weft__dataset *d) {
    const weft__scale_data *s = &d->scaling;
    const json_int_t channels = d->image[0], rows = d->image[1], columns = d->image[2];
    json_t *object = json_pack("{s:I, s:I, s:f}", "features", (json_int_t)d->features, "outputs",
                               (json_int_t)d->outputs, "scale", s->factor);
    bool made = object != NULL;
    if (s->target_mean)
        made = put(object, "target_mean", numbers(s->target_mean, d->outputs)) &&
               put(object, "target_deviation", numbers(s->target_deviation, d->outputs)) && made;
    if (s->mean)
        made = put(object, "mean", numbers(s->mean, d->features)) &&
               put(object, "deviation", numbers(s->deviation, d->features)) && made;
    if (channels) made = put(object, "image", json_pack("[I, I, I]", channels, rows, columns)) && made;
    if (s->pixel_mean)
        made = put(object, "pixel_mean", floats(s->pixel_mean, channels)) &&
               put(object, "pixel_deviation", floats(s->pixel_deviation, channels)) && made;
    if (d->classes) made = weft__dataset_put_texts(object, "classes", d->classes, d->outputs) && made;
    if (d->source->save) made = d->source->save(d, object) && made;
    if (d->tokens.vocabulary > 0)
        made = put(object, "vocabulary", json_integer(d->tokens.vocabulary)) && made;
    return made ? object : NULL;
}

weft_status weft__dataset_save(const weft__dataset *dataset, const char *run) {
    char path[PATH_BYTES], sum[WEFT__SUM_TEXT];
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(dataset);
    weft__json json;
    if (tokenizer) {
        if (!weft__join(path, sizeof path, run, "tokenizer.json"))
            return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run);
        WEFT_TRY(weft_tokenizer_save(tokenizer, path));
        WEFT_TRY(sum_of(NULL, path, sum));
    }
    weft__json_build(&json, NULL);
    json_t *object = dataset_describe(dataset);
    if (tokenizer) json_object_set_new(object, "tokenizer", json_string(sum));
    return weft__sealed_write(run, "data.json", &json, object, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
}

/* The take_* functions return WEFT_OK, WEFT_ERR_FORMAT or WEFT_ERR_OOM without a message. The caller makes
 * the message. */

static weft_status take_numbers(weft_context *ctx, const json_t *array, int64_t count, double **out) {
    if (!array) return WEFT_OK;
    const bool single = json_is_number(array) && count == 1; /* older runs stored a single number */
    /* older runs of classification stored a number without a meaning */
    if (json_is_number(array) && count > 1) return WEFT_OK;
    if (!single && (!json_is_array(array) || json_array_size(array) != (size_t)count)) return WEFT_ERR_FORMAT;
    *out = weft__array(ctx, (size_t)count, sizeof **out);
    for (int64_t i = 0; *out && i < count; i++) {
        const json_t *value = single ? array : json_array_get(array, (size_t)i);
        if (!json_is_number(value) || fabs(json_number_value(value)) > 3.5e38) return WEFT_ERR_FORMAT;
        (*out)[i] = json_number_value(value);
    }
    return *out ? WEFT_OK : WEFT_ERR_OOM;
}

static weft_status take_floats(weft_context *ctx, const json_t *array, int64_t count, float **out) {
    double *values = NULL;
    weft_status status = take_numbers(ctx, array, count, &values);
    if (status == WEFT_OK && values && !(*out = weft__array(ctx, (size_t)count, sizeof **out)))
        status = WEFT_ERR_OOM;
    for (int64_t i = 0; status == WEFT_OK && values && i < count; i++) (*out)[i] = (float)values[i];
    weft__free(ctx, values);
    return status;
}

static weft_status take_classes(weft_context *ctx, const json_t *array, weft__dataset *d) {
    if (!array) return WEFT_OK;
    if (!json_is_array(array) || json_array_size(array) != (size_t)d->outputs) return WEFT_ERR_FORMAT;
    d->classes = weft__array(ctx, (size_t)d->outputs, sizeof *d->classes);
    for (int64_t i = 0; d->classes && i < d->outputs; i++) {
        const char *name = json_string_value(json_array_get(array, (size_t)i));
        if (!name) return WEFT_ERR_FORMAT;
        if (!(d->classes[i] = weft__strdup(ctx, name))) return WEFT_ERR_OOM;
    }
    return d->classes ? WEFT_OK : WEFT_ERR_OOM;
}

static int64_t size_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    int64_t size = json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
    return size > 0 && size <= 1 << 30 ? size : 0;
}

/* Reads channels, rows and columns, whose product must be the number of features, and the normalization of
 * the channels. */
static weft_status take_image(weft_context *ctx, const json_t *object, weft__dataset *d) {
    const json_t *image = json_object_get(object, "image");
    const json_t *mean = json_object_get(object, "pixel_mean"),
                 *deviation = json_object_get(object, "pixel_deviation");
    int64_t pixels;
    if (!image) return WEFT_OK;
    for (size_t i = 0; i < 3; i++) {
        const json_t *extent = json_array_get(image, i);
        d->image[i] = json_is_integer(extent) ? (int64_t)json_integer_value(extent) : -1;
    }
    if (d->image[0] <= 0 || !weft__numel(3, d->image, &pixels) || pixels != d->features ||
        (mean != NULL) != (deviation != NULL))
        return WEFT_ERR_FORMAT;
    WEFT_TRY(take_floats(ctx, mean, d->image[0], &d->scaling.pixel_mean));
    return take_floats(ctx, deviation, d->image[0], &d->scaling.pixel_deviation);
}

static weft_status take_description(weft_context *ctx, const json_t *object, weft__dataset *d) {
    d->features = size_of(object, "features");
    d->outputs = size_of(object, "outputs");
    d->tokens.vocabulary = size_of(object, "vocabulary");
    d->scaling.factor = json_number_value(json_object_get(object, "scale"));
    if (d->source->form == WEFT__FORM_CORPUS) return d->tokens.vocabulary > 0 ? WEFT_OK : WEFT_ERR_FORMAT;
    if (d->features == 0 || d->outputs == 0) return WEFT_ERR_FORMAT;
    const json_t *mean = json_object_get(object, "mean"), *deviation = json_object_get(object, "deviation");
    const json_t *middle = json_object_get(object, "target_mean"),
                 *spread = json_object_get(object, "target_deviation");
    if ((middle != NULL) != (spread != NULL) || (mean != NULL) != (deviation != NULL)) return WEFT_ERR_FORMAT;
    WEFT_TRY(take_numbers(ctx, middle, d->outputs, &d->scaling.target_mean));
    WEFT_TRY(take_numbers(ctx, spread, d->outputs, &d->scaling.target_deviation));
    WEFT_TRY(take_numbers(ctx, mean, d->features, &d->scaling.mean));
    WEFT_TRY(take_numbers(ctx, deviation, d->features, &d->scaling.deviation));
    WEFT_TRY(take_image(ctx, object, d));
    WEFT_TRY(take_classes(ctx, json_object_get(object, "classes"), d));
    return d->source->take ? d->source->take(ctx, object, d) : WEFT_OK;
}

weft_status weft__dataset_describe(weft_context *ctx, const weft__config *config, const char *run,
                                   weft__dataset *dataset) {
    weft__json json;
    json_t *object;
    memset(dataset, 0, sizeof *dataset);
    dataset->task = (weft__task)config->task;
    dataset->source = weft__source_of(config);
    dataset->images.max_pixels = config->data_image_pixels;
    if (weft__config_is(config, WEFT__TRAIT_TEXTS))
        WEFT_TRY(weft__dataset_text_tokenizer(ctx, config, dataset));
    if (is_corpus(config) && !weft__is_run(run)) return given_tokenizer(ctx, config, dataset);
    if (is_corpus(config) && weft__source_has_tokenizer(config)) return load_tokenizer(ctx, run, dataset);
    weft_status status = read_description(ctx, run, &json, &object);
    if (status == WEFT_OK) {
        status = take_description(ctx, object, dataset);
        if (status == WEFT_ERR_OOM) status = weft__fail_oom(ctx, 0, "what describes the data");
        if (status == WEFT_ERR_FORMAT)
            status = weft__fail(ctx, status,
                                "%s/data.json: the file does not describe the data of this model", run);
    }
    weft__json_close(&json);
    return status;
}
