/* The OpenCL devices of this machine.
 * Must not know: buffers, kernels. Read next: devices.c. */
#ifndef WEFT_DEVICE_OPENCL_DEVICES_H
#define WEFT_DEVICE_OPENCL_DEVICES_H

#include "device/gpu/backend/found.h"
#include "device/opencl/api.h"

typedef struct weft__opencl_found {
    weft_gpu_found gpu; /* maker: name of the platform */
    cl_platform_id platform;
    cl_device_id id;
    cl_context context; /* shared by all that open the device; NULL before the first one */
} weft__opencl_found;

extern weft_gpu_devices weft__opencl_kind;

/* Lists all devices of all platforms, GPUs first. It looks once in the process. Returns their number. If it
 * is 0, *why says what helps. */
int weft__opencl_devices(const weft__opencl_found **list, const char **why);

/* Returns a context of the device, which the caller releases. All callers share one context, since a driver's
 * first compilation in a new one takes most of a second (PoCL 740 ms). Returns NULL after *error. */
cl_context weft__opencl_context(const weft__opencl_found *f, cl_int *error);
/* Records that the device is lost. The next caller of weft__opencl_context gets a new context. */
void weft__opencl_context_lost(const weft__opencl_found *f);

#endif
