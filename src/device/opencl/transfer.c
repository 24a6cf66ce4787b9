/* Between host and device: uploads that do not wait, downloads that do, and what is learned by waiting. Must
 * not know: programs. Read next: opencl.h. */
#include <string.h>

#include "device/opencl/opencl.h"

static cl_mem memory_of(const weft_buffer *buffer) { return ((const weft__opencl_buffer *)buffer)->memory; }

static weft_status check_span(weft__opencl *d, const weft_buffer *buffer, size_t offset, size_t bytes,
                              const char *what) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return WEFT_OK;
    return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "opencl: %s of %zu bytes at %zu in a buffer of %zu",
                      what, bytes, offset, buffer->bytes);
}

/* ---- staging ---- */

/* Memory of the driver's own, mapped once and for all: what a card reads from without another copy. Without
 * it every upload is waited for. */
static void open_staging(weft__opencl *d) {
    weft__opencl_staging *s = &d->staging;
    cl_int error = 0;
    s->opened = true;
    s->memory = weft__cl.clCreateBuffer(d->context, OPENCL_MEM_READ_WRITE | OPENCL_MEM_ALLOC_HOST_PTR,
                                        STAGING_BYTES, NULL, &error);
    if (!error)
        s->room = weft__cl.clEnqueueMapBuffer(d->queue, s->memory, 1, OPENCL_MAP_WRITE, 0, STAGING_BYTES, 0,
                                              NULL, NULL, &error);
    if (error) s->room = NULL;
}

static void forget_oldest(weft__opencl_staging *s) {
    weft__cl.clReleaseEvent(s->pieces[s->first].event);
    s->first = (s->first + 1) % STAGING_PIECES;
    s->count--;
}

static bool oldest_is_read(const weft__opencl_staging *s) {
    cl_int done = 1;
    return weft__cl.clGetEventInfo(s->pieces[s->first].event, OPENCL_EVENT_COMMAND_EXECUTION_STATUS,
                                   sizeof done, &done, NULL) == 0 &&
           done <= 0; /* or failed, as the queue will tell */
}

static bool taken(const weft__opencl_staging *s, size_t from, size_t to) {
    for (int i = 0; i < s->count; i++) {
        const int k = (s->first + i) % STAGING_PIECES;
        if (s->pieces[k].from < to && from < s->pieces[k].to) return true;
    }
    return false;
}

/* Room for `bytes`, once the device has read what lies there; at the beginning, which is in the cache, where
 * it has read everything. */
static cl_int reserve(weft__opencl_staging *s, size_t bytes, char **room) {
    while (s->count && oldest_is_read(s)) forget_oldest(s);
    if (!s->count || s->head + bytes > STAGING_BYTES) s->head = 0;
    while (s->count == STAGING_PIECES || taken(s, s->head, s->head + bytes)) {
        const cl_int error = weft__cl.clWaitForEvents(1, &s->pieces[s->first].event);
        forget_oldest(s);
        if (error) return error;
    }
    *room = s->room + s->head;
    return 0;
}

static cl_int write_staged(weft__opencl *d, cl_mem memory, size_t offset, const void *from, size_t bytes) {
    weft__opencl_staging *s = &d->staging;
    char *room;
    cl_event event;
    cl_int error = reserve(s, bytes, &room);
    if (error) return error;
    memcpy(room, from, bytes);
    error = weft__cl.clEnqueueWriteBuffer(d->queue, memory, 0, offset, bytes, room, 0, NULL, &event);
    if (error) return error;
    const int k = (s->first + s->count++) % STAGING_PIECES;
    s->pieces[k].from = s->head;
    s->pieces[k].to = s->head + bytes;
    s->pieces[k].event = event;
    s->head += (bytes + 63) & ~(size_t)63;
    return weft__cl.clFlush(d->queue);
}

void weft__opencl_staging_free(weft__opencl *d) {
    weft__opencl_staging *s = &d->staging;
    while (s->count) forget_oldest(s); /* the queue is finished */
    if (s->room) weft__cl.clEnqueueUnmapMemObject(d->queue, s->memory, s->room, 0, NULL, NULL);
    if (s->memory) weft__cl.clReleaseMemObject(s->memory);
    *s = (weft__opencl_staging){0};
}

/* ---- to the device ---- */

/* What is small is copied aside and sent when the device comes to it; what is large is waited for. */
weft_status weft__opencl_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                                size_t bytes) {
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(check_span(d, to, offset, bytes, "upload"));
    if (!bytes) return WEFT_OK;
    if (!d->staging.opened) open_staging(d);
    const bool staged = d->staging.room && bytes <= STAGING_BYTES / 2;
    cl_int error = weft__opencl_gone();
    if (!error)
        error = staged ? write_staged(d, memory_of(to), d->guard + offset, from, bytes)
                       : weft__cl.clEnqueueWriteBuffer(d->queue, memory_of(to), 1, d->guard + offset, bytes,
                                                       from, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "an upload") : WEFT_OK;
}

weft_status weft__opencl_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    static const uint64_t zero;
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(check_span(d, to, offset, bytes, "zeros"));
    const size_t pattern = (offset | bytes) % sizeof zero == 0 ? sizeof zero : 1;
    cl_int error = weft__opencl_gone();
    if (bytes && !error)
        error = weft__cl.clEnqueueFillBuffer(d->queue, memory_of(to), &zero, pattern, d->guard + offset,
                                             bytes, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "zeros") : WEFT_OK;
}

/* ---- to the host ---- */

/* The record comes along with whatever is waited for. */
static cl_int read_record(weft__opencl *d, bool wait) {
    const cl_int error = weft__opencl_gone();
    if (error || !d->unseen) return error;
    return weft__cl.clEnqueueReadBuffer(d->queue, d->faults, wait, 0, sizeof d->record, &d->record, 0, NULL,
                                        NULL);
}

weft_status weft__opencl_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                  size_t bytes) {
    weft__opencl *d = weft__opencl_of(device);
    WEFT_TRY(check_span(d, from, offset, bytes, "download"));
    if (!bytes) return WEFT_OK;
    cl_int error = read_record(d, false);
    if (!error)
        error = weft__cl.clEnqueueReadBuffer(d->queue, memory_of(from), 1, d->guard + offset, bytes, to, 0,
                                             NULL, NULL);
    if (error) return weft__opencl_fail(d, error, "a download");
    d->unseen = false;
    return WEFT_OK;
}

weft_status weft__opencl_synchronize(weft_device *device) {
    weft__opencl *d = weft__opencl_of(device);
    cl_int error = read_record(d, true);
    if (!error) error = weft__cl.clFinish(d->queue);
    if (error) return weft__opencl_fail(d, error, "waiting for the device");
    d->unseen = false;
    return WEFT_OK;
}

weft_status weft__opencl_take_fault(weft_device *device, weft_fault *fault) {
    weft__opencl *d = weft__opencl_of(device);
    *fault = (weft_fault){0};
    if (d->unseen) WEFT_TRY(weft__opencl_synchronize(device));
    if (!d->record.set) return WEFT_OK;
    *fault = weft__gpu_fault(&d->record, &d->paths);
    d->record = (weft_gpu_faults){0};
    const cl_int error =
        weft__cl.clEnqueueWriteBuffer(d->queue, d->faults, 1, 0, sizeof d->record, &d->record, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "the fault record") : WEFT_OK;
}
