/* The whole interface between Weft and a device. A device sees kernels, heavy operations and commands; it
 * never sees nodes. Adding a device is filling one weft_device_ops and one line in registry.c. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include <weft/ops.h>
#include <weft/tensor.h>
#include "base/base.h"
#include "heavy/heavy.h"
#include "kernel/source.h"

typedef struct weft_device weft_device;

/* Memory of a device. Devices embed this as their first member. */
typedef struct weft_buffer {
    size_t bytes;
    void *host; /* where the host may touch the memory directly, else NULL */
    bool zero;  /* fresh from the system: all bytes are 0, and not in memory yet */
} weft_buffer;

/* What a bad value is; numbers as in gpu/prelude/opencl.cl. compiler/runtime/program.c has status and text.
 */
typedef enum weft_fault_kind {
    WEFT_FAULT_NONE,
    WEFT_FAULT_GATHER,
    WEFT_FAULT_DIVIDE, /* an integer by 0: value and bound are 0 */
    WEFT_FAULT_SCATTER,
    WEFT_FAULT_UPDATE,
    WEFT_FAULT_KINDS
} weft_fault_kind;

/* The first bad value that the work since the last report met. Updates that follow in the same run are not
 * applied. */
typedef struct weft_fault {
    int set; /* written last */
    weft_fault_kind kind;
    const char *path;     /* layer */
    int64_t value, bound; /* the index and its limit */
    int64_t element;      /* which element of the index tensor */
} weft_fault;

/* ---- programs ---- */

/* Where an operand lies: byte `offset` in the buffer bound to `slot`. Slot 0 is the program's arena. */
typedef struct weft_operand {
    int slot;
    int64_t offset;
} weft_operand;

typedef enum weft_command_kind {
    WEFT_COMMAND_KERNEL,
    WEFT_COMMAND_HEAVY,
    WEFT_COMMAND_COPY,
    WEFT_COMMAND_ZERO
} weft_command_kind;

typedef struct weft_command {
    weft_command_kind kind;
    bool sink;  /* changes a variable: skipped once a fault is recorded */
    bool after; /* must wait for all commands before it; false: independent of those since the last `after` */
    const weft_kernel *kernel; /* KERNEL */
    weft_heavy heavy;          /* HEAVY */
    int64_t bytes;             /* COPY (operands: from, to), ZERO (operand: to) */
    int n_operands;
    weft_operand *operands;
} weft_command;

typedef struct weft_commands {
    int count, n_slots;
    weft_command *list;
} weft_commands;

typedef struct weft_executable weft_executable; /* a device's form of a program */

/* Nanoseconds of one command in the last run, for the profile. */
typedef struct weft_timing {
    double start_ns, end_ns;
} weft_timing;

/* What programs are made for on a device that need not be open, nor even be there: for plans, which the
 * device "null:as:opencl" and the like makes. */
typedef struct weft_device_outline {
    char name[32], detail[400];
    bool absent;     /* it stands for devices of the kind: none is here */
    uint64_t memory; /* bytes; 0: not known */
    bool launches;   /* its commands are launches for `target` */
    weft_target target;
    bool (*takes)(const weft_target *target, const weft_heavy *heavy);
} weft_device_outline;

/* What a device may offer besides. NULL has the default that stands here; ask by weft__device_NAME
 * (extras.c). */
typedef struct weft_device_extras {
    /* How many devices of the kind there are; 1 where describe tells why there is none. NULL: there is one.
     */
    int (*count)(void);
    /* Describes a device for plans, opening nothing. NULL: not for this kind. */
    weft_status (*outline)(weft_context *ctx, const char *selector, weft_device_outline *outline);
    /* Bytes that buffers may yet take. NULL: 0, not known. */
    uint64_t (*memory_free)(weft_device *device);
    /* How many threads of the host run a program. NULL: 0. */
    int (*threads_of)(const weft_executable *executable);
    /* How many launches of kernels a run is. NULL: 0, the host computes. */
    int (*launches_of)(const weft_executable *executable);
    /* Switches timing of the commands on or off; their timings in the last run. NULL: there are none. */
    void (*set_timing)(weft_device *device, bool on);
    const weft_timing *(*timings)(weft_device *device, const weft_executable *executable);
    /* Makes the first `count` elements of buffers[i], of devices[i], the sum of all n; f32 or f64. *done:
     * false where these devices cannot. NULL: none can. */
    weft_status (*sum)(weft_device *const *devices, weft_buffer *const *buffers, size_t n, weft_dtype dtype,
                       size_t count, bool *done);
    /* Fills in what the card says of itself, which is all NaN before; false: it cannot be asked. May be
     * called by another thread than the device's. NULL: it cannot. */
    bool (*gauges)(const weft_device *device, weft_gauges *gauges);
} weft_device_extras;

