/* An open CUDA card, shared by the files of this folder.
 * Must not know: graphs, layers. Read next: cuda.c (device and memory), driver/transfer.c, driver/compile.c,
 * run.c (programs). */
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
    /* For a buffer that receives large uploads over the stream of copies. Both are NULL before the first
     * one. */
    CUevent filled; /* the upload is complete */
    CUevent used;   /* the last run that used the buffer is complete */
    bool filling;   /* the main stream has not waited for `filled` yet */
} weft__cuda_buffer;

/* Pinned memory that the card reads and writes by itself: for uploads that wait, and for downloads. */
typedef struct weft__cuda_staging {
    bool opened;
    char *room; /* NULL: there is none */
    weft_gpu_ring ring;
    CUevent events[WEFT_GPU_RING_PIECES];
    void *landing;
} weft__cuda_staging;

/* The most work-groups of a launch along its second and third dimension. */
enum { WEFT_CUDA_GROUPS = 65535 };

typedef struct weft__cuda {
    weft_gpu_device gpu;
    const weft__cuda_found *found;
    CUcontext context;
    CUstream stream; /* the main stream: everything except large uploads, in order */
    CUstream copies; /* the stream of large uploads */
    weft__cuda_staging staging;
    CUdeviceptr faults; /* the fault record on the device */
    bool lost;
    CUdeviceptr scratch;
    weft__blas_state blas;
    bool fast; /* sums may be added in any order */
    weft_dnn dnn;
    char said[200]; /* message of the library whose call failed last; it replaces the driver's. "": none */
} weft__cuda;

static inline weft__cuda *weft__cuda_of(weft_device *device) { return (weft__cuda *)device; }

/* ---- cuda.c ---- */

/* Make the card's context current in this thread, and restore the previous one. Every driver call is between
 * the two. So other users of CUDA in the thread find their own context. */
CUresult weft__cuda_enter(weft__cuda *d);
void weft__cuda_leave(weft__cuda *d);

/* Converts a driver's error: WEFT_ERR_OOM if memory is short, otherwise WEFT_ERR_DEVICE. */
weft_status weft__cuda_fail(weft__cuda *d, CUresult error, const char *what);
/* Call it before each submission. Returns 0, or the error of a card that a test took away. */
CUresult weft__cuda_gone(void);
/* Allocates and counts memory of at least one byte. */
weft_status weft__cuda_memory(weft__cuda *d, size_t bytes, const char *what, CUdeviceptr *memory);

/* ---- driver/transfer.c ---- */

weft_status weft__cuda_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                              size_t bytes);
weft_status weft__cuda_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                size_t bytes);
weft_status weft__cuda_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
weft_status weft__cuda_synchronize(weft_device *device);
weft_status weft__cuda_take_fault(weft_device *device, weft_fault *fault);
/* Call these before and after a use of a buffer in the main stream. The use waits for uploads of the other
 * stream, and later uploads wait for the use. */
CUresult weft__cuda_before_use(weft__cuda *d, weft__cuda_buffer *buffer);
CUresult weft__cuda_after_use(weft__cuda *d, weft__cuda_buffer *buffer);
/* Copy and wait; for copies that happen once. */
CUresult weft__cuda_put(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes);
CUresult weft__cuda_get(weft__cuda *d, void *to, CUdeviceptr from, size_t bytes);
void weft__cuda_staging_free(weft__cuda *d);

/* ---- driver/compile.c ---- */

void weft__cuda_compiler_open(weft__cuda *d);

/* ---- run.c ---- */

extern const weft_gpu_backend weft__cuda_backend;

weft_status weft__cuda_build(weft_device *device, const weft_commands *commands,
                             weft_executable **executable);
weft_status weft__cuda_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                           int times);
const weft_timing *weft__cuda_timings(weft_device *device, const weft_executable *executable);

#endif
