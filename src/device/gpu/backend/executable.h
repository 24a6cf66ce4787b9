/* What opened devices and programs of all GPU backends have in common: the parts of a program, its two forms,
 * and the bound buffers. A backend's own structs begin with these.
 * Must not know: OpenCL, CUDA. Read next: executable.c, program.h, docs/design/017-shared-gpu-backend.md. */
#ifndef WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H
#define WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H

#include "device/gpu/backend/backend.h"
#include "device/gpu/backend/compile.h"
#include "device/gpu/gpu.h"
#include "device/gpu/backend/program.h"
#include "device/gpu/backend/tune.h"

typedef struct weft_gpu_device weft_gpu_device;
typedef struct weft_gpu_executable weft_gpu_executable;

/* The functions of a backend. */
typedef struct weft_gpu_backend {
    size_t executable_bytes; /* size of the backend's own executable struct */
    /* Replaces the device's scratch memory by one of `bytes` bytes. */
    weft_status (*scratch)(weft_gpu_device *device, size_t bytes);
    /* Makes the backend's launches with their arguments, and the parameter buffer. The sources are compiled
     * already. If it fails, `empty` is called. */
    weft_status (*fill)(weft_gpu_device *device, weft_gpu_executable *e, const weft_gpu_program *program,
                        const weft_gpu_source *const *sources);
    void (*empty)(weft_gpu_device *device, weft_gpu_executable *e);
    /* Returns a number that no other buffer ever had, or 0 if there is no memory. Without a buffer it is the
     * number of the scratch memory. */
    uint64_t (*identity)(weft_gpu_device *device, const weft_buffer *buffer);
    /* Binds a buffer, or without one the scratch memory, to the argument at a place. */
    weft_status (*bind)(weft_gpu_device *device, weft_gpu_executable *e, int place,
                        const weft_buffer *buffer);
    /* Calls weft__gpu_build, with the backend's own preparation around it. */
    weft_status (*build)(weft_gpu_device *device, const weft_commands *commands, bool fused,
                         weft_gpu_executable **e);
    /* Adds the launch of a command with its `call` if one of the backend's libraries replaces the template.
     * Otherwise it adds nothing. NULL: no library does. */
    weft_status (*offer)(weft_gpu_device *device, weft_launches *launches, const weft_command *command);
} weft_gpu_backend;

struct weft_gpu_device {
    weft_device base;
    const weft_gpu_backend *backend;
    weft_target target;
    weft_tuner tuner;
    weft_gpu_compiler compiler;
    weft_gpu_paths paths;
    w_faults record; /* as read when the host last waited */
    bool unseen;     /* work was submitted since then */
    bool timing;
    size_t guard;         /* bytes of a guard, before and after each buffer */
    size_t scratch_bytes; /* all programs share the scratch memory, since they run one after the other */
};

static inline weft_gpu_device *weft__gpu_of(weft_device *device) { return (weft_gpu_device *)device; }

/* Argument `index` of a launch is the buffer in `slot`. For a call of a library it begins at byte
 * `offset`. */
typedef struct weft_gpu_place {
    int slot, launch, index;
    int64_t offset;
} weft_gpu_place;

struct weft_gpu_executable {
    const weft_commands *commands;
    int n_slots, n_launches; /* slot n_slots is the scratch memory */
    bool fused;              /* launches are fused if that is possible */
    bool repeats;            /* its one launch can do the work of several runs */
    bool parameters;         /* it has fused launches */
    weft_gpu_place *places;  /* in the order of the launches */
    int n_places;
    uint64_t *bound;                 /* identity of the buffer that is bound to each slot */
    int64_t runs;                    /* number of runs so far, of both forms */
    weft_gpu_executable *fused_form; /* its form with fused launches, after it ran often */
    weft_timing *timings;            /* of the commands */
    weft_gpu_time *clocked;          /* of the launches */
};

weft_status weft__gpu_build(weft_gpu_device *device, const weft_commands *commands, bool fused,
                            weft_gpu_executable **e);
void weft__gpu_executable_free(weft_device *device, weft_executable *executable);
/* Replaces *e by the form that runs now, and binds the buffers. It is the form with fused launches if the
 * program ran often enough for compiling them to pay, and if commands are not timed. `times` is the number of
 * runs requested. */
weft_status weft__gpu_ready(weft_gpu_device *device, weft_gpu_executable **e, weft_buffer *const *buffers,
                            int times);
/* Returns how many of *times runs the next launch does, for a program that repeats. Subtracts them from
 * *times. */
int weft__gpu_repeat(int *times);
int weft__gpu_launches_of(const weft_executable *executable);
/* Computes the timings of commands from `clocked`. */
const weft_timing *weft__gpu_timings(weft_gpu_executable *e);

#endif
