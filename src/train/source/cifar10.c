/* Binary files of the CIFAR-10 collection. Must not know: how they are decoded (weft/data.h). Read next:
 * dataset/dataset_table.c. */
#include <stdio.h>

#include "train/dataset/dataset.h"

static weft_status cifar10_file(const weft__source_file *f) {
    weft_array classes = {0};
    WEFT_TRY(weft_read_cifar10(f->ctx, f->path, f->x, &classes));
    if (f->y)
        *f->y = classes;
    else
        weft_array_free(f->ctx, &classes);
    return WEFT_OK;
}

/* A record is a label and 3,072 pixels. */
static void cifar10_place(const weft__source_file *f, size_t sample, char out[WEFT__PLACE_BYTES]) {
    snprintf(out, WEFT__PLACE_BYTES, "%s: byte %zu", f->path, sample * 3073);
}

static bool cifar10_guess(const weft__path_facts *path) { return weft__path_ends(path, ".bin"); }

const weft__source_kind weft__data_cifar10 = {.form = WEFT__FORM_ARRAYS,
                                              .unit = "sample",
                                              .images = true,
                                              .guess = cifar10_guess,
                                              .file = cifar10_file,
                                              .place = cifar10_place};
