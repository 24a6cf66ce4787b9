/* Memory of the WebGPU device. WebGPU copies whole words of 4 bytes, so parts of words at the ends of a range
 * are merged by a tiny kernel.
 * Must not know: programs. Read next: gpu/backend/transfer.c. */
#include <string.h>

#include "device/webgpu/webgpu.h"

enum { PENDING_MOST = 64 << 20 }; /* bytes of uploads that the library may keep in the host's memory */

webgpu_buffer weft__webgpu_buffer_new(weft__webgpu *d, webgpu_flags usage, uint64_t bytes) {
    const webgpu_buffer_descriptor wanted = {.usage = usage, .size = (bytes + 3) & ~3ull};
    return weft__wgpu.wgpuDeviceCreateBuffer(d->device, &wanted);
}

void weft__webgpu_buffer_free(webgpu_buffer buffer) {
    if (!buffer) return;
    weft__wgpu.wgpuBufferDestroy(buffer); /* bind groups refer to it, and would keep the memory */
    weft__wgpu.wgpuBufferRelease(buffer);
}

static int webgpu_memory_allocate(weft_gpu_device *device, weft_gpu_buffer *b, size_t bytes) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    webgpu_buffer buffer = weft__webgpu_buffer_new(
        d, WEBGPU_BufferUsage_Storage | WEBGPU_BufferUsage_CopySrc | WEBGPU_BufferUsage_CopyDst, bytes);
    const int error = weft__webgpu_error(d);
    b->handle = buffer;
    if (error && buffer) weft__wgpu.wgpuBufferRelease(buffer);
    return error;
}

static void webgpu_memory_release(weft_gpu_device *device, weft_gpu_buffer *b) {
    (void)device;
    weft__webgpu_buffer_free(b->handle);
}

/* ---- parts of words ---- */

static const char merge_text[] =
    "@group(0) @binding(0) var<storage, read_write> to: array<u32>;\n"
    "@group(1) @binding(0) var<uniform> part: vec4<u32>;\n" /* number of the word, mask of its bytes, their
                                                               values */
    "@compute @workgroup_size(1) fn main() {\n"
    "    to[part.x] = (to[part.x] & ~part.y) | part.z;\n"
    "}\n";

static int merge_open(weft__webgpu *d) {
    if (d->merge.pipeline) return 0;
    weft__webgpu_pipeline_empty(&d->merge);
    d->merge.n_bindings = 1;
    return weft__webgpu_pipeline_make(d, merge_text, (bool[]){true}, &d->merge);
}

void weft__webgpu_memory_close(weft__webgpu *d) {
    weft__webgpu_pipeline_empty(&d->merge);
    weft__webgpu_buffer_free(d->staging);
}

static int merge_word(weft__webgpu *d, webgpu_buffer to, const uint32_t part[4]) {
    int error = merge_open(d);
    if (error) return error;
    webgpu_buffer numbers =
        weft__webgpu_buffer_new(d, WEBGPU_BufferUsage_Uniform | WEBGPU_BufferUsage_CopyDst, 4 * sizeof *part);
    weft__wgpu.wgpuQueueWriteBuffer(d->queue, numbers, 0, part, 4 * sizeof *part);
    webgpu_bind_group groups[] = {weft__webgpu_bind(d, d->merge.buffers, &to, 1),
                                  weft__webgpu_bind(d, d->numbers, &numbers, 1)};
    error = weft__webgpu_error(d);
    if (!error) {
        webgpu_command_encoder encoder = weft__wgpu.wgpuDeviceCreateCommandEncoder(d->device, NULL);
        webgpu_compute_pass_encoder pass = weft__wgpu.wgpuCommandEncoderBeginComputePass(encoder, NULL);
        weft__wgpu.wgpuComputePassEncoderSetPipeline(pass, d->merge.pipeline);
        weft__wgpu.wgpuComputePassEncoderSetBindGroup(pass, 0, groups[0], 0, NULL);
        weft__wgpu.wgpuComputePassEncoderSetBindGroup(pass, 1, groups[1], 1, &(uint32_t){0});
        weft__wgpu.wgpuComputePassEncoderDispatchWorkgroups(pass, 1, 1, 1);
        weft__wgpu.wgpuComputePassEncoderEnd(pass);
        weft__wgpu.wgpuComputePassEncoderRelease(pass);
        error = weft__webgpu_submit(d, encoder);
    }
    for (int i = 0; i < 2; i++)
        if (groups[i]) weft__wgpu.wgpuBindGroupRelease(groups[i]);
    if (numbers) weft__wgpu.wgpuBufferRelease(numbers);
    return error;
}

