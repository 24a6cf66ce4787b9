/* What cuDNN does for an open device.
 * Must not know: graphs of operations. Read next: dnn_heavy.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_HEAVY_H
#define WEFT_DEVICE_CUDA_DNN_DNN_HEAVY_H

#include "device/cuda/dnn/dnn.h"
#include "device/device.h"
#include "kernel/source.h"

struct weft__cuda;

/* The part of an opened device. Set it to zeros first. */
typedef struct weft_dnn {
    bool opened;        /* the library was already looked for */
    weft_dnn_card card; /* handle is NULL: there is no cuDNN */
    struct weft_dnn_work **works;
    size_t n_works, capacity;
    struct weft_dnn_image **images; /* convolutions */
    size_t n_images, images_capacity;
    double seconds;        /* spent on the choice of engines */
    int64_t built, loaded; /* problems whose plan was made now, or came from disk; for tests */
} weft_dnn;

/* Adds the launch of an attention or a convolution that cuDNN computes. Otherwise adds nothing. */
weft_status weft__dnn_offer(struct weft__cuda *device, weft_launches *launches, const weft_command *command);
void weft__dnn_close(struct weft__cuda *device);

/* ---- shared by all kinds of operations ---- */

/* Returns the bytes that one operation may use besides its operands. */
int64_t weft__dnn_memory(const struct weft__cuda *device);
/* The same for a card with so much memory. */
int64_t weft__dnn_memory_of(uint64_t memory);
/* Returns a hash of card, driver and library. The caller adds the problem. */
weft_hash weft__dnn_key(const struct weft__cuda *device);

/* ---- dnn_image.c: convolutions; the library must be open ---- */

/* Returns whether cuDNN may have a plan for the convolution. Needs no library. */
bool weft__dnn_suits_convolution(const weft_heavy_conv *conv);
weft_status weft__dnn_offer_convolution(struct weft__cuda *device, weft_launches *launches,
                                        const weft_heavy *heavy);
void weft__dnn_images_free(struct weft__cuda *device);

#endif
