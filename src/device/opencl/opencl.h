/* An open OpenCL device, shared by the files of this folder.
 * Must not know: graphs, layers. Read next: gpu/backend/backend.h, opencl.c (device), memory.c, compile.c,
 * run.c (programs). */
#ifndef WEFT_DEVICE_OPENCL_OPENCL_H
#define WEFT_DEVICE_OPENCL_OPENCL_H

#include "device/gpu/backend/executable.h"
#include "device/opencl/devices.h"
#include "device/opencl/hooks.h"

typedef struct weft__opencl {
    weft_gpu_device gpu;
    const weft__opencl_found *found;
    cl_context context;
    cl_command_queue queue;        /* the queue in use, which is one of the next two */
    cl_command_queue plain, timed; /* both in order; `timed` records the times of commands */
    cl_mem staging;
    cl_event mark; /* event of an earlier launch; the host waits for it, so as not to run too far ahead */
    int since_mark;
} weft__opencl;

static inline weft__opencl *weft__opencl_of(weft_device *device) { return (weft__opencl *)device; }
/* The same for the functions of a backend. */
static inline weft__opencl *weft__opencl_of_gpu(weft_gpu_device *device) { return (weft__opencl *)device; }

/* ---- memory.c ---- */

extern const weft_gpu_memory_functions weft__opencl_memory;

/* ---- compile.c ---- */

void weft__opencl_compiler_open(weft__opencl *d);
/* Stores modules on disk. It is called when the device closes: by then drivers have also made the code of
 * first launches. */
void weft__opencl_store_modules(weft__opencl *d);

/* ---- components.c ---- */

extern const weft_device_component weft__opencl_components[];
int weft__opencl_remark(weft_text *line);

/* ---- run.c ---- */

extern const weft_gpu_program_functions weft__opencl_program;

#endif
