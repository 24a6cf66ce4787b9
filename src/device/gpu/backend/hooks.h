/* What tests change and count in the GPU backends.
 * Must not know: OpenCL, CUDA. Read next: backend.h. */
#ifndef WEFT_DEVICE_GPU_BACKEND_HOOKS_H
#define WEFT_DEVICE_GPU_BACKEND_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft__gpu_hooks {
    /* Set by tests. 0: no effect. */
    int fail_allocation; /* 1: the next buffer allocation fails, 2: the one after it ... */
    int lose_device;   /* 1: from the next submission on, every call fails as if the device were lost; 2: from
                          the one after it ... */
    int fail_compile;  /* 1: the next compiled source is refused, 2: the one after it ... */
    size_t most_bytes; /* of one buffer, if less than the device allows */
    int fuse_after;    /* number of runs before a program's launches are fused */
    bool long_indices; /* indices have 64 bits even if 32 suffice */
    int guard;         /* bytes around each buffer, checked when it is freed */
    int known_only;    /* a program is refused if it needs a source that the device has not compiled */
    void (*met)(uint64_t, uint64_t); /* called with the key of each compiled source */
    /* Counters. */
    atomic_int contexts, buffers, kernels, sources, compiles, from_cache, guards_broken, refused, unfused;
} weft__gpu_hooks;
extern weft__gpu_hooks weft__gpu_hook;

#endif
