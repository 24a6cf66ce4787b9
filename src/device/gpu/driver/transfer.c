/* Memory of the CUDA device: addresses, and copies in two streams. Small uploads use the main stream. Large
 * uploads have a stream of their own, so that a batch can be copied while a step runs that reads another
 * buffer. They wait only for the last run that used their buffer.
 * Must not know: programs. Read next: gpu/backend/transfer.c, driver.h. */
#include <string.h>

#include "device/gpu/driver/driver.h"

enum { LARGE = 64 << 10, LANDING_BYTES = 64 << 10 };

/* ---- memory ---- */

static int allocate(weft_gpu_device *device, weft_gpu_buffer *b, size_t bytes) {
    CUdeviceptr memory = 0;
    const CUresult error = weft__cuda_of_gpu(device)->cu->cuMemAlloc_v2(&memory, bytes);
    /* Two live buffers never have the same address. If an address is reused, arguments with it are valid
     * again. */
    b->address = b->identity = memory;
    return (int)error;
}

/* Waits for the work that was submitted. */
static void cuda_transfer_release(weft_gpu_device *device, weft_gpu_buffer *buffer) {
    const weft__cuda_buffer *b = (const weft__cuda_buffer *)buffer;
    const weft__cuda_functions *cu = weft__cuda_of_gpu(device)->cu;
    if (b->filled) cu->cuEventDestroy_v2(b->filled);
    if (b->used) cu->cuEventDestroy_v2(b->used);
    cu->cuMemFree_v2(buffer->address);
}

CUresult weft__cuda_put(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes) {
    const CUresult error = d->cu->cuMemcpyHtoDAsync_v2(to, from, bytes, d->stream);
    return error ? error : d->cu->cuStreamSynchronize(d->stream);
}

/* ---- two streams ---- */

CUresult weft__cuda_before_use(weft__cuda *d, weft__cuda_buffer *b) {
    if (!b->filling) return 0;
    b->filling = false;
    return d->cu->cuStreamWaitEvent(d->stream, b->filled, 0);
}

CUresult weft__cuda_after_use(weft__cuda *d, weft__cuda_buffer *b) {
    return b->used ? d->cu->cuEventRecord(b->used, d->stream) : 0;
}

/* Makes the stream of copies wait for earlier uses of the buffer in the main stream. */
static CUresult begin_large(weft__cuda *d, weft__cuda_buffer *b) {
    CUresult error = 0;
    if (!b->filled) error = d->cu->cuEventCreate(&b->filled, CU_EVENT_DISABLE_TIMING);
    if (!error && !b->used) {
        error = d->cu->cuEventCreate(&b->used, CU_EVENT_DISABLE_TIMING);
        if (!error) error = d->cu->cuEventRecord(b->used, d->stream);
    }
    return error ? error : d->cu->cuStreamWaitEvent(d->copies, b->used, 0);
}

static CUresult end_large(weft__cuda *d, weft__cuda_buffer *b) {
    b->filling = true;
    return d->cu->cuEventRecord(b->filled, d->copies);
}

/* Copies pinned memory. The event tells when the card has read it. */
static CUresult copy(const weft__cuda_functions *cu, CUdeviceptr to, const void *from, size_t bytes,
                     CUstream stream, void **event) {
    CUevent read = *event;
    CUresult error = cu->cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
    if (!error && !read) error = cu->cuEventCreate(&read, CU_EVENT_DISABLE_TIMING);
    *event = read;
    return error ? error : cu->cuEventRecord(read, stream);
}

static int write(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, const void *from, size_t bytes,
                 void **event) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    weft__cuda_buffer *b = (weft__cuda_buffer *)to;
    const bool large = event && bytes >= LARGE;
    CUresult error = large ? begin_large(d, b) : weft__cuda_before_use(d, b);
    if (error) return (int)error;
    if (!event) return (int)weft__cuda_put(d, to->address + at, from, bytes);
    error = copy(d->cu, to->address + at, from, bytes, large ? d->copies : d->stream, event);
    if (error) return (int)error;
    return (int)(large ? end_large(d, b) : weft__cuda_after_use(d, b));
}

