/* NVRTC, NVIDIA's compiler.
 * Must not know: devices, what kernels compute, files. Read next: nvrtc.c. */
#ifndef WEFT_DEVICE_CUDA_NVRTC_H
#define WEFT_DEVICE_CUDA_NVRTC_H

#include "device/gpu/driver/nvrtc.h"

extern const weft_nvrtc weft__nvrtc;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. Call it
 * before all other functions here. */
const char *weft__nvrtc_open(void);
void weft__nvrtc_version(int *major, int *minor);
/* Returns whether it compiles for cards of a compute capability, such as 90 for 9.0. */
bool weft__nvrtc_knows(int capability);

/* For tests. */
extern const char *weft__nvrtc_file; /* opened instead of the usual names; NULL: the usual ones */
void weft__nvrtc_forget(void);

#endif
