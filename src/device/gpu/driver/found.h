/* What is known about a card before it is open.
 * Must not know: buffers, kernels. Read next: open.c, cuda/devices.c, hip/devices.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_FOUND_H
#define WEFT_DEVICE_GPU_DRIVER_FOUND_H

#include "device/gpu/driver/api.h"
#include "device/gpu/driver/nvrtc.h"
#include "device/gpu/backend/found.h"

/* What differs between CUDA and HIP for the files that serve both. */
typedef struct weft__cuda_api {
    const weft__cuda_functions *cu;
    const weft_nvrtc *compiler;
    weft_gpu_devices *kind;
    struct weft_nccl *nccl;       /* adds up over cards (nccl/nccl.h) */
    const struct weft_blas *blas; /* matmuls (blas/blas.h) */
} weft__cuda_api;

typedef struct weft__cuda_found {
    weft_gpu_found gpu;
    const weft__cuda_api *api;
    CUdevice id;
    char bus[16];  /* its place on the PCI bus, such as "0000:3B:00.0", by which other libraries know it; "":
                      unknown */
    char arch[64]; /* what kernels are compiled for, such as "sm_90" or "gfx90a:sramecc+:xnack-" */
    /* such as 90 */
    int arch_number;
    /* such as "NVRTC 13.0 sm_90": all that a cubin depends on besides source and options */
    char compiler[160];
    int wave; /* lanes of a wavefront of AMD's cards, 32 or 64; 0 for CUDA */
    /* such as 90 for 9.0 */
    int capability;
    /* local memory of a block at most; gpu.local_bytes is what it gets without a request */
    uint64_t most_local_bytes;
    /* the card's primary context, held since the first device was opened; NULL before */
    CUcontext context;
    uint64_t generation; /* number of this context; a later one may have the same address, but never the same
                            number */
    int users;           /* open devices */
    bool lost;           /* a kernel failed in the context */
} weft__cuda_found;

/* The most work-groups of a launch along its second and third dimension. */
enum { WEFT_CUDA_GROUPS = 65535 };

/* Returns the card's primary context, which other code in the process may use, too. Returns NULL after
 * *error. The context stays after the last device is closed, since making one takes a quarter of a second. */
CUcontext weft__cuda_context_take(const weft__cuda_found *f, CUresult *error);
/* Gives the context back. `lost`: a kernel failed in it. It then answers every call with an error until it is
 * reset with all its contents. Weft resets it when nobody uses it any more, so that old handles never meet a
 * new context. */
void weft__cuda_context_give(const weft__cuda_found *f, bool lost);

#endif
