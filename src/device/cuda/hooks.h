/* What tests change of the CUDA device, in addition to gpu/backend/hooks.h and gpu/driver/hooks.h.
 * Must not know: the driver. Read next: cuda.h. */
#ifndef WEFT_DEVICE_CUDA_HOOKS_H
#define WEFT_DEVICE_CUDA_HOOKS_H

typedef struct weft__cuda_hooks {
    const char *library; /* opened instead of the system's driver; NULL: the system's */
    const char *missing; /* this function is reported as missing */
    int64_t dnn_memory;  /* bytes that cuDNN's backward pass may use; 0: default */
    double dnn_seconds;  /* that the choice of cuDNN's engines may take; 0: default */
} weft__cuda_hooks;
extern weft__cuda_hooks weft__cuda_hook;

/* Forgets the library and the devices without closing them. The next look finds them again. Only one thread
 * may use CUDA meanwhile. */
void weft__cuda_forget(void);

#endif
