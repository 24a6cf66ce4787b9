/* The OpenCL device: opening, memory, and the table of its functions.
 * Must not know: what kernels compute. Read next: run.c, transfer.c. */
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "device/opencl/opencl.h"

/* ---- errors ---- */

weft_status weft__opencl_fail(weft__opencl *d, cl_int error, const char *what) {
    char name[64];
    weft__opencl_error_name(error, name);
    const bool memory = error == OPENCL_MEM_OBJECT_ALLOCATION_FAILURE || error == OPENCL_OUT_OF_RESOURCES ||
                        error == OPENCL_OUT_OF_HOST_MEMORY || error == OPENCL_INVALID_BUFFER_SIZE;
    const bool lost = error == OPENCL_DEVICE_NOT_AVAILABLE || error == OPENCL_INVALID_COMMAND_QUEUE;
    if (lost) weft__opencl_context_lost(d->found);
    return weft__gpu_fail(&d->gpu.base,
                          memory ? WEFT_GPU_NO_MEMORY
                          : lost ? WEFT_GPU_LOST
                                 : WEFT_GPU_REFUSED,
                          what, name, d->found->memory);
}

cl_int weft__opencl_gone(void) { return weft__gpu_gone() ? OPENCL_DEVICE_NOT_AVAILABLE : 0; }

/* ---- description ---- */

static int count(void) {
    const weft__opencl_found *list;
    const int n = weft__opencl_devices(&list, NULL);
    return n ? n : 1; /* one entry, which says why there is none */
}

static void describe(int i, weft_device_description *d) {
    const weft__opencl_found *list;
    const char *why;
    const int n = weft__opencl_devices(&list, &why);
    *d = (weft_device_description){.name = "opencl", .reason = why};
    if (i < 0 || i >= n) return;
    const weft__opencl_found *f = &list[i];
    *d = (weft_device_description){.name = f->spec,
                                   .detail = f->detail,
                                   .reason = f->reason[0] ? f->reason : NULL,
                                   .present = !f->reason[0],
                                   .threads = f->units,
                                   .memory = f->memory,
                                   .buffer_limit = f->most_bytes,
                                   .local_memory = f->local_bytes,
                                   .f64 = f->f64,
                                   .card = f->gpu};
}

/* ---- open and close ---- */

static weft_status open_queue(weft__opencl *d) {
    cl_int error = 0;
    d->context = weft__opencl_context(d->found, &error);
    if (error) return weft__opencl_fail(d, error, "a context");
    d->plain = weft__cl.clCreateCommandQueue(d->context, d->found->id, 0, &error);
    if (error) return weft__opencl_fail(d, error, "a queue");
    d->queue = d->plain;
    WEFT_TRY(weft__opencl_memory(d, sizeof d->gpu.record, "the fault record", &d->faults));
    error = weft__cl.clEnqueueWriteBuffer(d->queue, d->faults, 1, 0, sizeof d->gpu.record, &d->gpu.record, 0,
                                          NULL, NULL);
    return error ? weft__opencl_fail(d, error, "the fault record") : WEFT_OK;
}

/* Describes a device to the code that makes kernels. CPUs get vectors of 16 floats, which are one register
 * with AVX-512 and several elsewhere. Cards get work-groups of work-items. */
static weft_target target_of(const weft__opencl_found *f) {
    const bool items = weft__opencl_hook.items > 0;
    weft_target t = {.dialect = WEFT_DIALECT_OPENCL,
                     .vectors = f->cpu && !items,
                     .lanes = items    ? weft__opencl_hook.items
                              : f->cpu ? 16
                                       : 256,
                     .units = f->units > 0 ? f->units : 1,
                     .local_bytes = (int64_t)f->local_bytes,
                     .vector_bytes = f->vector_bytes,
                     .f64 = f->f64};
    while (!t.vectors && t.lanes > f->most_items && t.lanes > 1) t.lanes /= 2;
    return t;
}

static weft_status outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    const weft__opencl_found *f = weft__opencl_choose(ctx, selector);
    if (!f) return WEFT_ERR_DEVICE;
    snprintf(out->name, sizeof out->name, "%s", f->spec);
    snprintf(out->detail, sizeof out->detail, "%s", f->detail);
    out->memory = f->memory;
    out->target = target_of(f);
    out->takes = weft__gpu_takes;
    out->launches = true;
    return WEFT_OK;
}

/* Returns the free memory as far as it is known. OpenCL does not report it, so on a card only this device's
 * buffers count. */
static uint64_t memory_free(weft_device *device) {
    const weft__opencl_found *f = weft__opencl_of(device)->found;
    const uint64_t left = f->memory > device->bytes_in_use ? f->memory - device->bytes_in_use : 1;
    const uint64_t host = f->shares_memory ? weft__host_memory_free() : 0;
    return host && host < left ? host : left;
}

static void close_opencl(weft_device *device) {
    weft__opencl *d = weft__opencl_of(device);
    if (!d || weft__device_forked(device->forks)) return; /* a child of fork leaves it to its parent */
    if (d->queue) weft__cl.clFinish(d->queue);
    weft__opencl_compiler_close(d);
    weft__opencl_staging_free(d);
    if (d->mark) weft__cl.clReleaseEvent(d->mark);
    if (d->scratch) weft__cl.clReleaseMemObject(d->scratch);
    if (d->faults) weft__cl.clReleaseMemObject(d->faults);
    if (d->timed) weft__cl.clReleaseCommandQueue(d->timed);
    if (d->plain) weft__cl.clReleaseCommandQueue(d->plain);
    if (d->context) weft__cl.clReleaseContext(d->context);
    weft__tuner_close(&d->gpu.tuner);
    weft__free(device->ctx, d->gpu.paths.list);
    weft__free(device->ctx, d);
}

