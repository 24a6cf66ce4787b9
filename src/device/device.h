/* The whole interface between Weft and an open device. A device sees kernels, heavy operations and commands.
 * It never sees nodes. To add a device, fill one weft_device_module (module.h).
 * Must not know: graphs, layers. Read next: module.h, registry.c, cpu/cpu.c. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include <weft/ops.h>
#include <weft/tensor.h>
#include "base/base.h"
#include "heavy/heavy.h"
#include "kernel/source.h"

typedef struct weft_device weft_device;

/* What made a value bad. The numbers are the same as in gpu/prelude/opencl.cl. compiler/runtime/program.c has
 * the status and the message of each kind. */
typedef enum weft_fault_kind {
    WEFT_FAULT_NONE,
    WEFT_FAULT_GATHER,
    WEFT_FAULT_DIVIDE, /* an integer divided by 0: value and bound are 0 */
    WEFT_FAULT_SCATTER,
    WEFT_FAULT_UPDATE,
    WEFT_FAULT_EXCHANGE, /* an exchange with other processes failed; the exchanger knows why */
    WEFT_FAULT_KINDS
} weft_fault_kind;

/* The first bad value since the last report. Later updates of the same run are skipped. */
typedef struct weft_fault {
    int set; /* written last, after all other fields */
    weft_fault_kind kind;
    const char *path;     /* path of the layer */
    int64_t value, bound; /* the index and its limit */
    int64_t element;      /* position in the index tensor */
} weft_fault;

/* ---- other processes ---- */

/* Exchanges numbers with other processes while a program runs. The commands of a program call it. */
typedef struct weft_exchanger weft_exchanger;
struct weft_exchanger {
    /* Prepares for programs with up to `count` exchanges. */
    weft_status (*reserve)(weft_exchanger *x, int count);
    /* Starts to add up `out` over all processes, and returns. If `what` has a part, adds up `in` and writes
     * the own part of the sum to `out`. If it gathers, copies `in` of all processes to `out`. The memory must
     * not be touched before `wait` has returned. Exchanges run in the order of their numbers. */
    void (*start)(weft_exchanger *x, const weft_heavy_exchange *what, const void *in, void *out);
    /* Waits for the end of the exchange. False: it failed. Call it once for each start. */
    bool (*wait)(weft_exchanger *x, int number);
    /* Fails with the reason why an exchange failed. */
    weft_status (*failed)(const weft_exchanger *x);
};

/* ---- links: devices of several processes that exchange data without the host ---- */

enum { WEFT_LINK_ID = 128, WEFT_LINK_NAME = 32, WEFT_LINK_REASON = 320 };

/* What a device tells the other processes before they are linked. */
typedef struct weft_link_offer {
    char library[WEFT_LINK_NAME];  /* that links them, with its version: "NCCL 2.28.3" */
    char card[WEFT_LINK_NAME];     /* what only this card of the machine has: its place on the bus */
    char reason[WEFT_LINK_REASON]; /* why the device cannot be linked, and what helps; "": it can be */
} weft_link_offer;

typedef struct weft_link weft_link;

/* Functions return NULL, or a message that lives until the next call in this thread. Transfers are submitted
 * to the device in order with its programs, and return before they are done. All processes must submit the
 * same transfers in the same order. Places and sizes are in bytes. */
typedef struct weft_link_functions {
    void (*offer)(weft_device *device, weft_link_offer *offer);
    /* Makes the identity of a new link. One process makes it, and tells it to all. */
    const char *(*identify)(weft_device *device, char id[WEFT_LINK_ID]);
    /* Begins to open a link. It is open when `test` says that this has ended. */
    const char *(*open)(weft_device *device, const char id[WEFT_LINK_ID], int rank, int size,
                        weft_link **link);
    /* Collects `bytes` bytes of which process i has part i, at from_at; the last parts may be shorter or
     * empty. The own part of `to` may be `from` itself. */
    const char *(*all_gather)(weft_link *link, weft_buffer *from, size_t from_at, weft_buffer *to,
                              size_t to_at, size_t part, size_t bytes);
    /* Tells whether the last call is submitted, so that a program may be submitted after it; done: whether
     * all submitted work of the device is done. */
    const char *(*test)(weft_link *link, bool done, bool *ended);
    /* Tells whether exchange `number` of the program that was submitted last has begun, or has ended. */
    const char *(*test_exchange)(weft_link *link, int number, bool end, bool *is);
    /* Adds up how long the first `count` exchanges of this program took, and how long it waited for them, in
     * seconds. All of them have ended. */
    void (*exchange_times)(weft_link *link, int count, double *took, double *waited);
    /* broken: ends transfers that other processes never make. Programs that were submitted then update
     * nothing. */
    void (*close)(weft_link *link, bool broken);
} weft_link_functions;

