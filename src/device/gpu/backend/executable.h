/* An opened device and a program of it, as far as GPU backends have them in common: what a program is made
 * of, its two forms, which buffers are bound. A backend's own structs begin with these. Must not know:
 * OpenCL, CUDA. Read next: executable.c, program.h. */
#ifndef WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H
#define WEFT_DEVICE_GPU_BACKEND_EXECUTABLE_H

#include "device/gpu/backend/backend.h"
#include "device/gpu/backend/compile.h"
#include "device/gpu/gpu.h"
#include "device/gpu/backend/program.h"
#include "device/gpu/backend/tune.h"

typedef struct weft_gpu_device weft_gpu_device;
typedef struct weft_gpu_executable weft_gpu_executable;

/* What a backend does for it. */
typedef struct weft_gpu_backend {
    size_t executable_bytes; /* of its own struct */
    /* Makes the device's scratch of so many bytes, in place of the one there is. */
    weft_status (*scratch)(weft_gpu_device *device, size_t bytes);
    /* The launches of a program, whose texts are compiled, with their arguments, and its words. Where that
     * fails, `empty` is called. */
    weft_status (*fill)(weft_gpu_device *device, weft_gpu_executable *e, const weft_gpu_program *program,
                        const weft_gpu_text *const *texts);
    void (*empty)(weft_gpu_device *device, weft_gpu_executable *e);
    /* What tells a buffer, or without one the scratch, from all others there ever were; 0: nothing. */
    uint64_t (*identity)(weft_gpu_device *device, const weft_buffer *buffer);
    /* Gives the argument at a place the buffer, or without one the scratch. */
    weft_status (*bind)(weft_gpu_device *device, weft_gpu_executable *e, int place,
                        const weft_buffer *buffer);
    /* weft__gpu_build, with what belongs around it. */
    weft_status (*build)(weft_gpu_device *device, const weft_commands *commands, bool chain,
                         weft_gpu_executable **e);
    /* What the backend's libraries do in place of templates: adds the launch of a command with its `call`, or
     * nothing. NULL: they do nothing. */
    weft_status (*offer)(weft_gpu_device *device, weft_launches *launches, const weft_command *command);
} weft_gpu_backend;

struct weft_gpu_device {
    weft_device base;
    const weft_gpu_backend *backend;
    weft_target target;
    weft_tuner tuner;
    weft_gpu_compiler compiler;
    weft_gpu_paths paths;
    weft_gpu_faults record; /* as it was when the host last waited */
    bool unseen;            /* work was submitted since */
    bool timing;
    size_t guard;         /* bytes before and after each buffer */
    size_t scratch_bytes; /* of the scratch of all programs: they run one after the other */
};

static inline weft_gpu_device *weft__gpu_of(weft_device *device) { return (weft_gpu_device *)device; }

/* Argument `index` of a launch is the buffer in `slot`; of a call from byte `offset` on. */
typedef struct weft_gpu_place {
    int slot, launch, index;
    int64_t offset;
} weft_gpu_place;

struct weft_gpu_executable {
    const weft_commands *commands;
    int n_slots, n_launches; /* slot n_slots is the scratch */
    bool chain;              /* launches are one after the other, those that may be in chains */
    bool repeats;            /* the one launch does the work of several runs */
    bool words;              /* chains there are */
    weft_gpu_place *places;  /* in the order of launches */
    int n_places;
    uint64_t *bound;              /* identity of what the arguments of a slot name */
    int64_t runs;                 /* so far, of both forms */
    weft_gpu_executable *chained; /* its form with chains, once it ran often */
    weft_timing *timings;         /* of commands */
    weft_gpu_time *clocked;       /* of launches */
};

weft_status weft__gpu_build(weft_gpu_device *device, const weft_commands *commands, bool chain,
                            weft_gpu_executable **e);
void weft__gpu_executable_free(weft_device *device, weft_executable *executable);
/* Makes *e the form of the program that runs `times` times now: with chains once it ran so often that
 * compiling them pays, and not where commands are timed; bound to the buffers. */
weft_status weft__gpu_ready(weft_gpu_device *device, weft_gpu_executable **e, weft_buffer *const *buffers,
                            int times);
/* How many of *times runs the next launch of a program that repeats does; counts them off. */
int weft__gpu_repeat(int *times);
int weft__gpu_launches_of(const weft_executable *executable);
/* What `clocked` comes to. */
const weft_timing *weft__gpu_timings(weft_gpu_executable *e);

#endif
