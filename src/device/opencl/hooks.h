/* What tests change of the OpenCL device, in addition to gpu/backend/hooks.h.
 * Must not know: the driver. Read next: opencl.h. */
#ifndef WEFT_DEVICE_OPENCL_HOOKS_H
#define WEFT_DEVICE_OPENCL_HOOKS_H

#include <stdbool.h>

typedef struct weft__opencl_hooks {
    const char *library; /* opened instead of the system's library; NULL: the system's */
    const char *missing; /* this function is reported as missing */
    bool stores;         /* kernels are stored even if the driver stores them itself */
    int items;           /* CPUs get the kernels of cards, with so many work-items in a work-group */
} weft__opencl_hooks;
extern weft__opencl_hooks weft__opencl_hook;

/* Forgets the library and the devices without closing them. The next look finds them again. Only one thread
 * may use OpenCL meanwhile. */
void weft__opencl_forget(void);

#endif
