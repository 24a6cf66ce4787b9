/* The data that a configuration names: read, split into training, validation and test, scaled, and what a
 * model needs to know of it (sizes, tokenizer, class names). Must not know: models, loops. Read next:
 * dataset.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_DATASET_H
#define WEFT_SRC_TRAIN_DATASET_DATASET_H

#include <weft/data.h>
#include <weft/loader.h>
#include <weft/text.h>

#include "train/config/config.h"

typedef enum weft__split { WEFT__TRAIN, WEFT__VALIDATION, WEFT__TEST, WEFT__SPLIT_COUNT } weft__split;

typedef struct weft__dataset {
    weft__task task;
    /* language models */
    weft_corpus *corpus;                   /* of text and bytes */
    weft_tokenizer *tokenizer;             /* given at the start (resume), or NULL; the corpus has it then */
    int32_t *ids[WEFT__SPLIT_COUNT];       /* of data.source tokens in npy files, owned */
    weft_tokens *files[WEFT__SPLIT_COUNT]; /* in others, owned, mapped */
    const weft_tokens
        *mapped[WEFT__SPLIT_COUNT]; /* the file in which the split's tokens lie, from here on: */
    int64_t mapped_first[WEFT__SPLIT_COUNT];
    size_t id_count[WEFT__SPLIT_COUNT];
    int64_t vocabulary; /* tokens there are; the model may have more rows */
    /* tables and images */
    weft_array x[WEFT__SPLIT_COUNT], y[WEFT__SPLIT_COUNT];
    int64_t features;                      /* elements of an input sample */
    int64_t outputs;                       /* classes, or numbers to predict */
    double scale;                          /* of u8 inputs, for the loader */
    int64_t image[3];                      /* channels, rows, columns of a sample; 0: it is no image */
    float *pixel_mean, *pixel_deviation;   /* [image[0]] of u8 images, after scale; NULL: not scaled */
    float *mean, *deviation;               /* [features] of the inputs before scaling; NULL: not scaled */
    float *target_mean, *target_deviation; /* [outputs] of the targets of regression; NULL: not scaled */
    char **classes;                        /* [outputs] names, or NULL */
    char **columns, *target; /* csv: [features] names, and the target's; NULL: the file has none */
    uint64_t hash;           /* of all the data */
} weft__dataset;

/* Reads what the configuration names. `run` is the folder of a run to take tokenizer and class names from
 * (resume, eval), or NULL. Freed by weft__dataset_free, also after a failure. */
weft_status weft__dataset_read(weft_context *ctx, const weft__config *config, const char *run,
                               weft__dataset *dataset);
void weft__dataset_free(weft_context *ctx, weft__dataset *dataset);

/* What generate and predict need, without the data itself: from the run folder alone. */
weft_status weft__dataset_describe(weft_context *ctx, const weft__config *config, const char *run,
                                   weft__dataset *dataset);
/* Writes data.json, and tokenizer.json where there is one, into a run folder, for the above. */
weft_status weft__dataset_save(const weft__dataset *dataset, const char *run);

/* Verifies both: WEFT_ERR_FORMAT names the one that is damaged or was edited. */
weft_status weft__dataset_check(weft_context *ctx, const char *run);

/* The tokenizer, or NULL (data.source tokens without data.tokenizer_path). */
const weft_tokenizer *weft__dataset_tokenizer(const weft__dataset *dataset);

/* How many samples a split has: rows, or tokens of a text. */
int64_t weft__dataset_samples(const weft__dataset *dataset, weft__split split);

/* Brings scaled targets, or predictions of them, (rows, outputs), back to the units of the data. */
void weft__dataset_unscale(const weft__dataset *dataset, float *values, int64_t rows);

/* True when the split has data. */
bool weft__dataset_has(const weft__dataset *dataset, weft__split split);

/* A loader over a split: training order and batches for WEFT__TRAIN, once through otherwise. It has the
 * samples of the first `most` batches; 0: all. */
weft_status weft__dataset_loader(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 weft__split split, int64_t most, weft_loader **out);

/* What a loader is to do with the data's images; nothing where they are none. */
weft_image_options weft__dataset_images(const weft__dataset *dataset);

/* Reads inputs as for training (scaled by the dataset's numbers), from a file of the configuration's kind, or
 * a folder of images: their paths are put into *files, one block, which is else NULL. */
weft_status weft__dataset_inputs(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 const char *path, weft_array *x, char ***files);

/* ---- between the files of the data set ---- */

weft_status weft__dataset_read_text(weft_context *ctx, const weft__config *config, weft__dataset *dataset);
weft_status weft__dataset_read_tables(weft_context *ctx, const weft__config *config, weft__dataset *dataset);
/* Names of classes as those of the data; those that are not UTF-8 are refused. */
weft_status weft__dataset_take_classes(weft_context *ctx, const char *path, char *const *names, size_t count,
                                       weft__dataset *dataset);
/* A folder of images, whose folders are classes where y is not NULL. files may be NULL. */
weft_status weft__dataset_read_images(weft_context *ctx, const weft__config *config, const char *path,
                                      weft__dataset *dataset, weft_array *x, weft_array *y, char ***files);

#endif