/* The processes to which a device is linked. Programs of such a device exchange by themselves, beside their
 * other launches, and call these functions when they are submitted. */
typedef struct weft_linked weft_linked;
struct weft_linked {
    weft_link *link; /* NULL: it was given up */
    int rank, size;
    /* Prepares for the next exchange of a program. */
    weft_status (*begin)(weft_linked *linked, const weft_heavy_exchange *exchange);
    /* Waits until a transfer is submitted. error: what submitted it returned. */
    weft_status (*submitted)(weft_linked *linked, const char *error);
    /* Waits for the end of all exchanges of the program that was submitted last. */
    weft_status (*ended)(weft_linked *linked, int count);
    /* Fails with the reason why an exchange failed. */
    weft_status (*failed)(const weft_linked *linked);
};

/* ---- programs ---- */

/* The place of an operand: byte `offset` in the buffer that is bound to `slot`. Slot 0 is the program's
 * arena. */
typedef struct weft_operand {
    int slot;
    int64_t offset;
} weft_operand;

typedef enum weft_command_kind {
    WEFT_COMMAND_KERNEL,
    WEFT_COMMAND_HEAVY,
    WEFT_COMMAND_COPY,
    WEFT_COMMAND_ZERO,
    WEFT_COMMAND_WAIT /* for the end of an exchange */
} weft_command_kind;

typedef struct weft_command {
    weft_command_kind kind;
    bool sink;  /* changes a variable: skipped once a fault is recorded */
    bool after; /* must wait for all commands before it; false: independent of all commands since the last
                   `after` */
    const weft_kernel *kernel; /* KERNEL */
    weft_heavy heavy;          /* HEAVY; WAIT: the exchange */
    int64_t bytes;             /* COPY (operands: from, to), ZERO (operand: to) */
    int n_operands;
    weft_operand *operands;
} weft_command;

typedef struct weft_commands {
    int count, n_slots;
    weft_command *list;
    int scalars; /* the slot of the numbers that change from run to run */
    /* Bytes of slot 0 that the commands use, whose content nobody reads before or after a run, so that the
     * device may keep it elsewhere. 0: somebody does. */
    int64_t arena_bytes;
} weft_commands;

/* Where runs read their scalars: run i reads row `first` + i of the buffer, each of `bytes` bytes. */
typedef struct weft_rows {
    int first;
    size_t bytes; /* 0: all runs read row 0 */
} weft_rows;
enum {
    WEFT_ROWS = 64
}; /* and the most runs in one launch: cards that also draw the screen stop kernels that run for seconds */

typedef struct weft_executable weft_executable; /* a program in the form that the device runs */

/* Start and end of one command in the last run, in nanoseconds, for the profile. */
typedef struct weft_timing {
    double start_ns, end_ns;
} weft_timing;

/* A description of a device for plans. The device need not be open, and it may even be absent. The device
 * null makes such plans when it opens as "null:as:opencl" and the like. */
typedef struct weft_device_outline {
    char name[32], detail[400]; /* name: of the card, if there is one */
    bool absent;                /* the outline stands for any device of this kind; the machine has none */
    uint64_t memory;            /* bytes; 0: unknown */
    bool launches;              /* the commands become kernel launches for `target` */
    bool links;                 /* a library may link it to the devices of other processes */
    weft_target target;
    bool (*takes)(const weft_target *target, const weft_heavy *heavy);
    /* Adds the launch of a library that computes the command, or nothing. NULL: there are no libraries. */
    weft_status (*offer)(const struct weft_device_outline *outline, weft_launches *launches,
                         const weft_command *command);
    const struct weft_card *card; /* prices launches (gpu/card/card.h); NULL: unknown */
} weft_device_outline;

