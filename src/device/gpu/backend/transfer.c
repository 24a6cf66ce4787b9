/* Copies between host and device. Uploads do not wait. Downloads wait, and also bring the fault record.
 * Must not know: OpenCL, CUDA, programs. Read next: backend.h, docs/design/021-copied-uploads.md. */
#include <string.h>

#include "device/gpu/backend/backend.h"

/* Returns an error unless bytes [offset, offset + bytes) are inside the buffer. */
static weft_status check_span(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                              const char *what) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "%s: %s of %zu bytes at %zu in a buffer of %zu",
                      device->name, what, bytes, offset, buffer->bytes);
}

/* ---- staging ---- */

void weft__gpu_staging_open(weft_gpu_device *d) {
    if (d->staging.opened) return;
    d->staging.opened = true;
    d->staging.room = d->backend->memory->staging_open(d);
}

void weft__gpu_staging_close(weft_gpu_device *d) {
    if (d->staging.opened) d->backend->memory->staging_close(d);
    d->staging = (weft_gpu_staging){.opened = false};
}

static void forget_oldest(weft_gpu_staging *s) {
    s->first = (s->first + 1) % WEFT_GPU_RING_PIECES;
    s->count--;
}

static bool taken(const weft_gpu_staging *s, size_t from, size_t to) {
    for (int i = 0; i < s->count; i++) {
        const int k = (s->first + i) % WEFT_GPU_RING_PIECES;
        if (s->pieces[k].from < to && from < s->pieces[k].to) return true;
    }
    return false;
}

/* Finds room for `bytes` bytes, at most CHUNK_BYTES, and waits until the device has read what is there. If
 * the device has read everything, the room is the start of the ring, which is in the cache. */
static int find_room(weft_gpu_device *d, size_t bytes, size_t *at) {
    weft_gpu_staging *s = &d->staging;
    const weft_gpu_memory_functions *memory = d->backend->memory;
    while (s->count && memory->is_read(d, s->events[s->first])) forget_oldest(s);
    if (!s->count || s->head + bytes > WEFT_GPU_RING_BYTES) s->head = 0;
    while (s->count == WEFT_GPU_RING_PIECES || taken(s, s->head, s->head + bytes)) {
        const int error = memory->wait(d, s->events[s->first]);
        forget_oldest(s);
        if (error) return error;
    }
    *at = s->head;
    return 0;
}

static int write_staged(weft_gpu_device *d, weft_gpu_buffer *to, size_t at, const void *from, size_t bytes) {
    weft_gpu_staging *s = &d->staging;
    size_t start;
    int error = find_room(d, bytes, &start);
    if (error) return error;
    const int k = (s->first + s->count) % WEFT_GPU_RING_PIECES;
    memcpy(s->room + start, from, bytes);
    error = d->backend->memory->write(d, to, at, s->room + start, bytes, &s->events[k]);
    if (error) return error;
    s->pieces[k].from = start;
    s->pieces[k].to = start + bytes;
    s->head = start + ((bytes + 63) & ~(size_t)63);
    s->count++;
    return 0;
}

/* ---- to the device ---- */

enum { CHUNK_BYTES = WEFT_GPU_RING_BYTES / 8 };

/* An upload is copied into the ring in chunks of about the same size, and the device fetches them later. It
 * waits only while the ring is full, or if there is no ring. */
static int upload(weft_gpu_device *d, weft_gpu_buffer *to, size_t at, const char *from, size_t bytes) {
    weft__gpu_staging_open(d);
    int error = weft__gpu_gone(d);
    if (error) return error;
    if (!d->staging.room) return d->backend->memory->write(d, to, at, from, bytes, NULL);
    const size_t chunks = (bytes - 1) / CHUNK_BYTES + 1, each = ((bytes - 1) / chunks + 64) / 64 * 64;
    for (size_t done = 0; done < bytes && !error; done += each) {
        if (done) error = weft__gpu_gone(d);
        if (!error)
            error = write_staged(d, to, at + done, from + done, bytes - done < each ? bytes - done : each);
    }
    return error;
}