/* Writes `bytes` bytes of one word, from its byte `at` % 4 on. */
static int write_part(weft__webgpu *d, webgpu_buffer to, size_t at, const unsigned char *from, size_t bytes) {
    uint32_t part[4] = {(uint32_t)(at / 4)};
    for (size_t i = 0; i < bytes; i++) {
        const unsigned shift = (unsigned)(at % 4 + i) * 8;
        part[1] |= 0xffu << shift;
        part[2] |= (uint32_t)from[i] << shift;
    }
    return bytes ? merge_word(d, to, part) : 0;
}

/* A range of bytes, cut where words begin. */
typedef struct cut {
    size_t head, middle, tail; /* bytes of the part of a word, of whole words, of the part of a word */
} cut;

static cut cut_range(size_t at, size_t bytes) {
    cut c = {.head = (4 - at % 4) % 4};
    if (c.head > bytes) c.head = bytes;
    c.middle = (bytes - c.head) & ~(size_t)3;
    c.tail = bytes - c.head - c.middle;
    return c;
}

/* ---- to the device ---- */

/* The library copies the bytes at once and passes them to the device with the next submission. */
static int webgpu_memory_write_words(weft__webgpu *d, webgpu_buffer to, size_t at, const void *from,
                                     size_t bytes) {
    int error = 0;
    for (size_t done = 0, now; done < bytes && !error; done += now) {
        now = bytes - done < PENDING_MOST ? bytes - done : PENDING_MOST;
        weft__wgpu.wgpuQueueWriteBuffer(d->queue, to, at + done, (const char *)from + done, now);
        error = weft__webgpu_error(d);
        d->unsubmitted += now;
        if (error || d->unsubmitted < PENDING_MOST) continue;
        weft__wgpu.wgpuQueueSubmit(d->queue, 0, NULL);
        d->unsubmitted = 0;
        error = weft__webgpu_wait(d);
    }
    return error;
}

static int webgpu_memory_write(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, const void *from,
                               size_t bytes, void **event) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    const unsigned char *bytes_of = from;
    const cut c = cut_range(at, bytes);
    (void)event; /* there is no staging memory */
    int error = write_part(d, to->handle, at, bytes_of, c.head);
    if (!error) error = webgpu_memory_write_words(d, to->handle, at + c.head, bytes_of + c.head, c.middle);
    if (!error)
        error = write_part(d, to->handle, at + c.head + c.middle, bytes_of + c.head + c.middle, c.tail);
    return error;
}

static int clear_words(weft__webgpu *d, webgpu_buffer to, size_t at, size_t bytes) {
    if (!bytes) return 0;
    webgpu_command_encoder encoder = weft__wgpu.wgpuDeviceCreateCommandEncoder(d->device, NULL);
    weft__wgpu.wgpuCommandEncoderClearBuffer(encoder, to, at, bytes);
    return weft__webgpu_submit(d, encoder);
}

static int webgpu_memory_fill(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, size_t bytes,
                              unsigned char value) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    unsigned char block[1024];
    const cut c = cut_range(at, bytes);
    memset(block, value, sizeof block);
    int error = write_part(d, to->handle, at, block, c.head);
    at += c.head;
    if (!value && !error) error = clear_words(d, to->handle, at, c.middle);
    for (size_t done = 0; value && done < c.middle && !error; done += sizeof block)
        error = webgpu_memory_write_words(d, to->handle, at + done, block,
                                          c.middle - done < sizeof block ? c.middle - done : sizeof block);
    return error ? error : write_part(d, to->handle, at + c.middle, block, c.tail);
}

/* ---- to the host ---- */

/* Bytes that the host waits for: each stands in the staging buffer for a moment. */
enum { STAGING_BYTES = 4 << 20 };
typedef struct reading {
    weft__webgpu *d;
    webgpu_command_encoder encoder; /* NULL: nothing is copied yet */
    struct {
        size_t at; /* in the staging buffer */
        void *to;
        size_t bytes;
    } parts[WEFT_GPU_PIECES + 1];
    int n;
    size_t used; /* of the staging buffer */
} reading;

static void webgpu_memory_mapped(webgpu_enum status, webgpu_string_view message, void *to, void *unused) {
    (void)message;
    (void)unused;
    *(int *)to = (int)status;
}

