/* Computes, writes and reads the reference of preferences, see reference.h. Must not know: the loop. Read
 * next: learn/preferences.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/preferences.h>

#include "io/sealed.h"
#include "train/model/reference.h"

#define REFERENCE_FILE "reference.json"

static const char *const split_names[WEFT__SPLIT_COUNT] = {"train", "validation", "test"};

/* Makes a loader that reads the pairs of a split in order. */
static weft_status ordered_loader(const weft__model *model, const weft__config *config,
                                  const weft__dataset *dataset, weft__split split, weft_loader **out) {
    const int64_t rows = dataset->x[split].shape[0], batch = config->train_batch ? config->train_batch : 1;
    const weft_loader_options options = {.batch = batch < rows ? batch : rows, .in_order = true};
    return weft_loader_new(model->ctx, &dataset->x[split], &dataset->y[split], &options, out);
}

static weft_status compute_split(const weft__model *model, const weft__config *config, weft__dataset *dataset,
                                 weft__split split) {
    weft_loader *loader = NULL;
    weft_array made;
    WEFT_TRY(ordered_loader(model, config, dataset, split, &loader));
    const weft_status status = weft_preferences_reference(model->module, loader, &made);
    weft_loader_free(loader);
    WEFT_TRY(status);
    memcpy(dataset->chats.reference[split].data, made.data, made.bytes); /* loaders borrow this array */
    weft_array_free(NULL, &made);
    return WEFT_OK;
}

weft_status weft__reference_compute(const weft__model *model, const weft__config *config, weft__split first,
                                    weft__dataset *dataset) {
    for (int i = (int)first; i < WEFT__SPLIT_COUNT && dataset->chats.pairs; i++)
        if (dataset->chats.reference[i].data) WEFT_TRY(compute_split(model, config, dataset, (weft__split)i));
    return WEFT_OK;
}

double weft__reference_agrees(const weft__dataset *dataset) {
    const weft_array *reference = &dataset->chats.reference[WEFT__TRAIN];
    const float(*pairs)[2] = reference->data;
    int64_t count = 0;
    if (!pairs) return (double)NAN;
    for (int64_t i = 0; i < reference->shape[0]; i++) count += pairs[i][0] > pairs[i][1];
    return (double)count / (double)reference->shape[0];
}

/* ---- the file ---- */

weft_status weft__reference_save(const weft__dataset *dataset, const char *run) {
    weft__json json;
    char hash[17];
    if (!dataset->chats.pairs) return WEFT_OK;
    weft__dataset_hash(dataset, hash);
    weft__json_build(&json, NULL);
    json_t *object = json_pack("{s:s}", "data", hash);
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        const weft_array *reference = &dataset->chats.reference[i];
        const float *values = reference->data;
        if (!values) continue;
        json_t *list = json_array();
        for (int64_t k = 0; k < 2 * reference->shape[0]; k++)
            json_array_append_new(list, json_real((double)values[k]));
        json_object_set_new(object, split_names[i], list);
    }
    return weft__sealed_write(run, REFERENCE_FILE, &json, object, JSON_REAL_PRECISION(9));
}

/* Reads the values of a split. Returns false if they are not those of its pairs. */
static bool take_split(const json_t *list, weft_array *reference) {
    const size_t count = reference->data ? 2 * (size_t)reference->shape[0] : 0;
    float *values = reference->data;
    if (json_array_size(list) != count) return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_number(value)) return false;
        values[i] = (float)json_number_value(value);
    }
    return true;
}

weft_status weft__reference_load(weft_context *ctx, weft__dataset *dataset, const char *run) {
    weft__json json;
    json_t *root;
    char hash[17];
    if (!dataset->chats.pairs) return WEFT_OK;
    weft_status status = weft__sealed_read(ctx, run, REFERENCE_FILE, &json, &root);
    const char *data = status == WEFT_OK ? json_string_value(json_object_get(root, "data")) : NULL;
    weft__dataset_hash(dataset, hash);
    bool fits = data && strcmp(data, hash) == 0;
    for (int i = 0; i < WEFT__SPLIT_COUNT && fits; i++)
        fits = take_split(json_object_get(root, split_names[i]), &dataset->chats.reference[i]);
    weft__json_close(&json);
    if (status == WEFT_ERR_STATE)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s/" REFERENCE_FILE ": missing: the run folder is incomplete: train again", run);
    if (status != WEFT_OK || fits) return status;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s/" REFERENCE_FILE
                      ": not of these pairs: the data of the run changed: restore them, or "
                      "train again",
                      run);
}
