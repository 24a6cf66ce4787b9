/* The adapters of WebGPU on this machine: its word for graphics cards, and for processors that stand in.
 * Must not know: buffers, kernels. Read next: devices.c. */
#ifndef WEFT_DEVICE_WEBGPU_DEVICES_H
#define WEFT_DEVICE_WEBGPU_DEVICES_H

#include "device/gpu/backend/found.h"
#include "device/webgpu/api.h"

typedef struct weft__webgpu_found {
    weft_gpu_found gpu; /* maker: the system's interface, such as "Vulkan" */
    webgpu_adapter adapter;
    webgpu_limits limits;
    bool clocks; /* its passes can be timed */
} weft__webgpu_found;

extern weft_gpu_devices weft__webgpu_kind;

/* Returns the instance of the library. There is one in the process. */
webgpu_instance weft__webgpu_instance(void);

#endif
