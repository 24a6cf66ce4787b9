/* Copies between host and card. Uploads do not wait. Downloads wait, and also bring the fault record. Small
 * uploads use the main stream. Large uploads have a stream of their own, so that a batch can be copied while
 * a step runs that reads another buffer. They wait only for the last run that used their buffer.
 * Must not know: programs. Read next: cuda/cuda.h. */
#include <string.h>

#include "device/cuda/cuda.h"

enum { LARGE = 64 << 10, LANDING_BYTES = 64 << 10 };

/* ---- pinned memory ---- */

static bool is_read(weft_device *device, int i) {
    return weft__cu.cuEventQuery(weft__cuda_of(device)->staging.events[i]) != CUDA_ERROR_NOT_READY;
}

static int wait_for(weft_device *device, int i) {
    return (int)weft__cu.cuEventSynchronize(weft__cuda_of(device)->staging.events[i]);
}

static void forget(weft_device *device, int i) { /* events are reused */
    (void)device;
    (void)i;
}

/* Allocates pinned memory. Without it the driver waits for every upload and download. */
static void open_staging(weft__cuda *d) {
    weft__cuda_staging *s = &d->staging;
    void *room = NULL;
    s->opened = true;
    s->ring = (weft_gpu_ring){.is_read = is_read, .wait = wait_for, .forget = forget};
    if (weft__cu.cuMemHostAlloc(&room, WEFT_GPU_RING_BYTES, CU_MEMHOSTALLOC_PORTABLE) == 0) s->room = room;
    if (weft__cu.cuMemHostAlloc(&s->landing, LANDING_BYTES, CU_MEMHOSTALLOC_PORTABLE) != 0) s->landing = NULL;
}

void weft__cuda_staging_free(weft__cuda *d) {
    weft__cuda_staging *s = &d->staging;
    if (s->opened) weft__gpu_ring_clear(&s->ring, &d->gpu.base);
    for (int i = 0; i < WEFT_GPU_RING_PIECES; i++)
        if (s->events[i]) weft__cu.cuEventDestroy_v2(s->events[i]);
    if (s->room) weft__cu.cuMemFreeHost(s->room);
    if (s->landing) weft__cu.cuMemFreeHost(s->landing);
    *s = (weft__cuda_staging){0};
}

CUresult weft__cuda_put(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes) {
    const CUresult error = weft__cu.cuMemcpyHtoDAsync_v2(to, from, bytes, d->stream);
    return error ? error : weft__cu.cuStreamSynchronize(d->stream);
}

CUresult weft__cuda_get(weft__cuda *d, void *to, CUdeviceptr from, size_t bytes) {
    const CUresult error = weft__cu.cuMemcpyDtoHAsync_v2(to, from, bytes, d->stream);
    return error ? error : weft__cu.cuStreamSynchronize(d->stream);
}

/* ---- two streams ---- */

CUresult weft__cuda_before_use(weft__cuda *d, weft__cuda_buffer *b) {
    if (!b->filling) return 0;
    b->filling = false;
    return weft__cu.cuStreamWaitEvent(d->stream, b->filled, 0);
}

CUresult weft__cuda_after_use(weft__cuda *d, weft__cuda_buffer *b) {
    return b->used ? weft__cu.cuEventRecord(b->used, d->stream) : 0;
}

/* Makes the stream of copies wait for earlier uses of the buffer in the main stream. */
static CUresult begin_large(weft__cuda *d, weft__cuda_buffer *b) {
    CUresult error = 0;
    if (!b->filled) error = weft__cu.cuEventCreate(&b->filled, CU_EVENT_DISABLE_TIMING);
    if (!error && !b->used) {
        error = weft__cu.cuEventCreate(&b->used, CU_EVENT_DISABLE_TIMING);
        if (!error) error = weft__cu.cuEventRecord(b->used, d->stream);
    }
    return error ? error : weft__cu.cuStreamWaitEvent(d->copies, b->used, 0);
}

static CUresult end_large(weft__cuda *d, weft__cuda_buffer *b) {
    b->filling = true;
    return weft__cu.cuEventRecord(b->filled, d->copies);
}

/* ---- to the device ---- */

static CUresult write_staged(weft__cuda *d, CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    weft__cuda_staging *s = &d->staging;
    size_t at;
    CUresult error = (CUresult)weft__gpu_ring_room(&s->ring, &d->gpu.base, bytes, &at);
    if (error) return error;
    memcpy(s->room + at, from, bytes);
    error = weft__cu.cuMemcpyHtoDAsync_v2(to, s->room + at, bytes, stream);
    if (error) return error;
    CUevent *event = &s->events[weft__gpu_ring_add(&s->ring, at, bytes)];
    if (!*event) error = weft__cu.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    return error ? error : weft__cu.cuEventRecord(*event, stream);
}

/* Uploads bytes. If they fit in half the ring, they are copied there and the card fetches them later. A
 * larger upload waits. */
