/* What the GPU backends have in common: choosing a device by name, errors, guards around buffers, the ring of
 * pending uploads, timings of commands.
 * Must not know: OpenCL, CUDA. Read next: backend.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_BACKEND_H
#define WEFT_DEVICE_GPU_BACKEND_BACKEND_H

#include "device/device.h"
#include "device/gpu/backend/hooks.h"

/* ---- choosing a device ---- */

/* A device that was found, with its names for users. */
typedef struct weft_gpu_name {
    const char *spec, *name, *maker; /* "opencl:0"; maker: of the platform, or "" */
    const char *reason;              /* why Weft cannot use it, or "" */
    bool cpu, gpu;
} weft_gpu_name;

/* Returns the index of the device that the text after "KIND:" means, or -1 after an error. The error names
 * the devices that exist; `why` says why there is none.
 *
 *     "" or NULL      the first device
 *     "1"             the device with this number
 *     "gpu", "cpu"    the first device of this type
 *     other text      the first device with this text in its name or maker */
int weft__gpu_choose(weft_context *ctx, const char *kind, const char *selector, const weft_gpu_name *names,
                     int count, const char *why);

/* ---- errors ---- */

typedef enum weft_gpu_trouble { WEFT_GPU_REFUSED, WEFT_GPU_NO_MEMORY, WEFT_GPU_LOST } weft_gpu_trouble;

/* Reports that the driver answered `error` to a request for `what`. */
weft_status weft__gpu_fail(weft_device *device, weft_gpu_trouble trouble, const char *what, const char *error,
                           uint64_t memory);
/* Returns an error for complex dtypes, and for f64 if the device lacks it. `name` is the device's. */
weft_status weft__gpu_check_dtype(weft_device *device, weft_dtype dtype, bool f64, const char *name);
/* Returns an error unless bytes [offset, offset + bytes) are inside the buffer. */
weft_status weft__gpu_check_span(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what);
void weft__gpu_count_memory(weft_device *device, size_t more, size_t less);

/* ---- guards: bytes before and after a buffer, which nothing may write ---- */

/* `at` counts from the start of the memory, guard included. Both return 0 on success. */
typedef int (*weft_gpu_fill)(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes,
                             unsigned char value);
typedef int (*weft_gpu_read)(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, void *to);

/* Writes the guards. Returns the error of fill, or 0. */
int weft__gpu_guards_write(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_fill fill);
/* Checks the guards and counts broken ones in the hooks. */
void weft__gpu_guards_look(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_read read);

/* ---- staging: memory where uploads wait for the device, so that the caller need not wait ---- */

/* A ring of pieces, the oldest first. The backend has one event for each piece. */
enum { WEFT_GPU_RING_BYTES = 32 << 20, WEFT_GPU_RING_PIECES = 256 };
typedef struct weft_gpu_ring {
    size_t head;
    struct {
        size_t from, to;
    } pieces[WEFT_GPU_RING_PIECES];
    int first, count;
    /* Returns whether the device has read piece i. It is also true if reading failed; the queue reports
     * that. */
    bool (*is_read)(weft_device *device, int i);
    /* Waits until piece i is read. Returns 0 or the driver's error. */
    int (*wait)(weft_device *device, int i);
    void (*forget)(weft_device *device, int i);
} weft_gpu_ring;

/* Finds room for `bytes` bytes, at most half the ring, and waits until the device has read what is there. *at
 * is its start. If the device has read everything, it is the start of the ring, which is in the cache.
 * Returns 0 or the driver's error. */
int weft__gpu_ring_room(weft_gpu_ring *ring, weft_device *device, size_t bytes, size_t *at);
/* Records that these bytes are submitted. Returns the number of the piece. Its event tells when they are
 * read. */
int weft__gpu_ring_add(weft_gpu_ring *ring, size_t at, size_t bytes);
/* Empties the ring when everything has been read, before the device closes. */
void weft__gpu_ring_clear(weft_gpu_ring *ring, weft_device *device);

/* ---- timings ---- */

/* The start and end of one launch of command `command`. */
typedef struct weft_gpu_time {
    int command;
    double start_ns, end_ns;
} weft_gpu_time;

/* Computes the timings of commands from their launches. A command lasts from the start of its first launch to
 * the end of its last one. A command without launches takes no time at its place in the order. */
void weft__gpu_fold_times(const weft_gpu_time *launches, int n_launches, weft_timing *commands,
                          int n_commands);

#endif
