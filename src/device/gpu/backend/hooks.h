/* What tests change and count of GPU backends. Read next: backend.h. */
#ifndef WEFT_DEVICE_GPU_BACKEND_HOOKS_H
#define WEFT_DEVICE_GPU_BACKEND_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft__gpu_hooks {
    /* changed by tests; 0: nothing */
    int fail_allocation; /* 1: the next buffer cannot be made, 2: the one after it ... */
    int lose_device;     /* 1: from the next submission on every call fails as if the device were gone ... */
    int fail_compile;    /* the k-th compiled text from now on is refused */
    size_t most_bytes;   /* of one buffer, where less than the device allows */
    int chain_after;     /* runs until a program's launches are chained */
    int guard;           /* bytes around each buffer, looked at when it is freed */
    int known_only;      /* a program that needs a text which the device has not compiled is refused */
    void (*met)(uint64_t, uint64_t); /* is told the key of each text that is compiled */
    /* counted */
    atomic_int contexts, buffers, kernels, texts, compiles, from_cache, guards_broken, refused;
} weft__gpu_hooks;
extern weft__gpu_hooks weft__gpu_hook;

/* Counts a submission, as far as that was asked for; whether the device is gone by now. */
bool weft__gpu_gone(void);
/* Counts an allocation likewise; whether it is to fail. */
bool weft__gpu_no_memory(void);

#endif
