/* What tests change of the WebGPU device, in addition to gpu/backend/hooks.h.
 * Must not know: the library. Read next: webgpu.h. */
#ifndef WEFT_DEVICE_WEBGPU_HOOKS_H
#define WEFT_DEVICE_WEBGPU_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft__webgpu_hooks {
    const char *library; /* opened instead of the system's library; NULL: the system's */
    const char *missing; /* this function is reported as missing */
    uint32_t version;    /* the library reports this version; 0: its own */
    uint32_t groups;     /* most work-groups in a dimension of a launch; 0: what the device allows */
    bool card;           /* a processor gets the kernels of graphics cards */
} weft__webgpu_hooks;
extern weft__webgpu_hooks weft__webgpu_hook;

/* Forgets the library and the devices without closing them. The next look finds them again. Only one thread
 * may use WebGPU meanwhile. */
void weft__webgpu_forget(void);

#endif
