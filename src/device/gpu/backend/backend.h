/* A GPU backend: the functions that an API supplies, and the device that they work on. Everything else of
 * weft_device_ops is in device.c, transfer.c, launch.c and executable.c, once for all APIs.
 *
 * To write a backend, supply:
 *
 *     weft_gpu_devices      the devices of the API on this machine (found.h)
 *     weft_gpu_compiler     kernel source to modules (compile.h)
 *     weft_gpu_backend      opening, memory and programs (below)
 *     weft_device_module    with WEFT_GPU_OPS, WEFT_GPU_EXTRAS and WEFT_GPU_MODULE (the end of this file)
 *
 * Rules for the functions below:
 *
 *  - An int is 0 or the API's error. They report nothing: the caller passes the error to weft__gpu_fail,
 *    which asks `explain`. A weft_status is already reported.
 *  - The caller has checked all arguments and, unless a comment says otherwise, has called `enter`.
 *  - Work goes to the device in the order of the calls. Nothing waits unless a comment says so.
 *  - A place `at` in memory counts bytes from its start, guard included.
 *
 * Must not know: OpenCL, CUDA. Read next: device.c, opencl/opencl.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_BACKEND_H
#define WEFT_DEVICE_GPU_BACKEND_BACKEND_H

#include "device/device.h"
#include "device/gpu/backend/compile.h"
#include "device/gpu/backend/found.h"
#include "device/gpu/backend/hooks.h"
#include "device/gpu/backend/program.h"
#include "device/gpu/backend/tune.h"
#include "device/gpu/gpu.h"

typedef struct weft_gpu_device weft_gpu_device;
typedef struct weft_gpu_executable weft_gpu_executable; /* executable.h */
typedef struct weft_gpu_launch weft_gpu_launch;         /* executable.h */

/* Memory of the device. A backend that keeps more with it has a struct of its own, which begins with this. */
typedef struct weft_gpu_buffer {
    weft_buffer base;
    union {
        void *handle;     /* of an API whose memory is an object */
        uint64_t address; /* of an API whose memory is an address */
    };
    uint64_t identity; /* never 0; a program binds a slot again if its buffer has another number */
} weft_gpu_buffer;

/* Bytes of `handle` or `address` as the argument of a kernel. */
enum { WEFT_GPU_POINTER_BYTES = sizeof(void *) };

/* Bytes of a buffer that go to the host. */
typedef struct weft_gpu_piece {
    weft_gpu_buffer *from;
    size_t at;
    void *to;
    size_t bytes;
} weft_gpu_piece;
enum { WEFT_GPU_PIECES = 64 }; /* of one fetch, at most */

/* What an error of the API means. */
typedef enum weft_gpu_trouble { WEFT_GPU_REFUSED, WEFT_GPU_NO_MEMORY, WEFT_GPU_LOST } weft_gpu_trouble;
enum { WEFT_GPU_MESSAGE = 160 };

typedef struct weft_gpu_memory_functions {
    size_t buffer_bytes; /* size of the backend's own buffer struct */
    /* Allocates `bytes` bytes, at least 1, and sets `handle` or `address`. It may set `identity`; otherwise
     * the buffer gets a number that no other one ever had. */
    int (*allocate)(weft_gpu_device *device, weft_gpu_buffer *buffer, size_t bytes);
    /* Frees the memory when the submitted work is done. It may wait. The caller frees the struct. */
    void (*release)(weft_gpu_device *device, weft_gpu_buffer *buffer);
    /* Sets bytes to `value`. */
    int (*fill)(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, size_t bytes, unsigned char value);
    /* Copies bytes to the device. If `event` is NULL, `from` is any memory, and the bytes are read when this
     * returns. Otherwise `from` is staging memory, and *event becomes an object that tells when they are
     * read. *event is NULL or an earlier object for reuse. */
    int (*write)(weft_gpu_device *device, weft_gpu_buffer *to, size_t at, const void *from, size_t bytes,
                 void **event);
    /* Waits for all submitted work, and copies the fault record and n pieces of buffers to the host. `record`
     * may be NULL, and n may be 0. */
    int (*fetch)(weft_gpu_device *device, const weft_gpu_piece *pieces, int n, w_faults *record);
    /* Returns WEFT_GPU_RING_BYTES bytes of host memory that the device can read by itself. NULL: there is
     * none, and every upload waits. */
    void *(*staging_open)(weft_gpu_device *device);
    /* Frees this memory, and the objects in device->staging.events. Nothing reads the memory any more. */
    void (*staging_close)(weft_gpu_device *device);
    /* Returns whether the bytes of a write are read. It is also true if reading failed. */
    bool (*is_read)(weft_gpu_device *device, void *event);
    /* Waits until they are read. */
    int (*wait)(weft_gpu_device *device, void *event);
} weft_gpu_memory_functions;

