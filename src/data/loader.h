/* The interface between the files of the loader. Every sample begins at base + start * stride. A sample is a
 * row of an array, or a window of a text; windows may overlap. Must not know: files. Read next: loader.c. */
#ifndef WEFT_SRC_DATA_LOADER_H
#define WEFT_SRC_DATA_LOADER_H

#include <weft/data.h>
#include <weft/loader.h>

#include "base/base.h"

/* One side of the data: the inputs or the targets. */
typedef struct weft__side {
    /* host data, borrowed or owned; data NULL: this side is absent, or its tokens are mapped */
    weft_array array;
    /* array made by the loader (i64 narrowed to i32, or read from a file) */
    weft_array owned;
    size_t stride;                          /* bytes between the beginnings of samples */
    size_t bytes;                           /* bytes of one sample */
    size_t first;                           /* byte at which sample 0 begins */
    int rank;                               /* rank of a batch; 0: this side is absent */
    int64_t shape[WEFT_ARRAY_MAX_RANK + 1]; /* shape of a batch */
    weft_tensor *all;                       /* the whole array on the device, or NULL */
    weft_tensor *batch; /* view of a batch in weft_loader.gathered; NULL if the device gathers */
    size_t at;          /* byte at which this view begins */
} weft__side;

/* Numbers of a batch that the host sends. */
typedef struct weft__numbers {
    weft_tensor *batch; /* on the device; NULL: there are none */
    float *host;        /* [count], host copy of batch */
    int64_t count;
    bool written; /* batch holds them */
} weft__numbers;

typedef struct weft__image_note weft__image_note;
typedef struct weft__prefetch weft__prefetch;
typedef struct weft__augment weft__augment;

struct weft_loader {
    weft_context *ctx;
    weft_loader_options options;
    bool text;
    int64_t context;           /* tokens per window */
    int64_t tokens;            /* tokens of the text */
    const weft_tokens *mapped; /* the tokens, from mapped_first on; NULL: they are in an array */
    int64_t mapped_first;
    int64_t samples; /* rows or windows of an epoch */
    int64_t batches; /* batches of an epoch */
    uint64_t of;     /* batches of a step, whose losses are divided by the same number */
    int64_t padded;  /* mask elements per sample; 0: no mask */
    weft__side x, y;
    weft_tensor *uncut;       /* x of the last batch with whole samples, if options.lengths cuts them */
    weft_tensor *count;       /* scalar: number of mask elements that are 1; NULL if there is never padding */
    weft_tensor *divisor;     /* scalar: weft_batch.divisor; NULL until a batch has a mask */
    uint64_t divided;         /* the first batch of the step that it belongs to; UINT64_MAX: none */
    int64_t *starts;          /* [batch] */
    weft_tensor *index;       /* on the device, i32 (batch), for text (batch, 1): the starts of the samples */
    int32_t *index_host;      /* [batch], host copy of index */
    bool indexed;             /* index was written */
    weft__prefetch *prefetch; /* NULL: the device gathers */
    int32_t *real;            /* [samples] targets that count; NULL: all do (skip_negative) */
    weft__numbers weights;    /* f32 (batch): the mask, if the samples have weights */
    double mean_weight;       /* of all samples */
    weft_array extra_rows;    /* options.extra; the data are borrowed */
    weft__numbers extra;      /* f32 (batch, K) of them */
    weft_tensor *pixel_mean, *pixel_deviation; /* per channel of images; NULL: not normalized */
    /* on the device, i32 (batch, 3): moves of the images; NULL: images are not moved */
    weft_tensor *moves;
    int32_t *moves_host;           /* host copy of moves */
    weft__augment *augment;        /* NULL: no other changes of images */
    const weft__image_note *notes; /* [samples] of inputs in files: what they must hold; or NULL */
    bool reproduces;               /* there are no targets but the inputs */
    weft_tensor *gathered;         /* if the host gathers: x and y of a batch as u8, one upload */
};

/* Returns how many samples of a batch, or tokens of a text, are no padding. */
int64_t weft__loader_count(const weft_loader *loader, uint64_t position);

/* Computes the starts of the samples of a batch. Returns weft__loader_count. A pure function of its
 * arguments. */
int64_t weft__loader_starts(const weft_loader *loader, uint64_t position, int64_t *starts);

/* Copies the samples at starts[0..batch) one after the other. Past the end of a text its last token repeats.
 * A failure is that of the calling thread. */
weft_status weft__loader_copy(const weft_loader *loader, const weft__side *side, const int64_t *starts,
                              void *out);

/* ---- loader_skip.c ---- */

/* Counts the targets of each sample that are not negative, if negative ones do not count. */
weft_status weft__loader_skip_new(weft_loader *loader);
/* Takes negative targets out of a batch, by its mask. */
void weft__loader_skip_apply(weft_loader *loader, uint64_t position, weft_batch *batch);
/* Returns how many targets of a batch count: samples, tokens of a text or, if negative ones do not count, the
 * others. */
int64_t weft__loader_targets(const weft_loader *loader, uint64_t position);

/* ---- loader_numbers.c ---- */

weft_status weft__loader_numbers_new(weft_loader *loader);
void weft__loader_numbers_free(weft_loader *loader);
/* Steps take so many batches from now on; 0: as many as the options say. */
void weft__loader_share(weft_loader *loader, uint64_t of);
/* Sends the divisor of a batch that has a mask. */
weft_status weft__loader_divisor_get(weft_loader *loader, uint64_t position, weft_batch *batch);
/* Sends the weights of the batch's samples, and makes them its mask. Sends their extra numbers. */
weft_status weft__loader_numbers_get(weft_loader *loader, uint64_t position, weft_batch *batch);

/* ---- images.c ---- */

weft_status weft__images_check(const weft_loader *loader);
weft_status weft__images_new(weft_loader *loader);
void weft__images_free(weft_loader *loader);
/* Changes and normalizes the images of the batch at that position. They become f32 of the same shape. */
weft_status weft__images_apply(weft_loader *loader, uint64_t position, weft_batch *batch);

/* ---- loader_prefetch.c: gathers batches in host memory, one batch ahead ---- */

weft_status weft__prefetch_new(weft_loader *loader, weft__prefetch **out);
void weft__prefetch_free(weft__prefetch *prefetch);
/* Returns the bytes of the batch at that position, to be written to `gathered` of the loader. They are valid
 * until the next call. *count is the number of mask elements that are 1. NULL after a failure, which is that
 * of the loader's context then: an image file cannot be read. */
const void *weft__prefetch_get(weft__prefetch *prefetch, uint64_t position, int64_t *count);

/* ---- loader_files.c ---- */

/* Decodes the image files of the samples at starts[0..batch) into planes. Needs no context: the failure is
 * that of the calling thread. */
weft_status weft__loader_decode(const weft_loader *loader, const int64_t *starts, uint8_t *planes);
/* For a loader whose inputs stay in files, before its first batch. `notes` say what the files must hold, and
 * are borrowed; NULL: anything. `reproduces`: the targets of a batch are its inputs. */
void weft__loader_expect(weft_loader *loader, const weft__image_note *notes, bool reproduces);
/* Tells whether the inputs stay in image files, or in tar files of them. */
static inline bool weft__loader_in_files(const weft_loader *loader) {
    return loader->options.images.files || loader->options.images.members;
}
/* Checks inputs that stay in files, and sets the bytes of x. */
weft_status weft__loader_check_files(weft_loader *loader);

#endif
