/* Where the time of a context goes: each kernel, matrix product and attention with its time, floating-point
 * operations and bytes, the parts of a training step, and what the host does besides. */
#ifndef WEFT_PROFILE_H
#define WEFT_PROFILE_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_profile weft_profile;

/* The part of a training step in which something was recorded. A kernel that was fused of several counts as
 * the one that most of its calculations belong to. */
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

/* "forward" and so on. */
WEFT_API const char *weft_stage_name(weft_stage stage);

/* What is done, as far as a device has ways of its own to do it. */
#define WEFT_WORK_LIST(X)                                                                                    \
    X(MATMUL, "matmul")                                                                                      \
    X(ATTENTION, "attention")                                                                                \
    X(CONVOLUTION, "convolution")                                                                            \
    X(OTHER, "other kernels") /* and copies, everything else that the device does */

typedef enum weft_work {
#define WEFT_WORK_ENUM_(name, text) WEFT_WORK_##name,
    WEFT_WORK_LIST(WEFT_WORK_ENUM_)
#undef WEFT_WORK_ENUM_
        WEFT_WORK_COUNT
} weft_work;

/* "matmul" and so on. */
WEFT_API const char *weft_work_name(weft_work work);

/* What one run of a program is, counted from its plan. */
typedef struct weft_program_work {
    uint64_t launches; /* of kernels on a card, each of which is a node of its graph; 0: the host computes */
    uint64_t commands[WEFT_WORK_COUNT];
    double flops[WEFT_WORK_COUNT], bytes[WEFT_WORK_COUNT]; /* as in weft_profile_entry */
} weft_program_work;

typedef struct weft_profile_options {
    int every; /* time the commands of every so-manieth run of a program; 0: of all. A timed run is slower, as
                * its commands do not overlap */
    bool trace; /* keep what happened when, for weft_profile_trace */
} weft_profile_options;

/* One kind of command in one layer. */
typedef struct weft_profile_entry {
    const char *name; /* "matmul f32 1x 12x128x64 nn", "map_mul_add"; it lives as long as the profile */
    const char *path; /* layer, "" outside of all */
    weft_stage stage;
    weft_work work;
    uint64_t calls;      /* timed ones */
    double seconds;      /* of all of them, as are the next three */
    double flops, bytes; /* what must be computed, and moved where nothing stays in a cache */
    double bound;        /* the least seconds by the machine's peaks; 0: not measured */
    weft_dtype dtype;    /* of a product or of attention, by whose rate it is bound; else f32 */
} weft_profile_entry;

/* Everything between start and stop, in seconds; the parts add up to the whole. Where only some runs are
 * timed, the time of a program's other runs is divided as theirs was. */
typedef struct weft_profile_times {
    double work[WEFT_WORK_COUNT]; /* the device's, and the host's waiting for it */
    double data;                  /* the host's: making batches */
    double transfer;              /* to the device and back */
    double waiting;               /* for the thread that makes batches */
    double compile;
    double host; /* everything else: recording, looking up, the caller's own */
    double total;
    double stage[WEFT_STAGE_COUNT]; /* the device's time again, by stage */
    uint64_t runs, timed;           /* of programs */
    double upload, download;        /* the parts of transfer: host to device, device to host */
    double context;                 /* opening the device took; not in total */
    double busy;                    /* the part of total that the device was computing, by the timed runs */
    uint64_t bytes_in_use, bytes_peak; /* of the device's memory */
    uint64_t uploads, downloads;       /* how many pieces went either way */
    uint64_t submissions;              /* programs given to the device; repetitions in one call count once */
} weft_profile_times;

/* Begins to profile the context; options may be NULL. One profile a context at a time. Costs nothing before
 * and after. */
WEFT_API WEFT_CHECKED weft_status weft_profile_start(weft_context *ctx, const weft_profile_options *options,
                                                     weft_profile **profile);
/* Ends it: what was collected stays readable. Stopping twice is fine. */
WEFT_API void weft_profile_stop(weft_profile *profile);
/* Frees it, stopping it first; to be called before weft_close. NULL is fine. */
WEFT_API void weft_profile_free(weft_profile *profile);

/* What the device reaches in large products of f32 (operations a second; of other dtypes as well where the
 * profile has products in them) and in changing, in place, as much memory as the context holds, 64 MiB to 1
 * GiB (bytes a second, read and written): entries have a bound then. Measured in a fraction of a second, kept
 * with the compiled kernels, and not counted as time. */
WEFT_API WEFT_CHECKED weft_status weft_profile_peaks(weft_profile *profile, double *flops, double *bytes);

/* Where the work is done soonest. */
typedef struct weft_device_choice {
    char device[64];  /* to be opened by this name */
    double seconds;   /* that the profiled work takes there, by its price */
    char prices[320]; /* "cpu 0.021 ms, opencl:0 0.13 ms" */
} weft_device_choice;

/* Prices what was profiled (operations, bytes, commands, transfers, submissions) on each device of a list, by
 * what each was found to take for samples of them, and names the cheapest; "auto" or NULL: the cpu and the
 * graphics cards. Sampling a device takes a tenth of a second once, is kept with the compiled kernels, and is
 * not done for others. The profile may be one of a context on the device "null", which plans a step in full
 * and computes nothing: build the model there, run one step of it, and open the device that is chosen. */
WEFT_API WEFT_CHECKED weft_status weft_profile_choose(const weft_profile *profile, const char *devices,
                                                      weft_device_choice *choice);

/* The entries, those that took longest first; NULL when memory is gone. They live until the next call. */
WEFT_API const weft_profile_entry *weft_profile_entries(weft_profile *profile, size_t *count);
WEFT_API void weft_profile_total(const weft_profile *profile, weft_profile_times *times);

/* Writes the table of entries into buffer, at most `size` bytes with the NUL: microseconds and calls of each
 * of `steps` steps. Layers that differ only in a number are one row. Returns the whole length, -1 on failure.
 */
WEFT_API int64_t weft_profile_text(weft_profile *profile, uint64_t steps, char *buffer, size_t size);

/* Writes the trace as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open. */
WEFT_API WEFT_CHECKED weft_status weft_profile_trace(const weft_profile *profile, const char *path);

#ifdef __cplusplus
}
#endif
#endif
