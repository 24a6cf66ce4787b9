/* The devices of one API on this machine: what is known about each, and how one is chosen, described and
 * outlined.
 * Must not know: OpenCL, CUDA, open devices. Read next: found.c, backend.h. */
#ifndef WEFT_DEVICE_GPU_BACKEND_FOUND_H
#define WEFT_DEVICE_GPU_BACKEND_FOUND_H

#include <pthread.h>

#include "device/module.h"

/* A device that was found. A backend's own struct begins with it. */
typedef struct weft_gpu_found {
    char spec[24]; /* such as "opencl:0" */
    char name[128];
    char maker[64]; /* name of the platform, or "" */
    char detail[600];
    char reason[500]; /* why Weft cannot use it, or "" */
    bool cpu, gpu, f64;
    bool shares_memory; /* with the host */
    int units, most_items /* in a work-group */;
    uint64_t memory, most_bytes /* of one buffer */, local_bytes /* of a work-group */;
} weft_gpu_found;

/* All devices of one API. */
typedef struct weft_gpu_devices {
    const char *name; /* of the API, such as "opencl" */
    weft_dialect dialect;
    void *list;   /* array of the backend's own structs */
    size_t bytes; /* of one of them */
    /* Fills `list`, and returns how many devices there are. If there is none, *why says what helps. */
    int (*look)(const char **why);
    /* Completes the target, which has the values of `found` and work-groups of 256 work-items. */
    void (*adapt)(const weft_gpu_found *found, weft_target *target);
    /* Stands for a device in plans if there is none. `detail` says so. NULL: then there are no plans. */
    const weft_gpu_found *usual;
    pthread_mutex_t lock; /* held while `look` runs; it may also guard what the backend keeps in `list` */
    /* Private to found.c. Set `looked` to false to look again. */
    bool looked;
    int forks, count;
    const char *why;
} weft_gpu_devices;

/* Looks once in the process. Returns the number of devices. If it is 0, *why says what helps. `why` may be
 * NULL. Thread-safe. */
int weft__gpu_devices(weft_gpu_devices *devices, const char **why);

/* Returns the device that the text after "KIND:" means, or NULL after an error, which names the devices that
 * exist.
 *
 *     "" or NULL      the first device
 *     "1"             the device with this number
 *     "gpu", "cpu"    the first device of this type
 *     other text      the first device with this text in its name or maker */
const weft_gpu_found *weft__gpu_choose(weft_context *ctx, weft_gpu_devices *devices, const char *selector);
/* Describes a device to the code that makes kernels. */
weft_target weft__gpu_target(const weft_gpu_devices *devices, const weft_gpu_found *found);

/* For weft_device_component.find: why the API opens no device, or how many there are. */
const char *weft__gpu_find_devices(weft_gpu_devices *devices, char text[WEFT_COMPONENT_TEXT]);

#endif
