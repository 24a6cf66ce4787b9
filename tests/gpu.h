/* The GPU backend that a test is about: $WEFT_TEST_GPU, or OpenCL (tests.cmake runs such tests once more with
 * "cuda", on a driver of its own: cuda/fake.h). A test that is left out for want of a device says so by name.
 */
#ifndef WEFT_TESTS_GPU_H
#define WEFT_TESTS_GPU_H

#include <stdlib.h>

#include "device/cuda/cuda.h"
#include "device/gpu/hooks.h"
#include "opencl.h"

static inline char *test_gpu(void) {
    static char opencl[] = "opencl";
    char *named = getenv("WEFT_TEST_GPU");
    return named && *named ? named : opencl;
}

static inline bool test_on_cuda(void) { return strcmp(test_gpu(), "cuda") == 0; }

static inline bool test_without_gpu(void) {
    const weft__cuda_found *list;
    const char *why;
    if (!test_on_cuda()) return test_without_opencl();
    if (weft__cuda_devices(&list, &why) && !list[0].reason[0]) return false;
    print_message("skipped, no CUDA: %s%s\n", why, list[0].reason);
    return true;
}

#endif
