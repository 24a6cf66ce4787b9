/* What cuDNN does for an open device. Read next: dnn_heavy.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_DNN_HEAVY_H
#define WEFT_DEVICE_CUDA_DNN_DNN_HEAVY_H

#include "device/cuda/dnn/dnn.h"
#include "device/device.h"
#include "kernel/source.h"

struct weft__cuda;

/* Begins as zeros. */
typedef struct weft_dnn {
    bool opened;        /* or it was tried */
    weft_dnn_card card; /* without a handle: there is no cuDNN */
    struct weft_dnn_work **works;
    size_t n_works, capacity;
    struct weft_dnn_image **images; /* convolutions */
    size_t n_images, images_capacity;
    int64_t built, loaded; /* plans, here and from disk: for tests */
} weft_dnn;

/* Adds the launch of an attention or a convolution that cuDNN computes, or nothing. */
weft_status weft__dnn_offer(struct weft__cuda *device, weft_launches *launches, const weft_command *command);
void weft__dnn_close(struct weft__cuda *device);

/* ---- what its kinds of operations share ---- */

/* Bytes that one operation may use beside its operands. */
int64_t weft__dnn_memory(const struct weft__cuda *device);
/* Of card, driver and library, to be added to. */
weft_hash weft__dnn_key(const struct weft__cuda *device);
/* From disk, where a file that cuDNN does not know again is none. */
bool weft__dnn_load(struct weft__cuda *device, weft_hash key, weft_dnn_plan *plan);
/* A new one, which is stored; false: none, in words. */
bool weft__dnn_build(struct weft__cuda *device, weft_hash key, weft_dnn_graph *graph,
                     const weft_dnn_wish *wish, weft_dnn_plan *plan, char words[WEFT_DNN_WORDS]);

/* ---- dnn_image.c: convolutions, of an open library ---- */

weft_status weft__dnn_offer_convolution(struct weft__cuda *device, weft_launches *launches,
                                        const weft_heavy *heavy);
void weft__dnn_images_free(struct weft__cuda *device);

#endif
