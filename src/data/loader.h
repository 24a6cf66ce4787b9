/* Between the files of the loader. A sample is found at base + start * stride, whatever it is: a row of an
 * array, or a window of a text, where rows overlap. Must not know: files. Read next: loader.c. */
#ifndef WEFT_SRC_DATA_LOADER_H
#define WEFT_SRC_DATA_LOADER_H

#include <weft/data.h>
#include <weft/loader.h>

#include "base/base.h"

/* One side (inputs or targets) of the data. */
typedef struct weft__side {
    weft_array
        array; /* host data, borrowed or owned; data NULL: this side is absent, or its tokens are mapped */
    weft_array owned;                       /* what was made here (i64 narrowed, read from a file) */
    size_t stride;                          /* bytes between the beginnings of samples */
    size_t bytes;                           /* of one sample */
    size_t first;                           /* byte at which sample 0 begins */
    int rank;                               /* of a batch; 0: this side is absent */
    int64_t shape[WEFT_ARRAY_MAX_RANK + 1]; /* of a batch */
    weft_tensor *all;                       /* the whole array on the device, or NULL */
    weft_tensor *batch; /* a batch in weft_loader.gathered; NULL where it is gathered on the device */
    size_t at;          /* byte where it begins there */
} weft__side;

typedef struct weft__prefetch weft__prefetch;

struct weft_loader {
    weft_context *ctx;
    weft_loader_options options;
    bool text;
    int64_t context;           /* tokens of a window */
    int64_t tokens;            /* of the text */
    const weft_tokens *mapped; /* they are there, from mapped_first on; NULL: in an array */
    int64_t mapped_first;
    int64_t samples; /* of an epoch: rows, or windows */
    int64_t batches; /* of an epoch */
    int64_t padded;  /* mask elements a sample has; 0: no mask */
    weft__side x, y;
    weft_tensor *count;       /* of what is no padding: a scalar; NULL where nothing ever is */
    int64_t *starts;          /* [batch] */
    weft_tensor *index;       /* on the device: i32 (batch), of text (batch, 1): the starts of the samples, */
    int32_t *index_host;      /* [batch], as they are there */
    bool indexed;             /* they have been written */
    weft__prefetch *prefetch; /* NULL: the device gathers */
    weft_tensor *pixel_mean, *pixel_deviation; /* of images; NULL: they are not scaled */
    weft_tensor *moves;    /* on the device, i32 (batch, 3): how images are moved; NULL: they are not, */
    int32_t *moves_host;   /* as they are there */
    weft_tensor *gathered; /* otherwise x and, where there is one, y of a batch: u8, one upload */
};

/* The starts of the samples of a batch, and how many mask elements are one. A pure function of its arguments.
 */
int64_t weft__loader_starts(const weft_loader *loader, uint64_t position, int64_t *starts);

/* Copies the samples at starts[0..batch) one after the other. Past the end of a text its last token repeats.
 */
void weft__loader_copy(const weft_loader *loader, const weft__side *side, const int64_t *starts, void *out);

/* ---- images.c ---- */

weft_status weft__images_check(const weft_loader *loader);
weft_status weft__images_new(weft_loader *loader);
void weft__images_free(weft_loader *loader);
/* Moves and scales the images of the batch at that position: f32 of the same shape. */
weft_status weft__images_apply(weft_loader *loader, uint64_t position, weft_tensor **batch);

/* ---- loader_prefetch.c: gathers batches in host memory, one ahead ---- */

weft_status weft__prefetch_new(weft_loader *loader, weft__prefetch **out);
void weft__prefetch_free(weft__prefetch *prefetch);
/* What `gathered` of the loader is to hold, until the next call; the batch has *count mask elements that are
 * one. */
const void *weft__prefetch_get(weft__prefetch *prefetch, uint64_t position, int64_t *count);

#endif