typedef struct weft_gpu_program_functions {
    size_t executable_bytes; /* size of the backend's own executable struct */
    bool never_fuses;        /* launches are never fused, since the API submits a whole run at once */
    /* Calls weft__gpu_build_form, with the backend's own preparation around it. NULL: nothing is prepared. */
    weft_status (*build)(weft_gpu_device *device, const weft_commands *commands, bool fused,
                         weft_gpu_executable **e);
    /* Sets launch->kernel to the kernel of this name in a module of the compiler. kernel_free frees it; NULL:
     * the module owns its kernels. */
    int (*kernel_new)(weft_gpu_device *device, weft_gpu_launch *launch, void *module, const char *name);
    void (*kernel_free)(weft_gpu_device *device, void *kernel);
    /* Passes the value of an argument to the kernel, at first and whenever it changes. NULL: launches read
     * the values themselves. */
    int (*set_argument)(weft_gpu_device *device, const weft_gpu_launch *launch, int index);
    /* Frees what the backend keeps in its executable, and the objects in e->events. The program may be
     * incomplete, and e->events may be NULL. */
    void (*empty)(weft_gpu_device *device, weft_gpu_executable *e);
    /* Called before and after the launches of a call of weft__gpu_run. buffers[i] is bound to slot i, or
     * NULL. NULL: nothing to do. */
    int (*before_run)(weft_gpu_device *device, weft_buffer *const *buffers, int count);
    int (*after_run)(weft_gpu_device *device, weft_buffer *const *buffers, int count);
    /* Submits all launches once. Before each submission it asks weft__gpu_gone. If device->timing, it also
     * records the time of each launch. */
    weft_status (*run)(weft_gpu_device *device, weft_gpu_executable *e);
    /* Writes the start and the end of each launch of the last timed run to e->clocked. */
    int (*read_times)(weft_gpu_device *device, weft_gpu_executable *e);
} weft_gpu_program_functions;

typedef struct weft_gpu_backend {
    weft_gpu_devices *devices;
    bool signals;        /* its drivers replace signal handlers, which opening restores (device/signals.h) */
    size_t device_bytes; /* size of the backend's own device struct */
    /* Errors of the API that tests ask for: an allocation failed, the device is lost. */
    int no_memory, lost;
    /* Fills in device->compiler, and then opens the context and the queues of device->found. If it fails,
     * `close` is called. Called without `enter`. */
    weft_status (*open)(weft_gpu_device *device, const weft_open_options *options);
    /* Waits for all work, before modules and memory of the device are freed. */
    void (*drain)(weft_gpu_device *device);
    /* Frees everything of `open`, as far as it was made. Called without `enter`. */
    void (*close)(weft_gpu_device *device);
    /* Make the device current in this thread, and restore what was current before. Nested pairs are allowed.
     * NULL: the API has no such state. */
    int (*enter)(weft_gpu_device *device);
    void (*leave)(weft_gpu_device *device);
    /* Returns what an error means, and writes its name. */
    weft_gpu_trouble (*explain)(weft_gpu_device *device, int error, char message[WEFT_GPU_MESSAGE]);
    /* Adds the launch of a command with its `call` if one of the backend's libraries replaces the template.
     * Otherwise it adds nothing. NULL: no library does. */
    weft_status (*offer)(weft_gpu_device *device, weft_launches *launches, const weft_command *command);
    const weft_gpu_memory_functions *memory;
    const weft_gpu_program_functions *program;
} weft_gpu_backend;

/* Staging: memory where uploads wait for the device, so that the caller need not wait. It is a ring of
 * pieces, the oldest first. */
enum { WEFT_GPU_RING_BYTES = 32 << 20, WEFT_GPU_RING_PIECES = 256 };
typedef struct weft_gpu_staging {
    bool opened;
    char *room; /* NULL: there is none */
    size_t head;
    struct {
        size_t from, to;
    } pieces[WEFT_GPU_RING_PIECES];
    int first, count;
    void *events[WEFT_GPU_RING_PIECES]; /* one for each piece */
} weft_gpu_staging;

/* An open device. A backend's own struct begins with it. */
struct weft_gpu_device {
    weft_device base;
    const weft_gpu_backend *backend;
    const weft_gpu_found *found;
    weft_target target;
    weft_tuner tuner;
    weft_gpu_compiler compiler;
    weft_gpu_staging staging;
    weft_gpu_paths paths;
    weft_gpu_buffer *faults; /* the fault record on the device */
    w_faults record;         /* as read when the host last waited */
    bool unseen;             /* work was submitted since then */
    bool timing;
    size_t guard; /* bytes of a guard, before and after each buffer */
    /* Scratch memory, and that of launches beside the others. All programs share it, since they run one after
     * the other. */
    weft_gpu_buffer *scratch[2];
    size_t scratch_bytes[2];
    uint64_t identities; /* given to buffers so far */
};

static inline weft_gpu_device *weft__gpu_of(weft_device *device) { return (weft_gpu_device *)device; }

