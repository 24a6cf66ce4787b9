/* An open CUDA card, as its files share it. Read next: cuda.c (device and memory), transfer.c, compile.c
 * (texts), run.c (programs). */
#ifndef WEFT_DEVICE_CUDA_CUDA_H
#define WEFT_DEVICE_CUDA_CUDA_H

#include "device/cuda/blas/blas.h"
#include "device/cuda/driver/devices.h"
#include "device/cuda/dnn/dnn_heavy.h"
#include "device/cuda/hooks.h"
#include "device/gpu/backend/executable.h"

typedef struct weft__cuda_buffer {
    weft_buffer base;
    CUdeviceptr memory;
    /* Of a buffer that large uploads go to, over the stream of copies; NULL before the first: */
    CUevent filled; /* they are there */
    CUevent used;   /* the last run that had the buffer is done */
    bool filling;   /* the stream of launches has not waited for `filled` yet */
} weft__cuda_buffer;

/* Where uploads wait, and where downloads arrive: memory that the card reads and writes by itself. */
typedef struct weft__cuda_staging {
    bool opened;
    char *room; /* NULL: there is none */
    weft_gpu_ring ring;
    CUevent events[WEFT_GPU_RING_PIECES];
    void *landing;
} weft__cuda_staging;

/* Of a launch, along its second and third dimension. */
enum { WEFT_CUDA_GROUPS = 65535 };

typedef struct weft__cuda {
    weft_gpu_device gpu;
    const weft__cuda_found *found;
    CUcontext context;
    CUstream stream; /* of everything but large uploads, in order; */
    CUstream copies; /* theirs */
    weft__cuda_staging staging;
    CUdeviceptr faults; /* the record on the device */
    bool lost;
    CUdeviceptr scratch;
    weft__blas_state blas;
    bool fast; /* sums may be made in any order */
    weft_dnn dnn;
    char said[200]; /* by the library whose call failed last, instead of the driver's words; "": nothing */
} weft__cuda;

static inline weft__cuda *weft__cuda_of(weft_device *device) { return (weft__cuda *)device; }

/* ---- cuda.c ---- */

/* Makes the card's context the thread's; every call of the driver is between these two, so that whoever else
 * uses CUDA in the thread finds what was there. */
CUresult weft__cuda_enter(weft__cuda *d);
void weft__cuda_leave(weft__cuda *d);

/* A driver's error as one of Weft's: WEFT_ERR_OOM where memory is gone, else WEFT_ERR_DEVICE. */
weft_status weft__cuda_fail(weft__cuda *d, CUresult error, const char *what);
/* What a submission must ask first: 0, or the error of a card that a test took away. */
CUresult weft__cuda_gone(void);
/* Memory of at least one byte; counts it. */
weft_status weft__cuda_memory(weft__cuda *d, size_t bytes, const char *what, CUdeviceptr *memory);

/* ---- transfer.c ---- */

weft_status weft__cuda_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                              size_t bytes);
weft_status weft__cuda_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                size_t bytes);
weft_status weft__cuda_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
weft_status weft__cuda_synchronize(weft_device *device);
weft_status weft__cuda_take_fault(weft_device *device, weft_fault *fault);
/* Before and after what uses a buffer in the stream of launches: it waits for uploads of another stream, and
 * they wait for it. */
CUresult weft__cuda_before_use(weft__cuda *d, weft__cuda_buffer *buffer);
CUresult weft__cuda_after_use(weft__cuda *d, weft__cuda_buffer *buffer);
/* Copies, waiting: for what happens once. */
CUresult weft__cuda_put(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes);
CUresult weft__cuda_get(weft__cuda *d, void *to, CUdeviceptr from, size_t bytes);
void weft__cuda_staging_free(weft__cuda *d);

/* ---- compile.c ---- */

void weft__cuda_compiler_open(weft__cuda *d);

/* ---- run.c ---- */

extern const weft_gpu_backend weft__cuda_backend;

weft_status weft__cuda_build(weft_device *device, const weft_commands *commands,
                             weft_executable **executable);
weft_status weft__cuda_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                           int times);
const weft_timing *weft__cuda_timings(weft_device *device, const weft_executable *executable);

#endif
