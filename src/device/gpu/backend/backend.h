/* What backends of GPUs do alike: naming what was found, errors, guards around buffers, the ring in which
 * uploads wait, the times of commands. Must not know: OpenCL, CUDA. Read next: backend.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_BACKEND_H
#define WEFT_DEVICE_GPU_BACKEND_BACKEND_H

#include "device/device.h"
#include "device/gpu/backend/hooks.h"

/* ---- choosing ---- */

/* A device that was found, as people name it. */
typedef struct weft_gpu_name {
    const char *spec, *name, *maker; /* "opencl:0"; of the platform, "" where there is none */
    const char *reason;              /* why Weft cannot use it, "" where it can */
    bool cpu, gpu;
} weft_gpu_name;

/* Which is meant by what stands behind "KIND:": "" or NULL the first, "1" by its number, "gpu" and "cpu" by
 * what it is, else part of its name or its maker's. -1 after an error, which names what there is; `why` tells
 * why there is none. */
int weft__gpu_choose(weft_context *ctx, const char *kind, const char *selector, const weft_gpu_name *names,
                     int count, const char *why);

/* ---- errors ---- */

typedef enum weft_gpu_trouble { WEFT_GPU_REFUSED, WEFT_GPU_NO_MEMORY, WEFT_GPU_LOST } weft_gpu_trouble;

/* The driver said `error` when asked for `what`. */
weft_status weft__gpu_fail(weft_device *device, weft_gpu_trouble trouble, const char *what, const char *error,
                           uint64_t memory);
/* f64 where the device has it, and no complex numbers. `name`: the device's. */
weft_status weft__gpu_check_dtype(weft_device *device, weft_dtype dtype, bool f64, const char *name);
/* Whether bytes [offset, offset + bytes) are in the buffer. */
weft_status weft__gpu_check_span(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what);
void weft__gpu_count_memory(weft_device *device, size_t more, size_t less);

/* ---- guards: bytes before and after a buffer that nothing may write ---- */

/* Both count from the begin of the memory, and return 0 where they are done. */
typedef int (*weft_gpu_fill)(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes,
                             unsigned char value);
typedef int (*weft_gpu_read)(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, void *to);

/* The error of fill, or 0. */
int weft__gpu_guards_write(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_fill fill);
/* Counts broken ones in the hooks. */
void weft__gpu_guards_look(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_read read);

/* ---- staging: where uploads wait for their turn, so that the caller need not ---- */

/* A ring of pieces, the oldest first. Each has an event of the backend's, by its number. */
enum { WEFT_GPU_RING_BYTES = 32 << 20, WEFT_GPU_RING_PIECES = 256 };
typedef struct weft_gpu_ring {
    size_t head;
    struct {
        size_t from, to;
    } pieces[WEFT_GPU_RING_PIECES];
    int first, count;
    /* Whether the device has read piece i (or failed at it, as the queue will tell). */
    bool (*is_read)(weft_device *device, int i);
    /* Waits for that; 0 or the driver's error. */
    int (*wait)(weft_device *device, int i);
    void (*forget)(weft_device *device, int i);
} weft_gpu_ring;

/* Room for `bytes`, at most half the ring, from *at on, once the device has read what lies there: at the
 * beginning, which is in the cache, where it has read everything. */
int weft__gpu_ring_room(weft_gpu_ring *ring, weft_device *device, size_t bytes, size_t *at);
/* They are on their way: number of the piece whose event tells when they have been read. */
int weft__gpu_ring_add(weft_gpu_ring *ring, size_t at, size_t bytes);
/* For the end, when all has been read. */
void weft__gpu_ring_clear(weft_gpu_ring *ring, weft_device *device);

/* ---- times ---- */

/* A launch of command `command`, timed. */
typedef struct weft_gpu_time {
    int command;
    double start_ns, end_ns;
} weft_gpu_time;

/* A command lasts from the start of its first launch to the end of its last; one without launches takes no
 * time, in its place. */
void weft__gpu_fold_times(const weft_gpu_time *launches, int n_launches, weft_timing *commands,
                          int n_commands);

#endif
