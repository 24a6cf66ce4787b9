/* An open card of CUDA or HIP. HIP is CUDA under other names, so this folder serves both by one table of
 * functions (api.h). Its names are those of CUDA.
 * Must not know: cuda, hip, graphs, layers. Read next: gpu/backend/backend.h, open.c (device), transfer.c
 * (memory), compile.c, run.c (programs), blas/blas.h, nccl/nccl.h. */
#ifndef WEFT_DEVICE_GPU_DRIVER_DRIVER_H
#define WEFT_DEVICE_GPU_DRIVER_DRIVER_H

#include "device/gpu/backend/executable.h"
#include "device/gpu/driver/blas/blas.h"
#include "device/gpu/driver/found.h"
#include "device/gpu/driver/hooks.h"

typedef struct weft__cuda_buffer {
    weft_gpu_buffer gpu;
    /* For a buffer that receives large uploads over the stream of copies. Both are NULL before the first
     * one. */
    CUevent filled; /* the upload is complete */
    CUevent used;   /* the last run that used the buffer is complete */
    bool filling;   /* the main stream has not waited for `filled` yet */
} weft__cuda_buffer;

typedef struct weft__cuda {
    weft_gpu_device gpu;
    const weft__cuda_found *found;
    const weft__cuda_functions *cu; /* of the card's driver */
    char options[WEFT_NVRTC_WORDS]; /* of its compiler */
    CUcontext context;
    CUstream stream; /* the main stream: everything except large uploads, in order */
    CUstream copies; /* the stream of large uploads */
    CUstream beside; /* the stream of exchanges with other processes, made at the first link; else NULL */
    struct weft__cuda_exchange *exchanges; /* nccl/exchange.c */
    char *landing;                         /* pinned memory for downloads; NULL: there is none */
    bool lost;
    weft__blas_state blas;
    bool fast;      /* sums may be added in any order */
    char said[200]; /* message of the library whose call failed last; it replaces the driver's. "": none */
    weft_status reported; /* of a call that failed and has reported why; else WEFT_OK */
} weft__cuda;

static inline weft__cuda *weft__cuda_of(weft_device *device) { return (weft__cuda *)device; }
/* The same for the functions of a backend. */
static inline weft__cuda *weft__cuda_of_gpu(weft_gpu_device *device) { return (weft__cuda *)device; }

/* Make the card's context current in this thread, and restore the previous one. Every driver call is between
 * the two. So other users of CUDA in the thread find their own context. */
static inline CUresult weft__cuda_enter(weft__cuda *d) { return (CUresult)weft__gpu_enter(&d->gpu); }
static inline void weft__cuda_leave(weft__cuda *d) { weft__gpu_leave(&d->gpu); }

static inline weft_status weft__cuda_fail(weft__cuda *d, CUresult error, const char *what) {
    return weft__gpu_fail(&d->gpu, (int)error, what);
}

/* ---- open.c: for weft_gpu_backend, weft_device_ops and weft_device_extras ---- */

weft_status weft__cuda_open(weft_gpu_device *device, const weft_open_options *options);
void weft__cuda_drain(weft_gpu_device *device);
void weft__cuda_close(weft_gpu_device *device);
int weft__cuda_push(weft_gpu_device *device);
void weft__cuda_pop(weft_gpu_device *device);
weft_gpu_trouble weft__cuda_explain(weft_gpu_device *device, int error, char message[WEFT_GPU_MESSAGE]);
uint64_t weft__cuda_memory_free(weft_device *device);
bool weft__cuda_takes(weft_device *device, const weft_heavy *heavy);
/* Asks the libraries of exchanges and of matmuls in turn. */
weft_status weft__cuda_offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command);

/* ---- transfer.c ---- */

extern const weft_gpu_memory_functions weft__cuda_memory;

/* Call these before and after a use of a buffer in the main stream. The use waits for uploads of the other
 * stream, and later uploads wait for the use. */
CUresult weft__cuda_before_use(weft__cuda *d, weft__cuda_buffer *buffer);
CUresult weft__cuda_after_use(weft__cuda *d, weft__cuda_buffer *buffer);
/* Copies and waits; for copies that happen once. */
CUresult weft__cuda_put(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes);

/* ---- compile.c ---- */

void weft__cuda_compiler_open(weft__cuda *d);

/* ---- run.c ---- */

extern const weft_gpu_program_functions weft__cuda_program;

#endif
