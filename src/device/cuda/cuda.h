/* What CUDA adds to gpu/driver: its libraries, its cards and cuDNN.
 * Must not know: graphs, layers. Read next: cuda.c (device), devices.h (cards), dnn/dnn_heavy.h. */
#ifndef WEFT_DEVICE_CUDA_CUDA_H
#define WEFT_DEVICE_CUDA_CUDA_H

#include "device/cuda/devices.h"
#include "device/cuda/dnn/dnn_heavy.h"
#include "device/cuda/hooks.h"
#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nccl/nccl.h"

/* An open card. */
typedef struct weft__cuda_card {
    weft__cuda driver;
    weft_dnn dnn;
} weft__cuda_card;

static inline weft_dnn *weft__dnn_of(weft__cuda *d) { return &((weft__cuda_card *)d)->dnn; }

/* ---- blas.c, nccl.c ---- */

extern weft_blas weft__cublas;
extern weft_nccl weft__nccl;

/* ---- components.c ---- */

extern const weft_device_component weft__cuda_components[];

/* ---- outline.c ---- */

/* Outlines a card that is described (gpu/card/card.h), with its libraries. Opens nothing. */
void weft__cuda_outline_card(const struct weft_card *card, weft_device_outline *outline);

#endif