/* What every device must have. */
typedef struct weft_device_ops {
    const char *name;                 /* of the kind: "opencl" */
    const weft_device_extras *extras; /* NULL: none */
    /* Fills in what device i is or why it is absent; never fails. */
    void (*describe)(int i, weft_device_description *description);
    /* selector: what stands behind "opencl:" in the specification, "" where nothing does. */
    weft_status (*open)(weft_context *ctx, const char *selector, const weft_open_options *options,
                        weft_device **device);
    void (*close)(weft_device *device);
    /* Refuses, by name, a dtype that the device lacks. */
    weft_status (*check_dtype)(weft_device *device, weft_dtype dtype);
    weft_status (*buffer_new)(weft_device *device, size_t bytes, weft_buffer **buffer);
    void (*buffer_free)(weft_device *device, weft_buffer *buffer);
    weft_status (*upload)(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes);
    weft_status (*download)(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes);
    /* Makes bytes 0. */
    weft_status (*zero)(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
    /* True when the device runs this heavy operation itself. */
    bool (*takes)(weft_device *device, const weft_heavy *heavy);
    /* Compiles the commands, which stay alive with the executable. */
    weft_status (*build)(weft_device *device, const weft_commands *commands, weft_executable **executable);
    void (*executable_free)(weft_device *device, weft_executable *executable);
    /* Submits one run, and need not wait for it; buffers[i] is bound to slot i. Repeats it `times` times. */
    weft_status (*run)(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                       int times);
    /* Waits until all submitted work is done. */
    weft_status (*synchronize)(weft_device *device);
    /* Moves the recorded fault out; fault->set is 0 when there is none. Waits for the work. */
    weft_status (*take_fault)(weft_device *device, weft_fault *fault);
} weft_device_ops;

/* What a device found out by measuring, of ways that compute the same. */
enum { WEFT_CHOICE_BYTES = 96 };
typedef struct weft_tile_choice {
    char what[64], chosen[32];
    double gain;                           /* times as fast as what it would have taken otherwise */
    weft_hash key;                         /* of the question, the device and its driver, */
    unsigned char kept[WEFT_CHOICE_BYTES]; /* and the answer, as the tuner keeps it */
    size_t bytes;
} weft_tile_choice;

/* Devices embed this as their first member. */
struct weft_device {
    const weft_device_ops *ops;
    weft_context *ctx;
    const char *name; /* what opens it again: "opencl:1" */
    bool
        asynchronous; /* a run returns before its work is done: faults are taken when the host waits anyway */
    int threads;      /* of the host, for what the host does for it; 0 counts as 1 */
    int forks;        /* of an asynchronous one: weft__forks() when it was opened */
    uint64_t bytes_in_use, bytes_peak;
    bool tf32;          /* products of f32 may round what they multiply to TF32 */
    uint64_t workspace; /* of these what kernels need besides their operands */
    weft_tile_choice *choices;
    int n_choices;
    const weft_tile_choice *given; /* choices of an earlier process, which count more than what is on disk */
    int n_given;
    /* counted by the compiler's calls, for profile and tests */
    uint64_t uploads, downloads, submissions;
    uint64_t bytes_up, bytes_down;
};

/* extras.c: what a device offers besides, or the default */
int weft__device_count(const weft_device_ops *kind);
uint64_t weft__device_memory_free(weft_device *device);
int weft__device_threads_of(const weft_device *device, const weft_executable *executable);
int weft__device_launches_of(const weft_device *device, const weft_executable *executable);
void weft__device_set_timing(weft_device *device, bool on);
const weft_timing *weft__device_timings(weft_device *device, const weft_executable *executable);
weft_status weft__device_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                             weft_dtype dtype, size_t count, bool *done);
bool weft__device_gauges(const weft_device *device, weft_gauges *gauges);

/* registry.c */
int weft__device_kinds(void);
const weft_device_ops *weft__device_kind(int i);
/* The next of a list, without spaces around it; false at its end. */
bool weft__device_next(const char **list, char *spec, size_t size);
/* False where the machine shows no sign of a graphics card, so that no driver need be loaded to look for one.
 */
bool weft__device_cards(void);
/* Opens by specification: a kind ("cpu", "opencl"), one of several ("opencl:1", "opencl:NAME"), "gpu" (the
 * first card), "auto" (that, or the cpu; who knows the program asks weft_profile_choose before), or a list of
 * which the first that opens is taken ("cuda,opencl,cpu"), with a warning that says why the others are not. A
 * device named alone is that or an error, which names what there is. */
weft_status weft__device_open(weft_context *ctx, const char *spec, const weft_open_options *options,
                              weft_device **device);
/* An error in a child of fork, where the driver of a device that the parent opened does not work. The cpu
 * does. */
weft_status weft__device_usable(const weft_device *device);
/* Why a driver that was loaded when weft__forks() was `forks` cannot be used any more; NULL where it can. */
const char *weft__device_forked(int forks);
/* Outlines by specification, as above. */
weft_status weft__device_outline_of(weft_context *ctx, const char *spec, weft_device_outline *outline);
extern const weft_device_ops weft__device_cpu, weft__device_cuda, weft__device_opencl, weft__device_null,
    weft__device_interp;

#endif
