/* For tests of operations that cuDNN computes, with the simulated cuDNN (tests/cuda/dnn.h): its state, the
 * messages in the context's log, and operands. Include this header after cmocka.h and weft.h. */
#ifndef WEFT_TESTS_UNIT_CUDA_DNN_H
#define WEFT_TESTS_UNIT_CUDA_DNN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/dnn.h"
#include "gpu.h"
#include "unit/io_scratch.h"

/* The state of the simulated cuDNN. NULL if it is not there; the test then ends. */
static inline fake_cudnn_state *counts(void) {
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, "fake_cudnn") : NULL;
}

static inline bool without(void) {
    if (!test_on_cuda() || test_without_gpu()) return true;
    if (counts()) return false;
    print_message("skipped, no cuDNN of the tests\n");
    return true;
}

static char said[8000];

static inline void note(void *user, weft_log_level level, const char *text) {
    (void)user;
    (void)level;
    const size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s\n", text);
}

/* A tensor of values between -1 and 1. */
static inline weft_tensor *numbers(weft_context *ctx, int rank, const int64_t *shape, unsigned seed) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    weft_tensor *t = weft_from(ctx, WEFT_F32, rank, shape, values);
    free(values);
    return t;
}

/* All tests share the compiled kernels. They share no plans, since no two tests have the same problem. */
static inline int dnn_setup(void **state) {
    const int failed = scratch_setup(state);
    return failed || setenv("WEFT_KERNEL_CACHE", in_scratch("kernels"), 1);
}

#endif
