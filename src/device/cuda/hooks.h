/* What tests change of the CUDA device, besides gpu/backend/hooks.h. Read next: cuda.h. */
#ifndef WEFT_DEVICE_CUDA_HOOKS_H
#define WEFT_DEVICE_CUDA_HOOKS_H

typedef struct weft__cuda_hooks {
    const char *library; /* opened instead of the system's; NULL: that */
    const char *missing; /* this function is not found in it */
    int plain;           /* runs of a program before it becomes a graph, + 1; 0: as usual */
    double call_worth;   /* multiplications from which on a product is cuBLASLt's; 0: as usual */
    int64_t dnn_memory;  /* bytes that cuDNN's backward pass may take; 0: as usual */
} weft__cuda_hooks;
extern weft__cuda_hooks weft__cuda_hook;

/* Closes nothing, but forgets library and devices: the next look finds them anew. For one thread. */
void weft__cuda_forget(void);

#endif
