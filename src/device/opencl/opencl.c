/* The OpenCL device: opening, errors, and its module.
 * Must not know: what kernels compute. Read next: memory.c, run.c, gpu/backend/backend.h. */
#include <stdio.h>

#include "device/opencl/opencl.h"

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
    .devices = &weft__opencl_kind,
    .signals = true,
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

/* ---- module ---- */

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
    WEFT_GPU_EXTRAS,
    .memory_free = weft__gpu_memory_left,
    .set_timing = set_timing,
};

static const weft_device_ops ops = {
    WEFT_GPU_OPS,
    .name = "opencl",
    .extras = &extras,
    .takes = weft__gpu_device_takes,
};

const weft_device_module weft__device_opencl = {
    WEFT_GPU_MODULE,
    .ops = &ops,
    .backend = &backend,
    .serves = "processors and graphics cards with an OpenCL driver",
    .chosen = "`opencl:1`, `opencl:NAME`",
    .card = "opencl:gpu",
    .components = weft__opencl_components,
    .remark = weft__opencl_remark,
};
