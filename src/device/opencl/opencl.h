/* An open OpenCL device, shared by the files of this folder.
 * Must not know: graphs, layers. Read next: opencl.c (device and memory), transfer.c, compile.c, run.c
 * (programs). */
#ifndef WEFT_DEVICE_OPENCL_OPENCL_H
#define WEFT_DEVICE_OPENCL_OPENCL_H

#include "device/gpu/backend/executable.h"
#include "device/opencl/devices.h"
#include "device/opencl/hooks.h"

typedef struct weft__opencl_buffer {
    weft_buffer base;
    cl_mem memory;
    uint64_t serial; /* unique among all buffers of the device; an address may be reused */
} weft__opencl_buffer;

/* Memory where uploads wait for the device. */
typedef struct weft__opencl_staging {
    bool opened;
    cl_mem memory;
    char *room; /* where it is mapped; NULL: there is none */
    weft_gpu_ring ring;
    cl_event events[WEFT_GPU_RING_PIECES];
} weft__opencl_staging;

typedef struct weft__opencl {
    weft_gpu_device gpu;
    const weft__opencl_found *found;
    cl_context context;
    cl_command_queue queue;        /* the queue in use, which is one of the next two */
    cl_command_queue plain, timed; /* both in order; `timed` records the times of commands */
    uint64_t serial;               /* of the newest buffer */
    weft__opencl_staging staging;
    cl_mem faults; /* the fault record on the device */
    cl_mem scratch;
    uint64_t scratch_serial;
    cl_event mark; /* event of an earlier launch; the host waits for it, so as not to run too far ahead */
    int since_mark;
} weft__opencl;

static inline weft__opencl *weft__opencl_of(weft_device *device) { return (weft__opencl *)device; }

/* ---- opencl.c ---- */

/* Converts an OpenCL error: WEFT_ERR_OOM if memory is short, otherwise WEFT_ERR_DEVICE. */
weft_status weft__opencl_fail(weft__opencl *d, cl_int error, const char *what);
/* Call it before each submission. Returns 0, or the error of a device that a test took away. */
cl_int weft__opencl_gone(void);
/* Allocates and counts memory of at least one byte. */
weft_status weft__opencl_memory(weft__opencl *d, size_t bytes, const char *what, cl_mem *memory);

/* ---- transfer.c ---- */

weft_status weft__opencl_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                                size_t bytes);
weft_status weft__opencl_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                  size_t bytes);
weft_status weft__opencl_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
weft_status weft__opencl_synchronize(weft_device *device);
weft_status weft__opencl_take_fault(weft_device *device, weft_fault *fault);
void weft__opencl_staging_free(weft__opencl *d);

/* ---- compile.c ---- */

void weft__opencl_compiler_open(weft__opencl *d);
void weft__opencl_compiler_close(weft__opencl *d);

/* ---- run.c ---- */

extern const weft_gpu_backend weft__opencl_backend;

weft_status weft__opencl_build(weft_device *device, const weft_commands *commands,
                               weft_executable **executable);
weft_status weft__opencl_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                             int times);
const weft_timing *weft__opencl_timings(weft_device *device, const weft_executable *executable);

#endif
