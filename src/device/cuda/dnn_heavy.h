/* What cuDNN does for an open device. Read next: dnn_heavy.c. */
#ifndef WEFT_DEVICE_CUDA_DNN_HEAVY_H
#define WEFT_DEVICE_CUDA_DNN_HEAVY_H

#include "device/cuda/dnn.h"
#include "device/device.h"
#include "kernel/source.h"

struct weft__cuda;

/* Begins as zeros. */
typedef struct weft_dnn {
    bool opened;        /* or it was tried */
    weft_dnn_card card; /* without a handle: there is no cuDNN */
    struct weft_dnn_work **works;
    size_t n_works, capacity;
    int64_t built, loaded; /* plans, here and from disk: for tests */
} weft_dnn;

/* Adds the launch of an attention that cuDNN computes, or nothing. */
weft_status weft__dnn_offer(struct weft__cuda *device, weft_launches *launches, const weft_command *command);
void weft__dnn_close(struct weft__cuda *device);

#endif
