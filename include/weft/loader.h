/* Loaders make batches, as tensors on the device, from arrays in host memory, from files, or from windows
 * of a text.
 *
 * A data set that fits is uploaded once, and batches are gathered on the device. Each step then uploads
 * only the indices of its samples. A larger data set stays in host memory. A background thread gathers the
 * next batch while the device computes.
 *
 * The content of batch `position` depends only on the seed and the position, on every device. So a run that
 * resumes at a position sees the same batches. If one batch is a whole data set on the device, its samples
 * keep their stored order. Three micro-batches of 4 samples have the same samples as one batch of 12. */
#ifndef WEFT_LOADER_H
#define WEFT_LOADER_H

#include <weft/array.h>
#include <weft/data.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_loader weft_loader;

/* Options for samples that are images. */
typedef struct weft_image_options {
    int64_t channels, rows, columns; /* of a sample, whatever its shape; channels 0: samples are not images */
    int64_t shift; /* shuffled loaders: shifts each image by up to this number of pixels along rows and along
                      columns. Zeros come in from outside, as in a crop of the padded image */
    bool flip;     /* shuffled loaders: mirrors every second image, on average, left to right */
    const float *mean, *deviation; /* [channels]: x, times scale, becomes (x - mean) / deviation; or NULL */
    /* Shuffled loaders only; 0: do nothing. Images are changed in the order of these fields, after the flip
       and with the shift. */
    double crop;   /* a part of the image with at least this share of its area, 0 to 1, is scaled up to its
                      size;   its proportions differ by up to 4/3 */
    double rotate; /* rotates by up to this number of degrees, to either side; 0 comes in from outside */
    double brightness, contrast, saturation; /* multiplies by 1 - b to 1 + b, each 0 to 1. Contrast is the
                                                distance from the mean of the image, saturation that from
                                                grey; u8 pixels stay within 0 to 255 */
    double erase; /* probability with which a rectangle of 2 to 33 % of the area becomes 0, after scaling */
    double mixup, cutmix; /* mixes each image with another one of its batch, by shares from Beta(a, a), 0 < a
                             <= 1. mixup blends them, cutmix replaces a rectangle; with both each image gets
                             one of them. Needs targets: see other_y */
    const char *const *files; /* [N]: the inputs stay in these image files, for data sets larger than memory,
                                 and inputs->data is NULL. The files of the next batch are decoded by threads
                                 while the device computes. Borrowed, as the arrays; or NULL */
    const weft_image_member *members; /* [N]: the same for inputs in tar files. Borrowed; or NULL */
    const weft_image_shards *shards;  /* of `members`, borrowed */
    int64_t max_pixels;               /* as in weft_image_folder_options */
} weft_image_options;

typedef struct weft_loader_options {
    int64_t batch; /* samples in a batch; must be set */
    bool in_order; /* do not shuffle; windows of a text follow each other, and each token is predicted once */
    bool streams;  /* for a text and models that carry their states: row b of all batches is part b of the
                      text, window after window. Tokens left over at the ends of the parts are dropped */
    bool drop_last;       /* drop the samples that do not fill a batch, instead of padding the batch */
    uint64_t seed;        /* seed of the order; 0: the context's */
    double scale;         /* if not 0, inputs become f32 and are multiplied by it (1/255 for images) */
    int64_t classes;      /* if not 0, targets must be 0..classes-1; checked when the loader is made */
    int64_t device_bytes; /* a data set up to this size is stored on the device; 0: 1 GiB; negative: never */
    weft_image_options images; /* random changes depend only on seed, epoch and sample */
    const float *weights; /* [N] how much each sample counts, above 0; borrowed. Not for text. A sample of
                             weight 3 counts as three equal ones, in batches of any size. NULL: 1 each */
    bool skip_negative; /* targets are i32 (N, ...), and those below 0 do not count: they become 0, and have 0
                           in the mask, which then has the shape of the targets. As ignore_index of PyTorch */
    const int32_t *lengths;  /* [N] for inputs (N, ..., T): so many elements of the last dimension count, 1 to
                                T; borrowed. batch.x is as long as the longest sample of the batch needs,
                                rounded up to few sizes, so that few programs serve all batches. NULL: T */
    const weft_array *extra; /* f32 (N, K): more numbers of each sample, borrowed. They may change between
                                batches. Not for text. NULL: none */
    int accumulate; /* batches (micro-batches) of one step, see weft_batch.divisor. An epoch then has whole
                       steps: its last batches may be empty or, with drop_last, be dropped. 0: 1 */
} weft_loader_options;

/* One batch. The tensors are valid until the next weft_loader_get or until their scope closes, whichever is
 * first. */
