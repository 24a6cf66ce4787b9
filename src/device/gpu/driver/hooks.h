/* What tests change of CUDA and HIP, in addition to gpu/backend/hooks.h.
 * Must not know: the driver. Read next: driver.h. */
#ifndef WEFT_DEVICE_GPU_DRIVER_HOOKS_H
#define WEFT_DEVICE_GPU_DRIVER_HOOKS_H

typedef struct weft__driver_hooks {
    int plain;         /* runs of a program before it becomes a graph, + 1; 0: default */
    double call_worth; /* multiplications from which on a library computes a matmul; 0: default */
} weft__driver_hooks;
extern weft__driver_hooks weft__driver_hook;

#endif
