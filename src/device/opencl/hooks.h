/* What tests change of the OpenCL device, besides gpu/backend/hooks.h. Read next: opencl.h. */
#ifndef WEFT_DEVICE_OPENCL_HOOKS_H
#define WEFT_DEVICE_OPENCL_HOOKS_H

#include <stdbool.h>

typedef struct weft__opencl_hooks {
    const char *library; /* opened instead of the system's; NULL: that */
    const char *missing; /* this function is not found in it */
    bool cards;          /* processors count as graphics cards, and there is one */
    int items;           /* CPUs get the texts of cards, for groups of so many work-items */
} weft__opencl_hooks;
extern weft__opencl_hooks weft__opencl_hook;

/* Closes nothing, but forgets library and devices: the next look finds them anew. For one thread. */
void weft__opencl_forget(void);

#endif
