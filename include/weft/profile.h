/* Measures where the time of a context goes: in kernels, matmuls and attention, in the stages of a training
 * step, and on the host. Each entry has a time, floating-point operations and bytes. */
#ifndef WEFT_PROFILE_H
#define WEFT_PROFILE_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_profile weft_profile;

/* The stage of a training step in which a node was recorded. A kernel fused from several stages counts as
 * the stage of most of its calculations. */
#define WEFT_STAGE_LIST(X)                                                                                   \
    X(FORWARD, "forward")                                                                                    \
    X(LOSS, "loss")                                                                                          \
    X(BACKWARD, "backward")                                                                                  \
    X(OPTIMIZER, "optimizer")

typedef enum weft_stage {
#define WEFT_STAGE_ENUM_(name, text) WEFT_STAGE_##name,
    WEFT_STAGE_LIST(WEFT_STAGE_ENUM_)
#undef WEFT_STAGE_ENUM_
        WEFT_STAGE_COUNT
} weft_stage;

/* The name of a stage: "forward" and so on. */
WEFT_API const char *weft_stage_name(weft_stage stage);

/* The kind of work: those for which devices have their own methods, and the rest. */
#define WEFT_WORK_LIST(X)                                                                                    \
    X(MATMUL, "matmul")                                                                                      \
    X(ATTENTION, "attention")                                                                                \
    X(CONVOLUTION, "convolution")                                                                            \
    X(EXCHANGE, "exchange")   /* with other processes: the time in which the device waits for its end */     \
    X(OTHER, "other kernels") /* also copies, and everything else that the device does */

typedef enum weft_work {
#define WEFT_WORK_ENUM_(name, text) WEFT_WORK_##name,
    WEFT_WORK_LIST(WEFT_WORK_ENUM_)
#undef WEFT_WORK_ENUM_
        WEFT_WORK_COUNT
} weft_work;

/* The name of a kind of work: "matmul" and so on. */
WEFT_API const char *weft_work_name(weft_work work);

/* The work of one run of a program, counted from its plan. */
typedef struct weft_program_work {
    uint64_t launches; /* kernel launches on a GPU, each a node of its graph; 0: the host computes */
    uint64_t commands[WEFT_WORK_COUNT];
    double flops[WEFT_WORK_COUNT], bytes[WEFT_WORK_COUNT]; /* as in weft_profile_entry */
} weft_program_work;

typedef struct weft_profile_options {
    int every;  /* time the commands of every N-th run of a program; 0: of every run. Timed runs are slower,
                   because their commands do not overlap */
    bool trace; /* record events for weft_profile_trace */
} weft_profile_options;

/* One kind of command in one layer. */
typedef struct weft_profile_entry {
    const char *name; /* "matmul f32 1x 12x128x64 nn", "map_mul_add"; lives as long as the profile */
    const char *path; /* layer, "" outside of all layers */
    weft_stage stage;
    weft_work work;
    uint64_t calls;      /* timed calls */
    double seconds;      /* of all timed calls; also the next three */
    double flops, bytes; /* operations; bytes that are moved if no cache holds them */
    double bound;        /* shortest possible time by the machine's peak rates; 0: not measured */
    weft_dtype dtype;    /* of a matmul or attention, whose rate gives the bound; otherwise f32 */
} weft_profile_entry;

/* All time between start and stop, in seconds. The parts add up to the total. If only some runs are timed,
 * the time of a program's other runs is divided in the same proportions. */
typedef struct weft_profile_times {
    double work[WEFT_WORK_COUNT]; /* time of the device, and of the host waiting for it */
    double data;                  /* host: making batches */
    double transfer;              /* transfers to the device and back */
    double waiting;               /* waiting for the thread that makes batches */
    double exchange;              /* adding up gradients of several devices or processes, on the host */
    double compile;
    double host; /* everything else: recording, program lookup, the caller's own code */
    double total;
    double stage[WEFT_STAGE_COUNT]; /* the device's time again, by stage */
    uint64_t runs, timed;           /* runs of programs, and timed ones */
    double upload, download;        /* the parts of transfer: host to device, device to host */
    double context;                 /* time to open the device; not in total */
    double busy; /* the part of total in which the device was computing, from the timed runs */
    uint64_t bytes_in_use, bytes_peak; /* device memory, now and at its peak */
    uint64_t uploads, downloads;       /* number of transfers in each direction */
    uint64_t submissions; /* programs submitted to the device; repetitions in one call count once */
} weft_profile_times;

/* Starts to profile the context. options may be NULL. A context has at most one profile at a time. Without
 * a profile there is no cost. */
WEFT_API WEFT_CHECKED weft_status weft_profile_start(weft_context *ctx, const weft_profile_options *options,
                                                     weft_profile **profile);
/* Stops profiling. The collected data stays readable. Stopping twice is allowed. */
WEFT_API void weft_profile_stop(weft_profile *profile);
/* Stops and frees the profile. Call it before weft_close. NULL is allowed. */
WEFT_API void weft_profile_free(weft_profile *profile);

/* Measures the device's peak rates. Entries have a bound from then on.
 * - *flops: operations a second in large f32 matmuls. Other dtypes are measured too if the profile has
 *   matmuls in them.
 * - *bytes: bytes a second, read and written, when changing memory in place. The memory is as large as what
 *   the context holds, between 64 MiB and 1 GiB.
 *
 * This takes a fraction of a second, which does not count as profiled time. The rates are stored with the
 * compiled kernels. */
WEFT_API WEFT_CHECKED weft_status weft_profile_peaks(weft_profile *profile, double *flops, double *bytes);

/* The device that finishes the work soonest. */
typedef struct weft_device_choice {
    char device[64];  /* name for weft_open_options.device */
    double seconds;   /* predicted time of the profiled work on this device */
    char prices[320]; /* "cpu 0.021 ms, opencl:0 0.13 ms" */
} weft_device_choice;

/* Predicts the time of the profiled work on each device of a list, and names the fastest device. "auto" or
 * NULL: the cpu and the graphics cards.
 *
 * The prediction multiplies the operations, bytes, commands, transfers and submissions by rates that were
 * sampled on each device. Sampling takes a tenth of a second per device, once; the result is stored with
 * the compiled kernels. Only devices of the list are sampled.
 *
 * The profile may come from a context on the device "null", which plans a step in full and computes
 * nothing. So build the model there, run one step, and open the device that this function returns. */
WEFT_API WEFT_CHECKED weft_status weft_profile_choose(const weft_profile *profile, const char *devices,
                                                      weft_device_choice *choice);

/* The entries, longest time first; NULL if memory is short. Valid until the next call. */
WEFT_API const weft_profile_entry *weft_profile_entries(weft_profile *profile, size_t *count);
WEFT_API void weft_profile_total(const weft_profile *profile, weft_profile_times *times);

/* Writes the table of entries into buffer, at most `size` bytes with the NUL: microseconds and calls per
 * step, for `steps` steps. Layers that differ only in a number share a row. Returns the length of the whole
 * text, or -1 on failure. */
WEFT_API int64_t weft_profile_text(weft_profile *profile, uint64_t steps, char *buffer, size_t size);

/* Writes the trace as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open. */
WEFT_API WEFT_CHECKED weft_status weft_profile_trace(const weft_profile *profile, const char *path);

#ifdef __cplusplus
}
#endif
#endif
