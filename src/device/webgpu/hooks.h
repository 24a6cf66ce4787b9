/* What tests change of the WebGPU library.
 * Must not know: devices. Read next: library.c. */
#ifndef WEFT_DEVICE_WEBGPU_HOOKS_H
#define WEFT_DEVICE_WEBGPU_HOOKS_H

#include <stdint.h>

typedef struct weft__webgpu_hooks {
    const char *library; /* opened instead of the system's library; NULL: the system's */
    const char *missing; /* this function is reported as missing */
    uint32_t version;    /* the library reports this version; 0: its own */
} weft__webgpu_hooks;
extern weft__webgpu_hooks weft__webgpu_hook;

#endif
