/* An open WebGPU device, shared by the files of this folder.
 * Must not know: graphs, layers. Read next: gpu/backend/backend.h, webgpu.c (device), memory.c, compile.c,
 * run.c (programs). */
#ifndef WEFT_DEVICE_WEBGPU_WEBGPU_H
#define WEFT_DEVICE_WEBGPU_WEBGPU_H

#include <stdatomic.h>

#include "device/gpu/backend/executable.h"
#include "device/webgpu/devices.h"
#include "device/webgpu/hooks.h"
#include "device/webgpu/wgsl/wgsl.h"

/* What went wrong, as the int of the backend's functions. WebGPU reports errors by callbacks. */
enum { WEBGPU_FINE, WEBGPU_REFUSED, WEBGPU_NO_MEMORY, WEBGPU_LOST };

/* A kernel for one assignment of its pointers to buffers. */
typedef struct weft__webgpu_pipeline {
    struct weft__webgpu_pipeline *next;
    int kernel;                      /* number of the kernel in its source */
    int binding[WEFT_WGSL_POINTERS]; /* of each pointer */
    int n_bindings;
    webgpu_bind_group_layout buffers; /* group 0 */
    webgpu_compute_pipeline pipeline;
} weft__webgpu_pipeline;

typedef struct weft__webgpu {
    weft_gpu_device gpu;
    const weft__webgpu_found *found;
    webgpu_device device;
    webgpu_queue queue;
    atomic_bool lost;
    webgpu_bind_group_layout numbers; /* group 1 of all pipelines: the numbers of a launch */
    webgpu_buffer staging;            /* what the host reads passes through it; NULL before the first time */
    size_t unsubmitted;               /* bytes of uploads since the last submission */
    int ahead;                        /* launches since the host last waited */
    int answer; /* status of what the host waits for; a lost device may answer late or never */
    weft__webgpu_pipeline merge; /* writes parts of words; empty before the first time */
} weft__webgpu;

static inline weft__webgpu *weft__webgpu_of(weft_device *device) { return (weft__webgpu *)device; }
/* The same for the functions of a backend. */
static inline weft__webgpu *weft__webgpu_of_gpu(weft_gpu_device *device) { return (weft__webgpu *)device; }

/* ---- webgpu.c ---- */

/* Returns the error that the library reported in this thread since the last call. */
int weft__webgpu_error(const weft__webgpu *d);
/* Returns its message, which is valid until the next error of this thread. */
const char *weft__webgpu_message(void);
/* Finishes the commands of an encoder, submits them, and frees the encoder. */
int weft__webgpu_submit(weft__webgpu *d, webgpu_command_encoder encoder);
/* Lets the library call back. Where it can, it waits until the submitted work is done. */
void weft__webgpu_rest(const weft__webgpu *d);
/* Waits until the submitted work is done. */
int weft__webgpu_wait(weft__webgpu *d);

/* ---- memory.c ---- */

extern const weft_gpu_memory_functions weft__webgpu_memory;
/* Makes a buffer of at least `bytes` bytes. Returns NULL, or a buffer that is in error, after an error. */
webgpu_buffer weft__webgpu_buffer_new(weft__webgpu *d, webgpu_flags usage, uint64_t bytes);
void weft__webgpu_buffer_free(webgpu_buffer buffer);
/* Waits for all work, and copies the first bytes of a buffer to the host. */
int weft__webgpu_read(weft__webgpu *d, webgpu_buffer from, void *to, size_t bytes);
void weft__webgpu_memory_close(weft__webgpu *d);

/* ---- compile.c ---- */

/* A module of the compiler: a source, most often with one kernel. */
typedef struct weft__webgpu_module {
    weft_wgsl_source *source;
    weft__webgpu_pipeline *pipelines;
    char message[600]; /* why it was refused */
} weft__webgpu_module;

int weft__webgpu_compiler_open(weft__webgpu *d);
/* Returns the number of the kernel of this name. A module with one kernel may call it by another name. */
int weft__webgpu_kernel_number(const weft__webgpu_module *m, const char *name);
/* Returns the pipeline of a kernel whose pointers have these bindings, which it makes at first use. Returns
 * NULL after an error. */
weft__webgpu_pipeline *weft__webgpu_pipeline_for(weft__webgpu *d, weft__webgpu_module *m, int kernel,
                                                 const int *binding, int *error);
/* Makes a pipeline of WGSL text, which binds p->n_bindings buffers. */
int weft__webgpu_pipeline_make(weft__webgpu *d, const char *wgsl, const bool *written,
                               weft__webgpu_pipeline *p);
void weft__webgpu_pipeline_empty(weft__webgpu_pipeline *p);
/* Binds buffer i to binding i of a layout. */
webgpu_bind_group weft__webgpu_bind(weft__webgpu *d, webgpu_bind_group_layout layout,
                                    const webgpu_buffer *buffers, int count);

/* ---- run.c ---- */

extern const weft_gpu_program_functions weft__webgpu_program;

#endif