static weft_status open_opencl(weft_context *ctx, const char *selector, const weft_open_options *options,
                               weft_device **device) {
    (void)options;
    const weft__opencl_found *found = weft__opencl_choose(ctx, selector);
    if (!found) return WEFT_ERR_DEVICE;
    weft__opencl *d = weft__zalloc(ctx, sizeof *d);
    if (!d) return weft__fail_oom(ctx, sizeof *d, "the opencl device");
    d->gpu.base.ops = &weft__device_opencl;
    d->gpu.backend = &weft__opencl_backend;
    d->gpu.base.ctx = ctx;
    d->gpu.base.name = found->spec;
    d->gpu.base.asynchronous = true;
    d->gpu.base.forks = weft__forks();
    d->found = found;
    d->gpu.target = target_of(found);
    weft__opencl_compiler_open(d);
    weft__tuner_open(&d->gpu.tuner, &d->gpu.base, found->detail, !found->cpu);
    d->gpu.guard = (size_t)weft__gpu_hook.guard;
    weft__opencl_signals signals;
    weft__opencl_keep_signals(&signals);
    const weft_status status = open_queue(d);
    weft__opencl_restore_signals(&signals);
    if (status != WEFT_OK) {
        close_opencl(&d->gpu.base);
        return status;
    }
    *device = &d->gpu.base;
    return WEFT_OK;
}

static weft_status check_dtype(weft_device *device, weft_dtype dtype) {
    const weft__opencl *d = weft__opencl_of(device);
    return weft__gpu_check_dtype(device, dtype, d->gpu.target.f64, d->found->name);
}

/* ---- memory ---- */

weft_status weft__opencl_memory(weft__opencl *d, size_t bytes, const char *what, cl_mem *memory) {
    size_t most = d->found->most_bytes;
    cl_int error = 0;
    if (weft__gpu_hook.most_bytes && weft__gpu_hook.most_bytes < most) most = weft__gpu_hook.most_bytes;
    if (bytes > most)
        return weft__fail(d->gpu.base.ctx, WEFT_ERR_OOM,
                          "%s: %s of %zu bytes: this device gives at most %zu bytes in one piece",
                          d->found->spec, what, bytes, most);
    if (weft__gpu_no_memory())
        error = OPENCL_MEM_OBJECT_ALLOCATION_FAILURE;
    else
        *memory = weft__cl.clCreateBuffer(d->context, OPENCL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &error);
    if (error) {
        char text[96];
        *memory = NULL;
        snprintf(text, sizeof text, "%s of %zu bytes", what, bytes);
        return weft__opencl_fail(d, error, text);
    }
    weft__gpu_hook.buffers++;
    return WEFT_OK;
}

static int fill(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, unsigned char value) {
    return weft__cl.clEnqueueFillBuffer(weft__opencl_of(device)->queue,
                                        ((weft__opencl_buffer *)buffer)->memory, &value, 1, at, bytes, 0,
                                        NULL, NULL);
}

static int read(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, void *to) {
    return weft__cl.clEnqueueReadBuffer(weft__opencl_of(device)->queue,
                                        ((weft__opencl_buffer *)buffer)->memory, 1, at, bytes, to, 0, NULL,
                                        NULL);
}

static void buffer_free(weft_device *device, weft_buffer *buffer) {
    weft__opencl *d = weft__opencl_of(device);
    weft__opencl_buffer *b = (weft__opencl_buffer *)buffer;
    if (!b || weft__device_forked(device->forks)) return;
    weft__gpu_guards_look(device, buffer, d->gpu.guard, read);
    weft__gpu_count_memory(device, 0, buffer->bytes);
    weft__cl.clReleaseMemObject(b->memory); /* which waits for the work that was submitted */
    weft__free(device->ctx, b);
}

static weft_status buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    weft__opencl *d = weft__opencl_of(device);
    if (bytes > PTRDIFF_MAX - 2 * d->gpu.guard) return weft__fail_oom(device->ctx, bytes, "opencl: a buffer");
    weft__opencl_buffer *b = weft__zalloc(device->ctx, sizeof *b);
    if (!b) return weft__fail_oom(device->ctx, sizeof *b, "opencl: a buffer");
    const weft_status status = weft__opencl_memory(d, bytes + 2 * d->gpu.guard, "a buffer", &b->memory);
    if (status != WEFT_OK) {
        weft__free(device->ctx, b);
        return status;
    }
    b->base.bytes = bytes;
    b->serial = ++d->serial;
    weft__gpu_count_memory(device, bytes, 0);
    const int error = weft__gpu_guards_write(device, &b->base, d->gpu.guard, fill);
    if (error) {
        buffer_free(device, &b->base);
        return weft__opencl_fail(d, error, "guard bytes");
    }
    *buffer = &b->base;
    return WEFT_OK;
}

/* ---- table of functions ---- */

static bool takes(weft_device *device, const weft_heavy *heavy) {
    return weft__gpu_takes(&weft__opencl_of(device)->gpu.target, heavy);
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
    .memory_free = memory_free,
    .launches_of = weft__gpu_launches_of,
    .set_timing = set_timing,
    .timings = weft__opencl_timings,
};

const weft_device_ops weft__device_opencl = {
    .name = "opencl",
    .extras = &extras,
    .describe = describe,
    .open = open_opencl,
    .close = close_opencl,
    .check_dtype = check_dtype,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .upload = weft__opencl_upload,
    .download = weft__opencl_download,
    .zero = weft__opencl_zero,
    .takes = takes,
    .build = weft__opencl_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__opencl_run,
    .synchronize = weft__opencl_synchronize,
    .take_fault = weft__opencl_take_fault,
};