/* Waits until the copies are done, and takes their bytes. */
static int reading_finish(reading *r) {
    weft__webgpu *d = r->d;
    if (!r->encoder) return 0;
    int error = weft__webgpu_submit(d, r->encoder);
    d->answer = 0;
    r->encoder = NULL;
    if (error) return error;
    weft__wgpu.wgpuBufferMapAsync(
        d->staging, WEBGPU_MapMode_Read, 0, r->used,
        (webgpu_buffer_map_callback_info){.mode = WEBGPU_CallbackMode_AllowSpontaneous,
                                          .callback = webgpu_memory_mapped,
                                          .userdata1 = &d->answer});
    while (!d->answer && !d->lost) weft__webgpu_rest(d);
    error = weft__webgpu_error(d);
    if (error || d->answer != WEBGPU_Status_Success) return error ? error : WEBGPU_LOST;
    const char *bytes = weft__wgpu.wgpuBufferGetConstMappedRange(d->staging, 0, r->used);
    for (int i = 0; bytes && i < r->n; i++) memcpy(r->parts[i].to, bytes + r->parts[i].at, r->parts[i].bytes);
    weft__wgpu.wgpuBufferUnmap(d->staging);
    r->n = 0;
    r->used = 0;
    return bytes ? weft__webgpu_error(d) : WEBGPU_LOST;
}

static int reading_begin(reading *r) {
    weft__webgpu *d = r->d;
    if (!d->staging)
        d->staging = weft__webgpu_buffer_new(d, WEBGPU_BufferUsage_MapRead | WEBGPU_BufferUsage_CopyDst,
                                             STAGING_BYTES);
    if (!r->encoder) r->encoder = weft__wgpu.wgpuDeviceCreateCommandEncoder(d->device, NULL);
    return weft__webgpu_error(d);
}

/* Copies the words around a range to the staging buffer. */
static int reading_add(reading *r, webgpu_buffer from, size_t at, void *to, size_t bytes) {
    int error = 0;
    for (size_t done = 0, now; done < bytes && !error; done += now) {
        const size_t first = (at + done) & ~(size_t)3, skipped = at + done - first;
        if (STAGING_BYTES - r->used < 64) error = reading_finish(r);
        now = STAGING_BYTES - r->used - skipped;
        if (now > bytes - done) now = bytes - done;
        now = now == bytes - done ? now : now - (skipped + now) % 4;
        const size_t words = (skipped + now + 3) & ~(size_t)3;
        if (!error) error = reading_begin(r);
        if (error) return error;
        weft__wgpu.wgpuCommandEncoderCopyBufferToBuffer(r->encoder, from, first, r->d->staging, r->used,
                                                        words);
        r->parts[r->n].at = r->used + skipped;
        r->parts[r->n].to = (char *)to + done;
        r->parts[r->n++].bytes = now;
        r->used += words;
        error = weft__webgpu_error(r->d);
        if (!error && done + now < bytes) error = reading_finish(r);
    }
    return error;
}

static int reading_end(reading *r, int error) {
    if (!error) error = reading_finish(r);
    if (r->encoder) weft__wgpu.wgpuCommandEncoderRelease(r->encoder);
    return error;
}

int weft__webgpu_read(weft__webgpu *d, webgpu_buffer from, void *to, size_t bytes) {
    reading r = {.d = d};
    return reading_end(&r, reading_add(&r, from, 0, to, bytes));
}

static int webgpu_memory_fetch(weft_gpu_device *device, const weft_gpu_piece *pieces, int n,
                               w_faults *record) {
    reading r = {.d = weft__webgpu_of_gpu(device)};
    int error = 0;
    if (record) error = reading_add(&r, device->faults->handle, 0, record, sizeof *record);
    for (int i = 0; i < n && !error; i++)
        error = reading_add(&r, pieces[i].from->handle, pieces[i].at, pieces[i].to, pieces[i].bytes);
    if (record || n) return reading_end(&r, error);
    return weft__webgpu_wait(r.d);
}

/* ---- staging: none, since the library has its own ---- */

static void *webgpu_memory_staging_open(weft_gpu_device *device) {
    (void)device;
    return NULL;
}

static void webgpu_memory_staging_close(weft_gpu_device *device) { (void)device; }

const weft_gpu_memory_functions weft__webgpu_memory = {
    .buffer_bytes = sizeof(weft_gpu_buffer),
    .allocate = webgpu_memory_allocate,
    .release = webgpu_memory_release,
    .fill = webgpu_memory_fill,
    .write = webgpu_memory_write,
    .fetch = webgpu_memory_fetch,
    .staging_open = webgpu_memory_staging_open,
    .staging_close = webgpu_memory_staging_close,
};