/* ---- device.c ---- */

static inline int weft__gpu_enter(weft_gpu_device *device) {
    return device->backend->enter ? device->backend->enter(device) : 0;
}
static inline void weft__gpu_leave(weft_gpu_device *device) {
    if (device->backend->leave) device->backend->leave(device);
}

/* Reports that the API answered `error` to a request for `what`. The status is WEFT_ERR_OOM if memory is
 * short, otherwise WEFT_ERR_DEVICE. */
weft_status weft__gpu_fail(weft_gpu_device *device, int error, const char *what);
/* Reports that the host has no memory for `what`. */
weft_status weft__gpu_fail_oom(const weft_gpu_device *device, size_t bytes, const char *what);
/* Call it before each submission. Returns 0, or the error of a device that a test took away. */
int weft__gpu_gone(const weft_gpu_device *device);

/* Allocates memory of at least one byte, which does not count as memory in use. `what` stands in errors. */
weft_status weft__gpu_memory_new(weft_gpu_device *device, size_t bytes, const char *what,
                                 weft_gpu_buffer **buffer);
void weft__gpu_memory_free(weft_gpu_device *device, weft_gpu_buffer *buffer);
void weft__gpu_count_memory(weft_device *device, size_t more, size_t less);
/* Returns the free memory as far as it is known, for APIs that do not report it: on a card only this device's
 * buffers count. */
uint64_t weft__gpu_memory_left(weft_device *device);

/* ---- functions for weft_device_module, whose `backend` is a weft_gpu_backend: found.c, device.c ---- */

int weft__gpu_count(const weft_device_module *module);
void weft__gpu_describe(const weft_device_module *module, int i, weft_device_description *description);
weft_status weft__gpu_outline(const weft_device_module *module, weft_context *ctx, const char *selector,
                              weft_device_outline *outline);
/* Opens the device that the selector means. */
weft_status weft__gpu_open(const weft_device_module *module, weft_context *ctx, const char *selector,
                           const weft_open_options *options, weft_device **device);

/* ---- functions for weft_device_ops and weft_device_extras: device.c, transfer.c, executable.c ---- */

void weft__gpu_close(weft_device *device);
weft_status weft__gpu_check_dtype(weft_device *device, weft_dtype dtype);
bool weft__gpu_device_takes(weft_device *device, const weft_heavy *heavy);
weft_status weft__gpu_buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer);
void weft__gpu_buffer_free(weft_device *device, weft_buffer *buffer);

weft_status weft__gpu_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                             size_t bytes);
weft_status weft__gpu_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                               size_t bytes);
weft_status weft__gpu_download_all(weft_device *device, const weft_piece *pieces, size_t n);
weft_status weft__gpu_buffer_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
weft_status weft__gpu_synchronize(weft_device *device);
weft_status weft__gpu_take_fault(weft_device *device, weft_fault *fault);
/* Opens the staging memory at its first use. Frees it. */
void weft__gpu_staging_open(weft_gpu_device *device);
void weft__gpu_staging_close(weft_gpu_device *device);

weft_status weft__gpu_build(weft_device *device, const weft_commands *commands, weft_executable **executable);
void weft__gpu_executable_free(weft_device *device, weft_executable *executable);
weft_status weft__gpu_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                          int times);
bool weft__gpu_reads_rows(const weft_device *device, const weft_executable *executable);
weft_status weft__gpu_run_rows(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                               weft_rows rows, int times);
int weft__gpu_launches_of(const weft_executable *executable);
void weft__gpu_set_timing(weft_device *device, bool on);
const weft_timing *weft__gpu_timings(weft_device *device, const weft_executable *executable);

/* ---- the tables of every backend, which adds its name and what it does in its own way ---- */

#define WEFT_GPU_MODULE                                                                                      \
    .count = weft__gpu_count, .describe = weft__gpu_describe, .open = weft__gpu_open,                        \
    .outline = weft__gpu_outline

/* All but name, extras and takes. */
#define WEFT_GPU_OPS                                                                                         \
    .close = weft__gpu_close, .check_dtype = weft__gpu_check_dtype, .buffer_new = weft__gpu_buffer_new,      \
    .buffer_free = weft__gpu_buffer_free, .upload = weft__gpu_upload, .download = weft__gpu_download,        \
    .zero = weft__gpu_buffer_zero, .build = weft__gpu_build, .executable_free = weft__gpu_executable_free,   \
    .run = weft__gpu_run, .synchronize = weft__gpu_synchronize, .take_fault = weft__gpu_take_fault

/* All but memory_free, set_timing and what links cards. */
#define WEFT_GPU_EXTRAS                                                                                      \
    .launches_of = weft__gpu_launches_of, .reads_rows = weft__gpu_reads_rows,                                \
    .run_rows = weft__gpu_run_rows, .timings = weft__gpu_timings, .download_all = weft__gpu_download_all

#endif
