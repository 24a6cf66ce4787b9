/* Samples in files of arrays: idx, of the MNIST collections, and npy, of NumPy. The targets are in a file of
 * their own. Must not know: how the files are decoded (weft/data.h). Read next: dataset/dataset_table.c. */
#include <stdio.h>
#include <string.h>

#include "train/dataset/dataset.h"

/* Finds the label file for the inputs of a split. It is the file that the configuration names, or the one
 * that belongs to the inputs in the MNIST collections. */
static weft_status labels_path(const weft__source_file *f, char out[4096]) {
    const weft__texts *labels = &f->config->data_labels;
    if ((size_t)f->split < labels->count) {
        snprintf(out, 4096, "%s", labels->values[f->split]);
        return WEFT_OK;
    }
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path,
               *at = strstr(name, "images-idx3");
    if (!at)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                          "data.labels: no label file is given for %s: name it there (one for each of path, "
                          "val_path, test_path)",
                          f->path);
    int wanted =
        snprintf(out, 4096, "%.*slabels-idx1%s", (int)(at - f->path), f->path, at + strlen("images-idx3"));
    if (wanted >= 4096) return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "%s: the path is too long", f->path);
    return WEFT_OK;
}

typedef weft_status reader(weft_context *ctx, const char *path, weft_array *out);

static weft_status read_labels(const weft__source_file *f, reader *read) {
    char labels[4096];
    if (!f->y) return WEFT_OK;
    WEFT_TRY(labels_path(f, labels));
    return read(f->ctx, labels, f->y);
}

static weft_status idx_file(const weft__source_file *f) {
    const weft_status status = weft_read_idx(f->ctx, f->path, f->x);
    if (status == WEFT_ERR_FORMAT && !weft__config_given(f->config, WEFT__KEY_data_source))
        return weft__fail(f->ctx, status,
                          "%s (the name of the file does not tell its format, so it was read as idx: for "
                          "another format, use --set data.source=csv, json, npy, cifar10 or images; a text "
                          "needs a language model such as gpt)",
                          weft_last_error(f->ctx));
    return status == WEFT_OK ? read_labels(f, weft_read_idx) : status;
}

static weft_status npy_file(const weft__source_file *f) {
    WEFT_TRY(weft_read_npy(f->ctx, f->path, f->x));
    return read_labels(f, weft_read_npy);
}

/* Writes the place of a label in its file, as `unit` and a number. */
static void label_place(const weft__source_file *f, const char *unit, size_t number,
                        char out[WEFT__PLACE_BYTES]) {
    char labels[4096];
    if (labels_path(f, labels) == WEFT_OK)
        snprintf(out, WEFT__PLACE_BYTES, "%s: %s %zu", labels, unit, number);
}

/* A label file of idx has a header of 8 bytes, then one byte for each label. */
static void idx_place(const weft__source_file *f, size_t sample, char out[WEFT__PLACE_BYTES]) {
    label_place(f, "byte", sample + 8, out);
}

static void npy_place(const weft__source_file *f, size_t sample, char out[WEFT__PLACE_BYTES]) {
    label_place(f, "element", sample, out);
}

static bool npy_guess(const weft__path_facts *path) { return weft__path_ends(path, ".npy"); }

const weft__source_kind weft__data_idx = {
    .form = WEFT__FORM_ARRAYS, .unit = "sample", .images = true, .file = idx_file, .place = idx_place};

const weft__source_kind weft__data_npy = {.form = WEFT__FORM_ARRAYS,
                                          .unit = "sample",
                                          .named_numbers = true,
                                          .guess = npy_guess,
                                          .file = npy_file,
                                          .place = npy_place};