static CUresult upload(weft__cuda *d, weft__cuda_buffer *b, size_t offset, const void *from, size_t bytes) {
    const CUdeviceptr to = b->memory + d->gpu.guard + offset;
    if (!d->staging.opened) open_staging(d);
    CUresult error = weft__cuda_gone();
    if (error) return error;
    if (!d->staging.room || bytes > WEFT_GPU_RING_BYTES / 2) {
        error = weft__cuda_before_use(d, b);
        if (!error) error = weft__cuda_put(d, to, from, bytes);
    } else if (bytes < LARGE) {
        error = weft__cuda_before_use(d, b);
        if (!error) error = write_staged(d, to, from, bytes, d->stream);
        if (!error) error = weft__cuda_after_use(d, b);
    } else {
        error = begin_large(d, b);
        if (!error) error = write_staged(d, to, from, bytes, d->copies);
        if (!error) error = end_large(d, b);
    }
    return error;
}

weft_status weft__cuda_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                              size_t bytes) {
    weft__cuda *d = weft__cuda_of(device);
    WEFT_TRY(weft__gpu_check_span(device, to, offset, bytes, "upload"));
    if (!bytes) return WEFT_OK;
    CUresult error = weft__cuda_enter(d);
    if (!error) {
        error = upload(d, (weft__cuda_buffer *)to, offset, from, bytes);
        weft__cuda_leave(d);
    }
    return error ? weft__cuda_fail(d, error, "an upload") : WEFT_OK;
}

static CUresult zero(weft__cuda *d, weft__cuda_buffer *b, size_t offset, size_t bytes) {
    CUresult error = weft__cuda_gone();
    if (!error) error = weft__cuda_before_use(d, b);
    if (!error) error = weft__cu.cuMemsetD8Async(b->memory + d->gpu.guard + offset, 0, bytes, d->stream);
    return error ? error : weft__cuda_after_use(d, b);
}

weft_status weft__cuda_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    weft__cuda *d = weft__cuda_of(device);
    WEFT_TRY(weft__gpu_check_span(device, to, offset, bytes, "zeros"));
    if (!bytes) return WEFT_OK;
    CUresult error = weft__cuda_enter(d);
    if (!error) {
        error = zero(d, (weft__cuda_buffer *)to, offset, bytes);
        weft__cuda_leave(d);
    }
    return error ? weft__cuda_fail(d, error, "zeros") : WEFT_OK;
}

/* ---- to the host ---- */

/* Waits for all work, and downloads the fault record and `bytes` bytes from `from`. Small downloads arrive in
 * pinned memory. */
static CUresult fetch(weft__cuda *d, CUdeviceptr from, void *to, size_t bytes) {
    weft__cuda_staging *s = &d->staging;
    CUresult error = weft__cuda_gone();
    if (!s->opened) open_staging(d);
    const bool lands = s->landing && bytes <= LANDING_BYTES - sizeof d->gpu.record;
    char *landing = s->landing;
    void *record = landing ? (void *)landing : &d->gpu.record,
         *data = lands ? landing + sizeof d->gpu.record : to;
    if (!error && d->gpu.unseen)
        error = weft__cu.cuMemcpyDtoHAsync_v2(record, d->faults, sizeof d->gpu.record, d->stream);
    if (!error && bytes) error = weft__cu.cuMemcpyDtoHAsync_v2(data, from, bytes, d->stream);
    if (!error) error = weft__cu.cuStreamSynchronize(d->stream);
    if (error) return error;
    if (d->gpu.unseen && record != &d->gpu.record) memcpy(&d->gpu.record, record, sizeof d->gpu.record);
    if (bytes && lands) memcpy(to, data, bytes);
    d->gpu.unseen = false;
    return 0;
}

weft_status weft__cuda_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                size_t bytes) {
    weft__cuda *d = weft__cuda_of(device);
    weft__cuda_buffer *b = (weft__cuda_buffer *)(uintptr_t)from;
    WEFT_TRY(weft__gpu_check_span(device, from, offset, bytes, "download"));
    if (!bytes) return WEFT_OK;
    CUresult error = weft__cuda_enter(d);
    if (!error) {
        error = weft__cuda_before_use(d, b);
        if (!error) error = fetch(d, b->memory + d->gpu.guard + offset, to, bytes);
        weft__cuda_leave(d);
    }
    return error ? weft__cuda_fail(d, error, "a download") : WEFT_OK;
}

weft_status weft__cuda_synchronize(weft_device *device) {
    weft__cuda *d = weft__cuda_of(device);
    CUresult error = weft__cuda_enter(d);
    if (!error) {
        error = fetch(d, 0, NULL, 0);
        if (!error) error = weft__cu.cuStreamSynchronize(d->copies);
        weft__cuda_leave(d);
    }
    return error ? weft__cuda_fail(d, error, "waiting for the device") : WEFT_OK;
}

static CUresult clear_record(weft__cuda *d) {
    CUresult error = weft__cuda_enter(d);
    if (error) return error;
    error = weft__cuda_put(d, d->faults, &d->gpu.record, sizeof d->gpu.record);
    weft__cuda_leave(d);
    return error;
}

weft_status weft__cuda_take_fault(weft_device *device, weft_fault *fault) {
    weft__cuda *d = weft__cuda_of(device);
    *fault = (weft_fault){0};
    if (d->gpu.unseen) WEFT_TRY(weft__cuda_synchronize(device));
    if (!d->gpu.record.set) return WEFT_OK;
    *fault = weft__gpu_fault(&d->gpu.record, &d->gpu.paths);
    d->gpu.record = (w_faults){0};
    const CUresult error = clear_record(d);
    return error ? weft__cuda_fail(d, error, "the fault record") : WEFT_OK;
}
