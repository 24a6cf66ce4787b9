/* Copies between host and device. Uploads do not wait. Downloads wait, and also bring the fault record.
 * Must not know: programs. Read next: opencl.h, docs/design/021-copied-uploads.md. */
#include <string.h>

#include "device/opencl/opencl.h"

static cl_mem memory_of(const weft_buffer *buffer) { return ((const weft__opencl_buffer *)buffer)->memory; }

/* ---- staging ---- */

static bool is_read(weft_device *device, int i) {
    cl_int done = 1;
    return weft__cl.clGetEventInfo(weft__opencl_of(device)->staging.events[i],
                                   OPENCL_EVENT_COMMAND_EXECUTION_STATUS, sizeof done, &done, NULL) == 0 &&
           done <= 0;
}

static int wait_for(weft_device *device, int i) {
    return weft__cl.clWaitForEvents(1, &weft__opencl_of(device)->staging.events[i]);
}

static void forget(weft_device *device, int i) {
    weft__cl.clReleaseEvent(weft__opencl_of(device)->staging.events[i]);
}

/* Allocates memory of the driver and maps it once. A card reads from it without another copy. Without it,
 * every upload waits. */
static void open_staging(weft__opencl *d) {
    weft__opencl_staging *s = &d->staging;
    cl_int error = 0;
    s->opened = true;
    s->ring = (weft_gpu_ring){.is_read = is_read, .wait = wait_for, .forget = forget};
    s->memory = weft__cl.clCreateBuffer(d->context, OPENCL_MEM_READ_WRITE | OPENCL_MEM_ALLOC_HOST_PTR,
                                        WEFT_GPU_RING_BYTES, NULL, &error);
    if (!error)
        s->room = weft__cl.clEnqueueMapBuffer(d->queue, s->memory, 1, OPENCL_MAP_WRITE, 0,
                                              WEFT_GPU_RING_BYTES, 0, NULL, NULL, &error);
    if (error) s->room = NULL;
}

static cl_int write_staged(weft__opencl *d, cl_mem memory, size_t offset, const void *from, size_t bytes) {
    weft__opencl_staging *s = &d->staging;
    size_t at;
    cl_event event;
    cl_int error = weft__gpu_ring_room(&s->ring, &d->gpu.base, bytes, &at);
    if (error) return error;
    memcpy(s->room + at, from, bytes);
    error = weft__cl.clEnqueueWriteBuffer(d->queue, memory, 0, offset, bytes, s->room + at, 0, NULL, &event);
    if (error) return error;
    s->events[weft__gpu_ring_add(&s->ring, at, bytes)] = event;
    return weft__cl.clFlush(d->queue);
}

void weft__opencl_staging_free(weft__opencl *d) {
    weft__opencl_staging *s = &d->staging;
    weft__gpu_ring_clear(&s->ring, &d->gpu.base); /* the queue is finished */
    if (s->room) weft__cl.clEnqueueUnmapMemObject(d->queue, s->memory, s->room, 0, NULL, NULL);
    if (s->memory) weft__cl.clReleaseMemObject(s->memory);
    *s = (weft__opencl_staging){0};
}

/* ---- to the device ---- */

/* Uploads bytes. A small upload is copied into the ring, and the device fetches it later. A large one
 * waits. */
weft_status weft__opencl_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                                size_t bytes) {
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(weft__gpu_check_span(device, to, offset, bytes, "upload"));
    if (!bytes) return WEFT_OK;
    if (!d->staging.opened) open_staging(d);
    const bool staged = d->staging.room && bytes <= WEFT_GPU_RING_BYTES / 2;
    cl_int error = weft__opencl_gone();
    if (!error)
        error = staged ? write_staged(d, memory_of(to), d->gpu.guard + offset, from, bytes)
                       : weft__cl.clEnqueueWriteBuffer(d->queue, memory_of(to), 1, d->gpu.guard + offset,
                                                       bytes, from, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "an upload") : WEFT_OK;
}

weft_status weft__opencl_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    static const uint64_t zero;
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(weft__gpu_check_span(device, to, offset, bytes, "zeros"));
    const size_t pattern = (offset | bytes) % sizeof zero == 0 ? sizeof zero : 1;
    cl_int error = weft__opencl_gone();
    if (bytes && !error)
        error = weft__cl.clEnqueueFillBuffer(d->queue, memory_of(to), &zero, pattern, d->gpu.guard + offset,
                                             bytes, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "zeros") : WEFT_OK;
}

/* ---- to the host ---- */

/* Also reads the fault record, since the host waits anyway. */
static cl_int read_record(weft__opencl *d, bool wait) {
    const cl_int error = weft__opencl_gone();
    if (error || !d->gpu.unseen) return error;
    return weft__cl.clEnqueueReadBuffer(d->queue, d->faults, wait, 0, sizeof d->gpu.record, &d->gpu.record, 0,
                                        NULL, NULL);
}

weft_status weft__opencl_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                  size_t bytes) {
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(weft__gpu_check_span(device, from, offset, bytes, "download"));
    if (!bytes) return WEFT_OK;
    cl_int error = read_record(d, false);
    if (!error)
        error = weft__cl.clEnqueueReadBuffer(d->queue, memory_of(from), 1, d->gpu.guard + offset, bytes, to,
                                             0, NULL, NULL);
    if (error) return weft__opencl_fail(d, error, "a download");
    d->gpu.unseen = false;
    return WEFT_OK;
}

weft_status weft__opencl_synchronize(weft_device *device) {
    weft__opencl *d = weft__opencl_of(device);
    cl_int error = read_record(d, true);
    if (!error) error = weft__cl.clFinish(d->queue);
    if (error) return weft__opencl_fail(d, error, "waiting for the device");
    d->gpu.unseen = false;
    return WEFT_OK;
}

weft_status weft__opencl_take_fault(weft_device *device, weft_fault *fault) {
    weft__opencl *d = weft__opencl_of(device);
    *fault = (weft_fault){0};
    if (d->gpu.unseen) WEFT_TRY(weft__opencl_synchronize(device));
    if (!d->gpu.record.set) return WEFT_OK;
    *fault = weft__gpu_fault(&d->gpu.record, &d->gpu.paths);
    d->gpu.record = (w_faults){0};
    const cl_int error = weft__cl.clEnqueueWriteBuffer(d->queue, d->faults, 1, 0, sizeof d->gpu.record,
                                                       &d->gpu.record, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "the fault record") : WEFT_OK;
}
