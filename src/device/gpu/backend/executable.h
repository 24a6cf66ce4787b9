/* A built program, as all GPU backends share it. A backend's own struct begins with it.
 * Must not know: OpenCL, CUDA. Read next: executable.c, program.h, docs/design/017-shared-gpu-backend.md. */
#ifndef WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H
#define WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H

#include "device/gpu/backend/backend.h"

/* A launch, as backends submit it. */
struct weft_gpu_launch {
    void *kernel;                 /* of the API; NULL if there is a call */
    const struct weft_call *call; /* a library call in place of a kernel */
    size_t groups[3], items[3] /* of a group */, all_items[3] /* of all groups */;
    int shared_bytes; /* of a group, in addition to what the source declares */
    void **arguments; /* pointers to the values, which stay where they are */
    size_t *argument_bytes;
    /* The order that the plan requires, for backends that submit a program as a graph. */
    bool follows; /* waits only for the launch before it, of the same command */
    bool after; /* waits for all launches before it; otherwise independent of all since the last one that does
                 */
    bool scratch; /* uses the device's scratch memory, which others use, too */
    bool beside;  /* see weft_launch */
};

/* Argument `index` of a launch is the buffer in `slot`. For a call of a library it begins at byte
 * `offset`. */
typedef struct weft_gpu_place {
    int slot, launch, index;
    int64_t offset;
} weft_gpu_place;

/* The start and end of one launch of command `command`. */
typedef struct weft_gpu_time {
    int command;
    double start_ns, end_ns;
} weft_gpu_time;

struct weft_gpu_executable {
    const weft_commands *commands;
    int n_slots, n_launches;     /* the next two slots are the scratch memories of the device */
    bool fused;                  /* launches are fused if that is possible */
    bool repeats;                /* its one launch can do the work of several runs */
    weft_gpu_buffer *parameters; /* parameter buffer of fused launches; NULL: there are none */
    weft_gpu_launch *launches;
    char *values; /* of the arguments of all launches */
    void **arguments;
    size_t *argument_bytes;
    int times_index;        /* the argument of its one launch that says how many runs the launch does */
    void **events;          /* n_launches + 1 objects of the backend for timed runs; each is NULL at first */
    weft_gpu_place *places; /* in the order of the launches */
    int n_places;
    uint64_t *bound;                 /* identity of the buffer that is bound to each slot */
    int64_t runs;                    /* number of runs so far, of both forms */
    weft_gpu_executable *fused_form; /* its form with fused launches, after it ran often */
    weft_timing *timings;            /* of the commands */
    weft_gpu_time *clocked;          /* of the launches */
};

static inline int weft__gpu_slots(const weft_gpu_executable *e) { return e->n_slots + 2; }

/* Builds one form of a program: plain, or with fused launches (`fused`). */
weft_status weft__gpu_build_form(weft_gpu_device *device, const weft_commands *commands, bool fused,
                                 weft_gpu_executable **e);

/* launch.c: makes and frees the launches with their kernels and arguments. The sources are compiled. */
weft_status weft__gpu_make_launches(weft_gpu_device *device, weft_gpu_executable *e,
                                    const weft_gpu_program *program, const weft_gpu_source *const *sources);
void weft__gpu_free_launches(weft_gpu_device *device, weft_gpu_executable *e);

#endif
