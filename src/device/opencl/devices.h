/* The OpenCL devices of this machine. Read next: devices.c. */
#ifndef WEFT_DEVICE_OPENCL_DEVICES_H
#define WEFT_DEVICE_OPENCL_DEVICES_H

#include "base/base.h"
#include "device/opencl/api.h"

typedef struct weft__opencl_found {
    cl_platform_id platform;
    cl_device_id id;
    char spec[16]; /* "opencl:0" */
    char name[128], platform_name[64], driver[160], detail[400];
    char reason[200]; /* why Weft cannot use it, "" where it can */
    bool cpu, gpu, f64, shares_memory;
    int units, most_items /* of a group */, vector_bytes /* that its registers hold */;
    uint64_t memory, local_bytes, most_bytes /* of one buffer */;
    cl_context context; /* of all that open it, one after the other or at once; NULL before the first */
} weft__opencl_found;

/* All devices of all platforms, GPUs first, looked for once a process; none: *why says what helps. */
int weft__opencl_devices(const weft__opencl_found **list, const char **why);

/* The device that is meant: NULL or "" the first, "1" by its number, "gpu" and "cpu" by kind, else part of
 * its name or its platform's. NULL after an error, which names the devices that there are. */
const weft__opencl_found *weft__opencl_choose(weft_context *ctx, const char *selector);

/* A context of the device, for the caller to release: the one that is there, since a driver's first
 * compilation in a new one takes most of a second (PoCL 740 ms). NULL after *error. */
cl_context weft__opencl_context(const weft__opencl_found *f, cl_int *error);
/* The device is lost: who opens it next gets a new one. */
void weft__opencl_context_lost(const weft__opencl_found *f);

#endif
