/* Runs every program of a context twice on an asynchronous device, from the same contents of all buffers. The
 * test fails at its end if any result differed in a single bit between the two runs. A run that records a
 * fault is made only once, since the second run would find the fault already recorded. Read next:
 * device.h. */
#ifndef WEFT_TESTS_TWICE_H
#define WEFT_TESTS_TWICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"
#include "graph/graph.h"

enum { TWICE_BYTES = 64 << 20 }; /* limit for all buffers together: larger programs run once */

static struct {
    weft_device_ops ops;
    weft_device_extras extras;
    long runs, differ;
} test_twice;

typedef struct twice_executable {
    weft_executable *real;
    int n_slots;
} twice_executable;

typedef struct twice_copy {
    weft_buffer *buffer;
    char *before, *after;
} twice_copy;

static inline weft_status twice_build(weft_device *device, const weft_commands *commands,
                                      weft_executable **executable) {
    twice_executable *e = malloc(sizeof *e);
    if (!e) return WEFT_ERR_OOM;
    e->n_slots = commands->n_slots;
    const weft_status status = weft__device_opencl.ops->build(device, commands, &e->real);
    if (status == WEFT_OK)
        *executable = (weft_executable *)e;
    else
        free(e);
    return status;
}

static inline void twice_free(weft_device *device, weft_executable *executable) {
    twice_executable *e = (twice_executable *)executable;
    if (e) weft__device_opencl.ops->executable_free(device, e->real);
    free(e);
}

static inline const weft_timing *twice_timings(weft_device *device, const weft_executable *executable) {
    return weft__device_opencl.ops->extras->timings(device, ((const twice_executable *)executable)->real);
}

/* Lists the bound buffers, each once. Returns 0 if there are none, or too many bytes to copy. */
static inline int twice_list(const twice_executable *e, weft_buffer *const *buffers, twice_copy *list) {
    size_t bytes = 0;
    int n = 0;
    for (int s = 0; s < e->n_slots; s++) {
        int k = 0;
        while (k < n && list[k].buffer != buffers[s]) k++;
        if (!buffers[s] || k < n) continue;
        list[n++] = (twice_copy){.buffer = buffers[s]};
        bytes += buffers[s]->bytes;
    }
    return bytes <= TWICE_BYTES ? n : 0;
}

static inline weft_status twice_download(weft_device *device, twice_copy *list, int n, bool after) {
    weft_status status = WEFT_OK;
    for (int i = 0; i < n && status == WEFT_OK; i++) {
        char *to = malloc(list[i].buffer->bytes + 1);
        if (!to) return WEFT_ERR_OOM;
        *(after ? &list[i].after : &list[i].before) = to;
        status = weft__device_opencl.ops->download(device, list[i].buffer, 0, to, list[i].buffer->bytes);
    }
    return status;
}

/* Makes the second run. `after` holds the contents that the first run left. */
static inline weft_status twice_again(weft_device *device, const twice_executable *e,
                                      weft_buffer *const *buffers, weft_rows rows, int times,
                                      twice_copy *list, int n) {
    weft_status status = WEFT_OK;
    for (int i = 0; i < n && status == WEFT_OK; i++)
        status =
            weft__device_opencl.ops->upload(device, list[i].buffer, 0, list[i].before, list[i].buffer->bytes);
    if (status == WEFT_OK) status = weft__gpu_run_rows(device, e->real, buffers, rows, times);
    for (int i = 0; i < n && status == WEFT_OK; i++) {
        const size_t bytes = list[i].buffer->bytes;
        status = weft__device_opencl.ops->download(device, list[i].buffer, 0, list[i].before, bytes);
        test_twice.differ += status == WEFT_OK && memcmp(list[i].before, list[i].after, bytes) != 0;
    }
    test_twice.runs++;
    return status;
}

static inline bool twice_reads_rows(const weft_device *device, const weft_executable *executable) {
    return weft__gpu_reads_rows(device, ((const twice_executable *)executable)->real);
}

static inline weft_status twice_run_rows(weft_device *device, weft_executable *executable,
                                         weft_buffer *const *buffers, weft_rows rows, int times) {
    const twice_executable *e = (const twice_executable *)executable;
    twice_copy *list = calloc((size_t)e->n_slots + 1, sizeof *list);
    const int n = list ? twice_list(e, buffers, list) : 0;
    weft_status status = twice_download(device, list, n, false);
    if (status == WEFT_OK) status = weft__gpu_run_rows(device, e->real, buffers, rows, times);
    if (status == WEFT_OK) status = twice_download(device, list, n, true);
    if (status == WEFT_OK && n && !weft__gpu_of(device)->record.set)
        status = twice_again(device, e, buffers, rows, times, list, n);
    for (int i = 0; i < n; i++) {
        free(list[i].before);
        free(list[i].after);
    }
    free(list);
    return status;
}

static inline weft_status twice_run(weft_device *device, weft_executable *executable,
                                    weft_buffer *const *buffers, int times) {
    return twice_run_rows(device, executable, buffers, (weft_rows){0}, times);
}

static inline void test_look_at_runs(void) {
    if (!test_twice.differ) return;
    fprintf(stderr, "%ld buffers had other bits when one of %ld runs was made again\n", test_twice.differ,
            test_twice.runs);
    _exit(1);
}

/* Call this before the context has run anything. */
static inline void test_run_twice(weft_context *ctx) {
    if (ctx->device->ops != weft__device_opencl.ops) return;
    if (!test_twice.ops.name) atexit(test_look_at_runs);
    test_twice.ops = *weft__device_opencl.ops;
    test_twice.ops.build = twice_build;
    test_twice.ops.executable_free = twice_free;
    test_twice.extras = *weft__device_opencl.ops->extras;
    test_twice.extras.timings = twice_timings;
    test_twice.extras.reads_rows = twice_reads_rows;
    test_twice.extras.run_rows = twice_run_rows;
    test_twice.ops.extras = &test_twice.extras;
    test_twice.ops.run = twice_run;
    ctx->device->ops = &test_twice.ops;
}

#endif
