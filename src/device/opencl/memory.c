/* Memory of the OpenCL device: objects of the driver, and copies in the one queue.
 * Must not know: programs. Read next: gpu/backend/transfer.c, docs/design/021-copied-uploads.md. */
#include "device/opencl/opencl.h"

static int allocate(weft_gpu_device *device, weft_gpu_buffer *b, size_t bytes) {
    cl_int error = 0;
    b->handle = weft__cl.clCreateBuffer(weft__opencl_of_gpu(device)->context, OPENCL_MEM_READ_WRITE, bytes,
                                        NULL, &error);
    return error;
}

static void opencl_memory_release(weft_gpu_device *device, weft_gpu_buffer *b) {
    (void)device;
    weft__cl.clReleaseMemObject(b->handle); /* which waits for the work that was submitted */
}

static int opencl_memory_fill(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, size_t bytes,
                              unsigned char value) {
    const uint64_t pattern = value * UINT64_C(0x0101010101010101);
    const size_t pattern_bytes = (at | bytes) % sizeof pattern == 0 ? sizeof pattern : 1;
    return weft__cl.clEnqueueFillBuffer(weft__opencl_of_gpu(device)->queue, to->handle, &pattern,
                                        pattern_bytes, at, bytes, 0, NULL, NULL);
}

static int write(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, const void *from, size_t bytes,
                 void **event) {
    cl_command_queue queue = weft__opencl_of_gpu(device)->queue;
    cl_event read = NULL;
    if (!event) return weft__cl.clEnqueueWriteBuffer(queue, to->handle, 1, at, bytes, from, 0, NULL, NULL);
    const cl_int error = weft__cl.clEnqueueWriteBuffer(queue, to->handle, 0, at, bytes, from, 0, NULL, &read);
    if (error) return error;
    if (*event) weft__cl.clReleaseEvent(*event);
    *event = read;
    return weft__cl.clFlush(queue);
}

/* The queue is in order, so the last read waits for all. */
static int fetch(weft_gpu_device *device, const weft_gpu_piece *pieces, int n, w_faults *record) {
    cl_command_queue queue = weft__opencl_of_gpu(device)->queue;
    cl_int error = 0;
    if (record)
        error = weft__cl.clEnqueueReadBuffer(queue, device->faults->handle, !n, 0, sizeof *record, record, 0,
                                             NULL, NULL);
    for (int i = 0; i < n && !error; i++)
        error = weft__cl.clEnqueueReadBuffer(queue, pieces[i].from->handle, i + 1 == n, pieces[i].at,
                                             pieces[i].bytes, pieces[i].to, 0, NULL, NULL);
    return error || n ? error : weft__cl.clFinish(queue);
}

/* ---- staging ---- */

/* Allocates memory of the driver and maps it once. A card reads from it without another copy. */
static void *staging_open(weft_gpu_device *device) {
    weft__opencl *d = weft__opencl_of_gpu(device);
    void *room = NULL;
    cl_int error = 0;
    d->staging = weft__cl.clCreateBuffer(d->context, OPENCL_MEM_READ_WRITE | OPENCL_MEM_ALLOC_HOST_PTR,
                                         WEFT_GPU_RING_BYTES, NULL, &error);
    if (!error)
        room = weft__cl.clEnqueueMapBuffer(d->queue, d->staging, 1, OPENCL_MAP_WRITE, 0, WEFT_GPU_RING_BYTES,
                                           0, NULL, NULL, &error);
    return error ? NULL : room;
}

static void staging_close(weft_gpu_device *device) {
    weft__opencl *d = weft__opencl_of_gpu(device);
    weft_gpu_staging *s = &device->staging;
    for (int i = 0; i < WEFT_GPU_RING_PIECES; i++)
        if (s->events[i]) weft__cl.clReleaseEvent(s->events[i]);
    if (s->room) weft__cl.clEnqueueUnmapMemObject(d->queue, d->staging, s->room, 0, NULL, NULL);
    if (d->staging) weft__cl.clReleaseMemObject(d->staging);
}

static bool is_read(weft_gpu_device *device, void *event) {
    cl_int done = 1;
    (void)device;
    return weft__cl.clGetEventInfo(event, OPENCL_EVENT_COMMAND_EXECUTION_STATUS, sizeof done, &done, NULL) ==
               0 &&
           done <= 0;
}

static int wait_for(weft_gpu_device *device, void *event) {
    cl_event read = event;
    (void)device;
    return weft__cl.clWaitForEvents(1, &read);
}

const weft_gpu_memory_functions weft__opencl_memory = {
    .buffer_bytes = sizeof(weft_gpu_buffer),
    .allocate = allocate,
    .release = opencl_memory_release,
    .fill = opencl_memory_fill,
    .write = write,
    .fetch = fetch,
    .staging_open = staging_open,
    .staging_close = staging_close,
    .is_read = is_read,
    .wait = wait_for,
};