typedef struct weft_batch {
    weft_tensor *x;    /* (batch, ...); text: i32 (batch, context) */
    weft_tensor *y;    /* (batch, ...); NULL without targets; text: i32 (batch, context), the next tokens */
    weft_tensor *mask; /* f32, 1 for real samples and 0 for padding: (batch); for text in order (batch,
                          context); with skip_negative like y. With weights, those of the real samples instead
                          of 1, divided by the mean of all weights. NULL if no batch of this loader is ever
                          padded, and there are no weights. A loss must multiply by the mask and divide its
                          sum by `divisor`: weft_batch_loss does */
    int64_t count;     /* number of real samples, or of real tokens of a text */
    int64_t epoch;     /* passes over the data before this batch */
    weft_tensor *other_y; /* of mixup and cutmix: the target of the other image, like y; else NULL. The loss
                             is share x loss(y) + (1 - share) x loss(other_y): weft_batch_loss computes it */
    weft_tensor *share;   /* f32 (batch): how much of a sample is its own; else NULL */
    double weight;        /* sum of the mask, or what it would be */
    weft_tensor *extra;   /* f32 (batch, K) of weft_loader_options.extra, 0 in padding; else NULL */
    weft_tensor *divisor; /* f32 scalar: the number of targets that count, which are samples or tokens. With
                             `accumulate`, the mean of these numbers over the batches of the step, so that the
                             mean of their losses is the loss of one large batch. NULL without a mask */
} weft_batch;

/* Makes batches of inputs (N, ...) and targets (N, ...) or NULL. The arrays are borrowed until the loader
 * is freed; their field `bytes` may be 0. i64 becomes i32, with a range check.
 *
 * WEFT_ERR_SHAPE: inputs and targets have different numbers of samples. WEFT_ERR_INDEX names a sample whose
 * class is out of range. WEFT_ERR_ARGUMENT: options. WEFT_ERR_OOM. */
WEFT_API WEFT_CHECKED weft_status weft_loader_new(weft_context *ctx, const weft_array *inputs,
                                                  const weft_array *targets,
                                                  const weft_loader_options *options, weft_loader **out);

/* Makes batches of windows of `context` tokens, at random places of ids[0..count) or in order. ids are
 * borrowed. options->batch is the number of windows. WEFT_ERR_ARGUMENT if there are too few tokens. */
WEFT_API WEFT_CHECKED weft_status weft_loader_tokens(weft_context *ctx, const int32_t *ids, size_t count,
                                                     int64_t context, const weft_loader_options *options,
                                                     weft_loader **out);

/* The same for tokens first .. first + count - 1 of mapped files, which are borrowed. Tokens that are not
 * stored on the device (4 bytes each) stay in the files. */
WEFT_API WEFT_CHECKED weft_status weft_loader_mapped(weft_context *ctx, const weft_tokens *tokens,
                                                     int64_t first, int64_t count, int64_t context,
                                                     const weft_loader_options *options, weft_loader **out);

/* Makes batches from files. The end of the name tells the format, and each may be followed by .gz:
 * - idx or ubyte: inputs; targets in the file `targets`
 * - npy: inputs; targets in the file `targets`
 * - csv: the last column is the target, the others are inputs; `targets` NULL
 * - json: members x and y; `targets` NULL
 * - bin: CIFAR-10 with its labels; `targets` NULL
 *
 * The file `targets` has idx or npy targets, or is NULL. One number or class for each sample gives batch.y
 * the shape (batch). For WEFT_LOSS_MSE with predictions (batch, 1), use weft_unsqueeze(batch.y, 1). */
WEFT_API WEFT_CHECKED weft_status weft_loader_open(weft_context *ctx, const char *inputs, const char *targets,
                                                   const weft_loader_options *options, weft_loader **out);

/* NULL is allowed. Call it before weft_close of its context. */
WEFT_API void weft_loader_free(weft_loader *loader);

/* Returns the batch at `position`. Positions count from 0 without end, epoch after epoch. WEFT_ERR_FORMAT
 * names an image file that cannot be read (weft_image_options.files). */
WEFT_API WEFT_CHECKED weft_status weft_loader_get(weft_loader *loader, uint64_t position, weft_batch *batch);

/* The number of batches in an epoch, and of samples. For text at random places an epoch has as many batches
 * as hold the number of its tokens. */
WEFT_API int64_t weft_loader_batches(const weft_loader *loader);
WEFT_API int64_t weft_loader_samples(const weft_loader *loader);
/* The number of samples in a full batch; and the extents of one input sample: the result is their number,
 * without the batch. */
WEFT_API int64_t weft_loader_batch_size(const weft_loader *loader);
WEFT_API int weft_loader_sample_shape(const weft_loader *loader, int64_t shape[WEFT_ARRAY_MAX_RANK]);

/* True if the data is stored on the device. */
WEFT_API bool weft_loader_on_device(const weft_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
