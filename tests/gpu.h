/* Chooses the GPU backend of a test: $WEFT_TEST_GPU, or OpenCL. tests.cmake runs these tests a second time
 * with "cuda", on a simulated driver (cuda/fake.h), and some of them with "webgpu". A test that is skipped
 * without a device prints its name. */
#ifndef WEFT_TESTS_GPU_H
#define WEFT_TESTS_GPU_H

#include <stdlib.h>

#include "device/cuda/cuda.h"
#include "device/gpu/backend/hooks.h"
#include "opencl.h"

static inline char *test_gpu(void) {
    static char opencl[] = "opencl";
    char *named = getenv("WEFT_TEST_GPU");
    return named && *named ? named : opencl;
}

static inline bool test_on_cuda(void) { return strcmp(test_gpu(), "cuda") == 0; }

static inline bool test_on_hip(void) { return strcmp(test_gpu(), "hip") == 0; }

/* Backends with kernels for tensor cores or matrix cores. */
static inline bool test_on_cores(void) { return test_on_cuda() || test_on_hip(); }

static inline bool test_on_webgpu(void) { return strcmp(test_gpu(), "webgpu") == 0; }

/* Describes the first device of the kind, or the kind, which then says why it has none. */
static inline weft_device_description test_described(void) {
    weft_device_description d;
    const size_t n = strlen(test_gpu());
    for (int i = 0; weft_device_info(i, &d); i++)
        if (strncmp(d.name, test_gpu(), n) == 0 && (d.name[n] == ':' || !d.name[n])) return d;
    return (weft_device_description){.reason = "there is no such kind of device"};
}

static inline bool test_without_gpu(void) {
    if (strcmp(test_gpu(), "opencl") == 0) return test_without_opencl();
    const weft_device_description d = test_described();
    if (!d.present) print_message("skipped, no %s: %s\n", test_gpu(), d.reason);
    return !d.present;
}

/* ---- device and programs ---- */

typedef struct test_programs {
    weft_context ctx;
    weft_device *device;
    weft_command list[4];
    weft_operand operands[4][2];
    weft_commands commands;
} test_programs;

/* Returns false if there is no such device. The test is then skipped. */
static inline bool test_setup(test_programs *f, const char *device) {
    memset(f, 0, sizeof *f);
    if (strcmp(device, "opencl") == 0 ? test_without_opencl() : test_without_gpu()) return false;
    assert_int_equal(weft__device_open(&f->ctx, device, NULL, &f->device), WEFT_OK);
    f->commands = (weft_commands){.n_slots = 2, .list = f->list};
    return true;
}

static inline void test_teardown(test_programs *f) {
    assert_int_equal(f->device->bytes_in_use, f->device->workspace);
    f->device->ops->close(f->device);
    weft__strings_free(&f->ctx);
}

static inline weft_command *test_command(test_programs *f, weft_command_kind kind, bool sink, int64_t bytes) {
    const int i = f->commands.count++;
    f->list[i] = (weft_command){.kind = kind,
                                .sink = sink,
                                .after = true,
                                .bytes = bytes,
                                .n_operands = kind == WEFT_COMMAND_COPY ? 2 : 1,
                                .operands = f->operands[i]};
    return &f->list[i];
}

static inline weft_buffer *test_buffer(test_programs *f, size_t bytes) {
    weft_buffer *b = NULL;
    assert_int_equal(f->device->ops->buffer_new(f->device, bytes, &b), WEFT_OK);
    assert_int_equal(b->bytes, bytes);
    return b;
}

#endif
