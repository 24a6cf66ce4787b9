/* The OpenCL device: opening, errors, and the table of its functions.
 * Must not know: what kernels compute. Read next: memory.c, run.c, gpu/backend/backend.h. */
#include <stdio.h>

#include "device/opencl/opencl.h"
#include "device/signals.h"

static weft_gpu_trouble explain(weft_gpu_device *device, int error, char message[WEFT_GPU_MESSAGE]) {
    weft__opencl_error_name(error, message);
    if (error == OPENCL_MEM_OBJECT_ALLOCATION_FAILURE || error == OPENCL_OUT_OF_RESOURCES ||
        error == OPENCL_OUT_OF_HOST_MEMORY || error == OPENCL_INVALID_BUFFER_SIZE)
        return WEFT_GPU_NO_MEMORY;
    if (error != OPENCL_DEVICE_NOT_AVAILABLE && error != OPENCL_INVALID_COMMAND_QUEUE)
        return WEFT_GPU_REFUSED;
    weft__opencl_context_lost(weft__opencl_of_gpu(device)->found);
    return WEFT_GPU_LOST;
}

/* ---- open and close ---- */

static weft_status open_queue(weft_gpu_device *device, const weft_open_options *options) {
    weft__opencl *d = weft__opencl_of_gpu(device);
    cl_int error = 0;
    (void)options;
    d->found = (const weft__opencl_found *)device->found;
    weft__opencl_compiler_open(d);
    d->context = weft__opencl_context(d->found, &error);
    if (error) return weft__gpu_fail(device, error, "opening a context");
    d->plain = weft__cl.clCreateCommandQueue(d->context, d->found->id, 0, &error);
    if (error) return weft__gpu_fail(device, error, "making a queue");
    d->queue = d->plain;
    return WEFT_OK;
}

static void drain(weft_gpu_device *device) {
    if (weft__opencl_of_gpu(device)->queue) weft__cl.clFinish(weft__opencl_of_gpu(device)->queue);
    weft__opencl_store_modules(weft__opencl_of_gpu(device));
}

static void close_queue(weft_gpu_device *device) {
    weft__opencl *d = weft__opencl_of_gpu(device);
    if (d->mark) weft__cl.clReleaseEvent(d->mark);
    if (d->timed) weft__cl.clReleaseCommandQueue(d->timed);
    if (d->plain) weft__cl.clReleaseCommandQueue(d->plain);
    if (d->context) weft__cl.clReleaseContext(d->context);
}

static const weft_gpu_backend backend = {
    .ops = &weft__device_opencl,
    .devices = &weft__opencl_kind,
    .device_bytes = sizeof(weft__opencl),
    .no_memory = OPENCL_MEM_OBJECT_ALLOCATION_FAILURE,
    .lost = OPENCL_DEVICE_NOT_AVAILABLE,
    .open = open_queue,
    .drain = drain,
    .close = close_queue,
    .explain = explain,
    .memory = &weft__opencl_memory,
    .program = &weft__opencl_program,
};

/* ---- table of functions ---- */

static int count(void) { return weft__gpu_count(&weft__opencl_kind); }

static void opencl_describe(int i, weft_device_description *d) {
    weft__gpu_describe(&weft__opencl_kind, i, d);
}

static weft_status outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    return weft__gpu_outline(ctx, &weft__opencl_kind, selector, out);
}

static weft_status open_opencl(weft_context *ctx, const char *selector, const weft_open_options *options,
                               weft_device **device) {
    weft__signals signals;
    weft__keep_signals(&signals);
    const weft_status status = weft__gpu_open(ctx, &backend, selector, options, device);
    weft__restore_signals(&signals);
    return status;
}

static void set_timing(weft_device *device, bool on) {
    weft__opencl *d = weft__opencl_of(device);
    cl_int error = 0;
    if (on && !d->timed)
        d->timed =
            weft__cl.clCreateCommandQueue(d->context, d->found->id, OPENCL_QUEUE_PROFILING_ENABLE, &error);
    if (error) d->timed = NULL; /* then there are no timings */
    if (d->gpu.timing == on) return;
    weft__cl.clFinish(d->queue); /* there is no order between two queues */
    d->gpu.timing = on && d->timed;
    d->queue = d->gpu.timing ? d->timed : d->plain;
}

static const weft_device_extras extras = {
    .count = count,
    .outline = outline,
    .memory_free = weft__gpu_memory_left,
    .launches_of = weft__gpu_launches_of,
    .reads_rows = weft__gpu_reads_rows,
    .run_rows = weft__gpu_run_rows,
    .set_timing = set_timing,
    .timings = weft__gpu_timings,
    .download_all = weft__gpu_download_all,
};

const weft_device_ops weft__device_opencl = {
    .name = "opencl",
    .extras = &extras,
    .describe = opencl_describe,
    .open = open_opencl,
    .close = weft__gpu_close,
    .check_dtype = weft__gpu_check_dtype,
    .buffer_new = weft__gpu_buffer_new,
    .buffer_free = weft__gpu_buffer_free,
    .upload = weft__gpu_upload,
    .download = weft__gpu_download,
    .zero = weft__gpu_buffer_zero,
    .takes = weft__gpu_device_takes,
    .build = weft__gpu_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__gpu_run,
    .synchronize = weft__gpu_synchronize,
    .take_fault = weft__gpu_take_fault,
};
