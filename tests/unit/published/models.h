/* Folders of small published models, made from the files of models/ (make_models.py). */
#ifndef WEFT_TESTS_PUBLISHED_MODELS_H
#define WEFT_TESTS_PUBLISHED_MODELS_H

#include <jansson.h>

#include <weft/published.h>

#include "unit/core_help.h"
#include "unit/io_scratch.h"

enum { TIME = 20, BATCH = 2, VOCAB = 61 };
#define MODELS "tests/unit/published/models"

static inline json_t *read_model(const char *name) {
    char path[512];
    snprintf(path, sizeof path, MODELS "/%s", name);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) fail_msg("%s: %s", path, error.text);
    return root;
}

/* ---- the folder of a model ---- */

/* Fills tensor `number` with the pattern of make_models.py. */
static inline void fill(float *to, int64_t n, int number, float around) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((i * (5 + 2 * (number % 7)) + 3 * number) % 23 - 11) / 64 + around;
}

typedef struct tensors {
    weft_entry entries[128];
    int64_t shapes[128][2];
    size_t count;
} tensors;

/* Makes the tensors that the file lists, in `dtype`. */
static inline void make_tensors(json_t *root, weft_dtype dtype, tensors *t) {
    const char *type = json_string_value(json_object_get(json_object_get(root, "config"), "model_type")),
               *name;
    json_t *shape;
    memset(t, 0, sizeof *t);
    json_object_foreach(json_object_get(root, "tensors"), name, shape) {
        const size_t i = t->count++;
        assert_true(i < COUNT(t->entries));
        int64_t n = 1;
        for (size_t j = 0; j < json_array_size(shape); j++)
            n *= t->shapes[i][j] = json_integer_value(json_array_get(shape, j));
        const bool norm = strstr(name, "norm") || strstr(name, "Norm") || strstr(name, "ln_");
        const bool one = norm && strstr(name, ".weight") && strncmp(type, "gemma", 5) != 0;
        float *data = malloc((size_t)n * sizeof *data);
        uint16_t *half = (uint16_t *)data;
        fill(data, n, (int)i, one ? 1 : 0);
        for (int64_t j = 0; dtype != WEFT_F32 && j < n; j++)
            half[j] = dtype == WEFT_BF16 ? weft_f32_to_bf16(data[j]) : weft_f32_to_f16(data[j]);
        t->entries[i] = (weft_entry){.name = name,
                                     .dtype = dtype,
                                     .rank = (int)json_array_size(shape),
                                     .shape = t->shapes[i],
                                     .data = data};
    }
}

static inline void free_tensors(tensors *t) {
    for (size_t i = 0; i < t->count; i++) free((void *)(uintptr_t)t->entries[i].data);
}

static inline const char *folder_of(const char *name) {
    const char *folder = in_scratch(name);
    (void)mkdir(folder, 0777);
    return folder;
}

static inline void write_text(const char *folder, const char *name, const char *text) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void write_config(const char *folder, const json_t *config) {
    char *text = json_dumps(config, 0);
    write_text(folder, "config.json", text);
    free(text);
}

static inline void write_weights(weft_context *ctx, const char *folder, const char *name,
                                 const weft_entry *entries, size_t count) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(weft_safetensors_write(ctx, path, entries, count, NULL, 0));
}

/* Makes a folder with config.json and model.safetensors. */
static inline const char *make_folder(weft_context *ctx, json_t *root, weft_dtype dtype, const char *name) {
    const char *folder = folder_of(name);
    tensors t;
    make_tensors(root, dtype, &t);
    write_config(folder, json_object_get(root, "config"));
    write_weights(ctx, folder, "model.safetensors", t.entries, t.count);
    free_tensors(&t);
    return folder;
}

static inline void take_tokens(json_t *root, int32_t tokens[BATCH * TIME]) {
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < TIME; i++)
            tokens[b * TIME + i] = (int32_t)json_integer_value(
                json_array_get(json_array_get(json_object_get(root, "tokens"), (size_t)b), (size_t)i));
}

#endif
