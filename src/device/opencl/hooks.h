/* What tests change and count of the OpenCL device. Read next: opencl.h. */
#ifndef WEFT_DEVICE_OPENCL_HOOKS_H
#define WEFT_DEVICE_OPENCL_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct weft__opencl_hooks {
    /* changed by tests; 0 and NULL: nothing */
    const char *library; /* opened instead of the system's */
    const char *missing; /* this function is not found in it */
    int fail_allocation; /* 1: the next buffer cannot be made, 2: the one after it ... */
    int lose_device;     /* 1: from the next submission on every call fails as if the device were gone ... */
    int fail_compile;    /* the k-th compiled text from now on is refused */
    size_t most_bytes;   /* of one buffer, where less than the device allows */
    bool cards;          /* processors count as graphics cards, and there is one */
    int chain_after;     /* runs until a program's launches are chained */
    int guard;           /* bytes around each buffer, looked at when it is freed */
    int known_only;      /* a program that needs a text which the device has not compiled is refused */
    int items;           /* CPUs get the texts of cards, for groups of so many work-items */
    /* counted */
    atomic_int contexts, buffers, kernels, texts, compiles, from_cache, guards_broken, refused;
} weft__opencl_hooks;
extern weft__opencl_hooks weft__opencl_hook;

/* Closes nothing, but forgets library and devices: the next look finds them anew. For one thread. */
void weft__opencl_forget(void);

#endif