static int cuda_transfer_fill(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, size_t bytes,
                              unsigned char value) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    CUresult error = weft__cuda_before_use(d, (weft__cuda_buffer *)to);
    if (!error) error = d->cu->cuMemsetD8Async(to->address + at, value, bytes, d->stream);
    return (int)(error ? error : weft__cuda_after_use(d, (weft__cuda_buffer *)to));
}

/* ---- to the host ---- */

/* The places where a download arrives: pinned memory for the fault record and for small pieces, one after the
 * other. The host copies them on once the card is done. */
typedef struct landing {
    char *at, *end; /* the free part of the pinned memory; both NULL if there is none */
    struct {
        void *to;
        const char *from;
        size_t bytes;
    } later[WEFT_GPU_PIECES + 1];
    int count;
} landing;

static CUresult land(weft__cuda *d, landing *l, CUdeviceptr from, void *to, size_t bytes) {
    const size_t room = (bytes + 15) / 16 * 16;
    if (!l->at || room > (size_t)(l->end - l->at))
        return d->cu->cuMemcpyDtoHAsync_v2(to, from, bytes, d->stream);
    l->later[l->count].to = to;
    l->later[l->count].from = l->at;
    l->later[l->count++].bytes = bytes;
    const CUresult error = d->cu->cuMemcpyDtoHAsync_v2(l->at, from, bytes, d->stream);
    l->at += room;
    return error;
}

static int fetch(weft_gpu_device *device, const weft_gpu_piece *pieces, int n, w_faults *record) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    CUresult error = 0;
    weft__gpu_staging_open(device);
    landing l = {.at = d->landing, .end = d->landing ? d->landing + LANDING_BYTES : NULL};
    for (int i = 0; i < n && !error; i++)
        error = weft__cuda_before_use(d, (weft__cuda_buffer *)pieces[i].from);
    if (record && !error) error = land(d, &l, d->gpu.faults->address, record, sizeof *record);
    for (int i = 0; i < n && !error; i++)
        error = land(d, &l, pieces[i].from->address + pieces[i].at, pieces[i].to, pieces[i].bytes);
    if (!error) error = d->cu->cuStreamSynchronize(d->stream);
    for (int i = 0; i < l.count && !error; i++) memcpy(l.later[i].to, l.later[i].from, l.later[i].bytes);
    return (int)(error || n ? error : d->cu->cuStreamSynchronize(d->copies));
}

/* ---- pinned memory ---- */

static void *pinned(const weft__cuda_functions *cu, size_t bytes) {
    void *memory = NULL;
    return cu->cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE) == 0 ? memory : NULL;
}

/* Without pinned memory the driver waits for every upload and download. */
static void *staging_open(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    void *room = pinned(d->cu, WEFT_GPU_RING_BYTES);
    d->landing = pinned(d->cu, LANDING_BYTES);
    return room;
}

static void staging_close(weft_gpu_device *device) {
    const weft__cuda *d = weft__cuda_of_gpu(device);
    weft_gpu_staging *s = &device->staging;
    for (int i = 0; i < WEFT_GPU_RING_PIECES; i++)
        if (s->events[i]) d->cu->cuEventDestroy_v2(s->events[i]);
    if (s->room) d->cu->cuMemFreeHost(s->room);
    if (d->landing) d->cu->cuMemFreeHost(d->landing);
}

static bool is_read(weft_gpu_device *device, void *event) {
    return weft__cuda_of_gpu(device)->cu->cuEventQuery(event) != CUDA_ERROR_NOT_READY;
}

static int wait_for(weft_gpu_device *device, void *event) {
    return (int)weft__cuda_of_gpu(device)->cu->cuEventSynchronize(event);
}

const weft_gpu_memory_functions weft__cuda_memory = {
    .buffer_bytes = sizeof(weft__cuda_buffer),
    .allocate = allocate,
    .release = cuda_transfer_release,
    .fill = cuda_transfer_fill,
    .write = write,
    .fetch = fetch,
    .staging_open = staging_open,
    .staging_close = staging_close,
    .is_read = is_read,
    .wait = wait_for,
};
