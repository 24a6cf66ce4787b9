/* Batches: from arrays in host memory, from files, or windows of a text, to tensors on the device.
 *
 * A data set that fits is uploaded once and batches are gathered on the device: what moves at each step is
 * the samples' numbers. A larger one stays in host memory, and a thread that touches nothing else gathers the
 * next batch while this one is computed with.
 *
 * What batch number `position` holds is a pure function of the seed and the position, on every device: a run
 * that goes on at a position sees what it would have seen. A batch that is the whole of a set on the device
 * has its samples as they lie there. Batches of 3 x 4 samples are batches of 12, cut in three. */
#ifndef WEFT_LOADER_H
#define WEFT_LOADER_H

#include <weft/array.h>
#include <weft/data.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_loader weft_loader;

/* Samples that are images. */
typedef struct weft_image_options {
    int64_t channels, rows, columns; /* of a sample, whatever its shape; channels 0: they are none */
    int64_t shift; /* not in_order: each is moved by up to so many pixels along rows and along columns, zeros
                      come in from outside: a crop of the padded image */
    bool flip;     /* not in_order: one in two is mirrored, left and right */
    const float *mean, *deviation; /* [channels]: x, times scale, becomes (x - mean) / deviation; or NULL */
} weft_image_options;

typedef struct weft_loader_options {
    int64_t batch;   /* samples in a batch; must be set */
    bool in_order;   /* do not shuffle; windows of a text: one after the other, each token predicted once */
    bool streams;    /* of a text: row b of all batches is part b of the text, window after window, for models
                        that carry their states; what is left at the ends is left out */
    bool drop_last;  /* leave out the samples that do not fill a batch, instead of padding it */
    uint64_t seed;   /* of the order; 0: the context's */
    double scale;    /* not 0: inputs become f32 and are multiplied with it (1/255 for images) */
    int64_t classes; /* not 0: targets must be 0..classes-1, checked at once */
    int64_t device_bytes; /* a data set up to this size is put on the device; 0: 1 GiB; negative: never */
    weft_image_options images; /* how a sample is moved depends on seed, epoch and sample alone */
} weft_loader_options;

/* One batch. The tensors are valid until the next weft_loader_get or the end of the scope they were made in.
 */
typedef struct weft_batch {
    weft_tensor *x; /* (batch, ...); of text: i32 (batch, context) */
    weft_tensor *y; /* (batch, ...); NULL without targets; of text: i32 (batch, context), the next tokens */
    weft_tensor *mask; /* f32, 1 for what counts and 0 for padding: (batch), of text in order (batch,
                          context); NULL where no batch of this loader is ever padded */
    int64_t count;     /* ones in the mask */
    int64_t epoch;     /* passes over the data before this batch */
} weft_batch;

/* Batches of inputs (N, ...) and targets (N, ...) or NULL. The arrays are borrowed until the loader is freed;
 * their field `bytes` may be 0.
 * i64 becomes i32, range-checked. WEFT_ERR_SHAPE when the numbers of samples differ, WEFT_ERR_INDEX names the
 * sample whose class is out of range, WEFT_ERR_ARGUMENT for options, WEFT_ERR_OOM. */
WEFT_API WEFT_CHECKED weft_status weft_loader_new(weft_context *ctx, const weft_array *inputs,
                                                  const weft_array *targets,
                                                  const weft_loader_options *options, weft_loader **out);

/* Batches of windows of `context` tokens at random places of ids[0..count), or all of them in order. ids are
 * borrowed. options->batch is the number of windows. WEFT_ERR_ARGUMENT when there are too few tokens. */
WEFT_API WEFT_CHECKED weft_status weft_loader_tokens(weft_context *ctx, const int32_t *ids, size_t count,
                                                     int64_t context, const weft_loader_options *options,
                                                     weft_loader **out);

/* The same of tokens first .. first + count - 1 of mapped files, which are borrowed: what is not put on the
 * device (4 bytes a token) stays where it is. */
WEFT_API WEFT_CHECKED weft_status weft_loader_mapped(weft_context *ctx, const weft_tokens *tokens,
                                                     int64_t first, int64_t count, int64_t context,
                                                     const weft_loader_options *options, weft_loader **out);

/* Batches from files, told apart by their names: idx or ubyte, npy, csv (all columns but the last are inputs,
 * the last one is the target; `targets` NULL), json (members x and y; `targets` NULL), bin (CIFAR-10's, with
 * its labels; `targets` NULL); each may end in .gz. The file `targets` holds idx or npy targets, or is NULL.
 */
WEFT_API WEFT_CHECKED weft_status weft_loader_open(weft_context *ctx, const char *inputs, const char *targets,
                                                   const weft_loader_options *options, weft_loader **out);

/* NULL is fine. Must come before weft_close of its context. */
WEFT_API void weft_loader_free(weft_loader *loader);

/* The batch of that position, from 0 on without end: epoch after epoch. */
WEFT_API WEFT_CHECKED weft_status weft_loader_get(weft_loader *loader, uint64_t position, weft_batch *batch);

/* Batches of an epoch (of text at random places: as many as hold the number of its tokens), and samples. */
WEFT_API int64_t weft_loader_batches(const weft_loader *loader);
WEFT_API int64_t weft_loader_samples(const weft_loader *loader);
/* Samples in a full batch, and extents of one input sample (rank without the batch). */
WEFT_API int64_t weft_loader_batch_size(const weft_loader *loader);
WEFT_API int weft_loader_sample_shape(const weft_loader *loader, int64_t shape[WEFT_ARRAY_MAX_RANK]);

/* True when the data lies on the device. */
WEFT_API bool weft_loader_on_device(const weft_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