weft_status weft__gpu_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                             size_t bytes) {
    weft_gpu_device *d = weft__gpu_of(device);
    WEFT_TRY(check_span(device, to, offset, bytes, "upload"));
    if (!bytes) return WEFT_OK;
    int error = weft__gpu_enter(d);
    if (!error) {
        error = upload(d, (weft_gpu_buffer *)to, d->guard + offset, from, bytes);
        weft__gpu_leave(d);
    }
    return error ? weft__gpu_fail(d, error, "uploading data") : WEFT_OK;
}

weft_status weft__gpu_buffer_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    weft_gpu_device *d = weft__gpu_of(device);
    WEFT_TRY(check_span(device, to, offset, bytes, "zeros"));
    if (!bytes) return WEFT_OK;
    int error = weft__gpu_enter(d);
    if (!error) {
        error = weft__gpu_gone(d);
        if (!error) error = d->backend->memory->fill(d, (weft_gpu_buffer *)to, d->guard + offset, bytes, 0);
        weft__gpu_leave(d);
    }
    return error ? weft__gpu_fail(d, error, "filling a buffer with zeros") : WEFT_OK;
}

/* ---- to the host ---- */

/* Waits, and also reads the fault record, since the host waits anyway. */
static int fetch(weft_gpu_device *d, const weft_gpu_piece *pieces, int n) {
    int error = weft__gpu_enter(d);
    if (error) return error;
    error = weft__gpu_gone(d);
    if (!error) error = d->backend->memory->fetch(d, pieces, n, d->unseen ? &d->record : NULL);
    if (!error) d->unseen = false;
    weft__gpu_leave(d);
    return error;
}

weft_status weft__gpu_download_all(weft_device *device, const weft_piece *pieces, size_t n) {
    weft_gpu_device *d = weft__gpu_of(device);
    weft_gpu_piece list[WEFT_GPU_PIECES];
    int error = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        const weft_piece *p = &pieces[i];
        WEFT_TRY(check_span(device, p->from, p->offset, p->bytes, "download"));
        if (p->bytes)
            list[count++] = (weft_gpu_piece){(weft_gpu_buffer *)(uintptr_t)p->from, d->guard + p->offset,
                                             p->to, p->bytes};
        if (count < WEFT_GPU_PIECES && i + 1 < n) continue;
        if (count) error = fetch(d, list, count);
        if (error) return weft__gpu_fail(d, error, "downloading data");
        count = 0;
    }
    return WEFT_OK;
}

weft_status weft__gpu_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                               size_t bytes) {
    return weft__gpu_download_all(device, &(weft_piece){from, offset, to, bytes}, 1);
}

weft_status weft__gpu_synchronize(weft_device *device) {
    weft_gpu_device *d = weft__gpu_of(device);
    const int error = fetch(d, NULL, 0);
    return error ? weft__gpu_fail(d, error, "waiting for the device") : WEFT_OK;
}

static int clear_record(weft_gpu_device *d) {
    int error = weft__gpu_enter(d);
    if (error) return error;
    error = d->backend->memory->write(d, d->faults, 0, &d->record, sizeof d->record, NULL);
    weft__gpu_leave(d);
    return error;
}

weft_status weft__gpu_take_fault(weft_device *device, weft_fault *fault) {
    weft_gpu_device *d = weft__gpu_of(device);
    *fault = (weft_fault){0};
    if (d->unseen) WEFT_TRY(weft__gpu_synchronize(device));
    if (!d->record.set) return WEFT_OK;
    *fault = weft__gpu_fault(&d->record, &d->paths);
    d->record = (w_faults){0};
    const int error = clear_record(d);
    return error ? weft__gpu_fail(d, error, "reading the fault record") : WEFT_OK;
}
