/* Whether there is an OpenCL device; a test that is left out for want of one says so by name. */
#ifndef WEFT_TESTS_OPENCL_H
#define WEFT_TESTS_OPENCL_H

#include "device/opencl/opencl.h"

static inline bool test_without_opencl(void) {
    const weft__opencl_found *list;
    const char *why;
    if (weft__opencl_devices(&list, &why)) return false;
    print_message("skipped, no OpenCL: %s\n", why);
    return true;
}

#endif