/* Bytes of a buffer, from `offset` on, that go to the host. */
typedef struct weft_piece {
    const weft_buffer *from;
    size_t offset;
    void *to;
    size_t bytes;
} weft_piece;

/* Functions that a device may leave out. Each comment gives the default for NULL. Call them by
 * weft__device_NAME (extras.c). */
typedef struct weft_device_extras {
    /* Returns how many bytes buffers may still take. NULL: 0, unknown. */
    uint64_t (*memory_free)(weft_device *device);
    /* Returns the number of host threads that run a program. NULL: 0. */
    int (*threads_of)(const weft_executable *executable);
    /* Returns the number of kernel launches of one run. NULL: 0, the host computes. */
    int (*launches_of)(const weft_executable *executable);
    /* reads_rows tells whether the next run can read its scalars from rows. run_rows is like run, for such a
     * program; `first` and `times` add up to at most WEFT_ROWS. NULL: all runs read row 0. */
    bool (*reads_rows)(const weft_device *device, const weft_executable *executable);
    weft_status (*run_rows)(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                            weft_rows rows, int times);
    /* set_timing switches the timing of commands on or off. timings returns the timings of the last run,
     * which the executable owns. NULL: there are no timings. */
    void (*set_timing)(weft_device *device, bool on);
    const weft_timing *(*timings)(weft_device *device, const weft_executable *executable);
    /* All-reduce: adds up the first `count` elements, f32 or f64, of all n buffers, and stores the sums in
     * each of them. buffers[i] belongs to devices[i]. *done is false if these devices cannot do it. NULL:
     * none can. */
    weft_status (*sum)(weft_device *const *devices, weft_buffer *const *buffers, size_t n, weft_dtype dtype,
                       size_t count, bool *done);
    /* Links the device to those of other processes. NULL: it cannot. */
    const weft_link_functions *links;
    /* Downloads all n pieces, and waits only once. NULL: they are downloaded one after the other. */
    weft_status (*download_all)(weft_device *device, const weft_piece *pieces, size_t n);
    /* Fills in what the card reports about itself. All fields are NaN before the call. Returns false if the
     * card cannot be asked. A thread other than the device's may call it. NULL: the device reports
     * nothing. */
    bool (*telemetry)(const weft_device *device, weft_telemetry *telemetry);
} weft_device_extras;

/* Functions that every open device must have. */
typedef struct weft_device_ops {
    const char *name;                 /* name of the kind, such as "opencl" */
    const weft_device_extras *extras; /* NULL: all defaults */
    void (*close)(weft_device *device);
    /* Returns an error that names the dtype if the device does not support it. */
    weft_status (*check_dtype)(weft_device *device, weft_dtype dtype);
    weft_status (*buffer_new)(weft_device *device, size_t bytes, weft_buffer **buffer);
    void (*buffer_free)(weft_device *device, weft_buffer *buffer);
    weft_status (*upload)(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes);
    weft_status (*download)(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes);
    /* Sets bytes to 0. */
    weft_status (*zero)(weft_device *device, weft_buffer *to, size_t offset, size_t bytes);
    /* Returns true if the device runs this heavy operation itself. */
    bool (*takes)(weft_device *device, const weft_heavy *heavy);
    /* Compiles the commands. The commands must outlive the executable. */
    weft_status (*build)(weft_device *device, const weft_commands *commands, weft_executable **executable);
    void (*executable_free)(weft_device *device, weft_executable *executable);
    /* Submits `times` repetitions of the program. buffers[i] is bound to slot i. It may return before the
     * work is done. */
    weft_status (*run)(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                       int times);
    /* Waits until all submitted work is done. */
    weft_status (*synchronize)(weft_device *device);
    /* Waits for the work, then moves the recorded fault to *fault. fault->set is 0 if there is none. */
    weft_status (*take_fault)(weft_device *device, weft_fault *fault);
} weft_device_ops;

/* A choice that the device made by measuring variants which compute the same result. */
enum { WEFT_CHOICE_BYTES = 96 };
typedef struct weft_tile_choice {
    char what[64], chosen[32];
    double gain;   /* speed relative to the variant that would have been used otherwise */
    weft_hash key; /* hash of the question, the device and its driver */
    unsigned char kept[WEFT_CHOICE_BYTES]; /* the answer, in the tuner's format */
    size_t bytes;
} weft_tile_choice;

