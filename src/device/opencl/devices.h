/* The OpenCL devices of this machine.
 * Must not know: buffers, kernels. Read next: devices.c. */
#ifndef WEFT_DEVICE_OPENCL_DEVICES_H
#define WEFT_DEVICE_OPENCL_DEVICES_H

#include "base/base.h"
#include "device/opencl/api.h"

typedef struct weft__opencl_found {
    cl_platform_id platform;
    cl_device_id id;
    char spec[16]; /* such as "opencl:0" */
    char name[128], platform_name[64], driver[160], detail[400];
    char reason[200]; /* why Weft cannot use it, or "" */
    bool cpu, gpu, f64, shares_memory;
    int units, most_items /* in a work-group */, vector_bytes /* bytes of a register */;
    uint64_t memory, local_bytes, most_bytes /* of one buffer */;
    cl_context context; /* shared by all that open the device; NULL before the first one */
} weft__opencl_found;

/* Lists all devices of all platforms, GPUs first. It looks once in the process. Returns their number. If it
 * is 0, *why says what helps. */
int weft__opencl_devices(const weft__opencl_found **list, const char **why);

/* Returns the device that the selector means. NULL or "" is the first one, "1" a number, "gpu" and "cpu" a
 * kind. Any other text is a part of its name or its platform's name. Returns NULL after an error, which names
 * the devices that exist. */
const weft__opencl_found *weft__opencl_choose(weft_context *ctx, const char *selector);

/* Returns a context of the device, which the caller releases. All callers share one context, since a driver's
 * first compilation in a new one takes most of a second (PoCL 740 ms). Returns NULL after *error. */
cl_context weft__opencl_context(const weft__opencl_found *f, cl_int *error);
/* Records that the device is lost. The next caller of weft__opencl_context gets a new context. */
void weft__opencl_context_lost(const weft__opencl_found *f);

#endif
