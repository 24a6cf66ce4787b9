/* weft_loader_open: a loader that reads its arrays from files and owns them. Must not know: how batches are
 * made. Read next: learn/fit.c. */
#include <string.h>

#include "data/loader.h"

/* Tells whether `word` is in the file name of `path`, folders not included. */
static bool names(const char *path, const char *word) {
    const char *slash = strrchr(path, '/');
    return strstr(slash ? slash + 1 : path, word) != NULL;
}

static weft_status read_array(weft_context *ctx, const char *path, weft_array *out) {
    if (names(path, ".npy")) return weft_read_npy(ctx, path, out);
    if (names(path, "idx") || names(path, "ubyte")) return weft_read_idx(ctx, path, out);
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "loader: %s: the name must contain idx, ubyte, .npy, .csv, .json or .bin", path);
}

static weft_status read_table(weft_context *ctx, const char *path, weft_array *x, weft_array *y) {
    weft_table table;
    const weft_csv_options options = {.target_column = -1};
    WEFT_TRY(weft_read_csv(ctx, path, &options, &table));
    *x = table.features;
    *y = table.target;
    table.features = table.target = (weft_array){0};
    weft_table_free(ctx, &table);
    return WEFT_OK;
}

static weft_status read_files(weft_context *ctx, const char *inputs, const char *targets, weft_array *x,
                              weft_array *y) {
    if (names(inputs, ".csv")) return read_table(ctx, inputs, x, y);
    if (names(inputs, ".json")) {
        const weft_json_options members[] = {{"x", WEFT_JSON_F32}, {"y", WEFT_JSON_AUTO}};
        weft_array arrays[2] = {0};
        weft_status status = weft_read_json_matrices(ctx, inputs, members, 2, arrays);
        *x = arrays[0];
        *y = arrays[1];
        return status;
    }
    if (names(inputs, ".bin") && !targets) return weft_read_cifar10(ctx, inputs, x, y);
    WEFT_TRY(read_array(ctx, inputs, x));
    return targets ? read_array(ctx, targets, y) : WEFT_OK;
}

weft_status weft_loader_open(weft_context *ctx, const char *inputs, const char *targets,
                             const weft_loader_options *options, weft_loader **out) {
    weft_array x = {0}, y = {0};
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, inputs);
    weft_status status = read_files(ctx, inputs, targets, &x, &y);
    if (status == WEFT_OK) status = weft_loader_new(ctx, &x, y.data ? &y : NULL, options, out);
    if (status != WEFT_OK) {
        weft_array_free(ctx, &x);
        weft_array_free(ctx, &y);
        return status;
    }
    /* A side that was narrowed already has its own copy. */
    weft_array *read[] = {&x, &y};
    weft__side *sides[] = {&(*out)->x, &(*out)->y};
    for (int i = 0; i < 2; i++) {
        if (sides[i]->array.data == read[i]->data)
            sides[i]->owned = *read[i];
        else
            weft_array_free(ctx, read[i]);
    }
    return WEFT_OK;
}