/* Devices embed this as their first member. */
struct weft_device {
    const weft_device_ops *ops;
    weft_context *ctx;
    /* the specification that opens it again, such as "opencl:1" */
    const char *name;
    /* a run returns before its work is done; the host takes faults when it waits anyway */
    bool asynchronous;
    /* an upload can go on while a run reads other buffers; also of a device that only plans for such a one */
    bool overlaps;
    bool plans_links; /* only plans, for a device that a library may link to those of other processes */
    /* computes nothing: nobody reads the values of its buffers, so weights need not be drawn */
    bool computes_nothing;
    /* host threads for the work that the host does for the device; 0 counts as 1 */
    int threads;
    /* asynchronous devices: the value of weft__forks() when the device was opened */
    int forks;
    uint64_t bytes_in_use, bytes_peak;
    bool tf32; /* matmuls of f32 may round their operands to TF32 */
    /* long reductions are split into as many blocks as a large card needs; a property of the kind of device,
     * since the blocks change the bits */
    bool many_blocks;
    int buffers_most;   /* buffers that a kernel can read and write; 0: any number */
    uint64_t workspace; /* the part of bytes_in_use that kernels need in addition to their operands */
    weft_tile_choice *choices;
    int n_choices;
    /* choices of an earlier process; they take precedence over those on disk */
    const weft_tile_choice *given;
    int n_given;
    /* What programs exchange with, in memory of the host or by a link. NULL: there are no other processes. */
    weft_exchanger *exchanger;
    weft_linked *linked;
    /* counters for profiles and tests; the compiler's calls increment them */
    uint64_t uploads, downloads, submissions;
    uint64_t bytes_up, bytes_down;
};

/* extras.c: each function calls the device's own function, or returns the default. */
uint64_t weft__device_memory_free(weft_device *device);
int weft__device_threads_of(const weft_device *device, const weft_executable *executable);
int weft__device_launches_of(const weft_device *device, const weft_executable *executable);
/* Tells whether programs of the device may read rows; whether the next run of this one can. */
bool weft__device_has_rows(const weft_device *device);
bool weft__device_reads_rows(const weft_device *device, const weft_executable *executable);
void weft__device_set_timing(weft_device *device, bool on);
const weft_timing *weft__device_timings(weft_device *device, const weft_executable *executable);
weft_status weft__device_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                             weft_dtype dtype, size_t count, bool *done);
const weft_link_functions *weft__device_links(const weft_device *device);
weft_status weft__device_download_all(weft_device *device, const weft_piece *pieces, size_t n);
bool weft__device_telemetry(const weft_device *device, weft_telemetry *telemetry);

/* registry.c */
/* Copies the next entry of a comma-separated list to `spec`, without spaces around it. Returns false at the
 * end. */
bool weft__device_next(const char **list, char *spec, size_t size);
/* Returns false if the machine shows no sign of a graphics card. Then no driver needs to be loaded to look
 * for one. */
bool weft__device_cards(void);
/* Opens a device by its specification:
 *     "cpu", "opencl"            the first device of a kind
 *     "opencl:1", "opencl:NAME"  one of several devices of a kind
 *     "gpu"                      the first graphics card
 *     "auto"                     the first graphics card, else the cpu
 *     "cuda,opencl,cpu"          the first of the list that opens
 *
 * For a list, a warning says why earlier entries did not open. A single device that does not open is an
 * error. The message names the devices that exist. A caller that knows the program asks weft_profile_choose
 * before it opens "auto". */
weft_status weft__device_open(weft_context *ctx, const char *spec, const weft_open_options *options,
                              weft_device **device);
/* Returns an error in a child of fork if the parent opened the device, since the driver does not work there.
 * The cpu device works in a child. */
weft_status weft__device_usable(const weft_device *device);
/* Returns why a driver cannot be used any more, or NULL if it can. `forks` is the value of weft__forks() when
 * the driver was loaded. */
const char *weft__device_forked(int forks);
/* Outlines a device by its specification, in the same syntax. */
weft_status weft__device_outline_of(weft_context *ctx, const char *spec, weft_device_outline *outline);
/* Outlines a card that is described. The card must outlive the outline. */
void weft__device_outline_card(const struct weft_card *card, weft_device_outline *outline);

#endif
