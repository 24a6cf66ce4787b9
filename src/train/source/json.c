/* A JSON object with matrices: the inputs and the targets are its members. Must not know: how JSON is read
 * (weft/data.h). Read next: dataset/dataset_table.c. */
#include <stdio.h>

#include "train/dataset/dataset.h"

static const char *target_of(const weft__config *config) {
    return config->data_target ? config->data_target : "y";
}

static weft_status json_file(const weft__source_file *f) {
    const weft__config *config = f->config;
    const weft_json_options members[] = {
        {config->data_columns.count > 0 ? config->data_columns.values[0] : "x", WEFT_JSON_F64},
        {target_of(config), config->task == WEFT__TASK_CLASSIFICATION ? WEFT_JSON_I32 : WEFT_JSON_F64}};
    weft_array arrays[2] = {0};
    WEFT_TRY(weft_read_json_matrices(f->ctx, f->path, members, f->y ? 2 : 1, arrays));
    *f->x = arrays[0];
    if (f->y) *f->y = arrays[1];
    return WEFT_OK;
}

static void json_place(const weft__source_file *f, size_t sample, char out[WEFT__PLACE_BYTES]) {
    snprintf(out, WEFT__PLACE_BYTES, "%s: %.100s[%zu]", f->path, target_of(f->config), sample);
}

static bool json_guess(const weft__path_facts *path) { return weft__path_ends(path, ".json"); }

const weft__source_kind weft__data_json = {.form = WEFT__FORM_TABLE,
                                           .unit = "sample",
                                           .named_numbers = true,
                                           .guess = json_guess,
                                           .file = json_file,
                                           .place = json_place};
