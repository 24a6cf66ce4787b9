/* Tells whether there is an OpenCL device. A test that is skipped without a device prints its name. */
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
