/* The adapters of WebGPU on this machine: its word for graphics cards, and for processors that stand in.
 * Must not know: buffers, kernels. Read next: devices.c. */
#ifndef WEFT_DEVICE_WEBGPU_DEVICES_H
#define WEFT_DEVICE_WEBGPU_DEVICES_H

#include "device/gpu/backend/found.h"
#include "device/webgpu/api.h"

typedef struct weft__webgpu_found {
    weft_gpu_found gpu;     /* maker: the system's interface, such as "Vulkan" */
    webgpu_adapter adapter; /* NULL: the library cannot list adapters, and is asked for one by `preference` */
    webgpu_enum preference;
    webgpu_limits limits;
    bool clocks; /* its passes can be timed */
} weft__webgpu_found;

extern weft_gpu_devices weft__webgpu_kind;

/* Returns the instance of the library. There is one in the process. */
webgpu_instance weft__webgpu_instance(void);

/* Waits until the callback of a request has set *done. */
void weft__webgpu_await(webgpu_future request, const bool *done);

/* Asks for an adapter, which the caller releases. Returns NULL if there is none. */
webgpu_adapter weft__webgpu_request_adapter(webgpu_enum preference);

#endif
