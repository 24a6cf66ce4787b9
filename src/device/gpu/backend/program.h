/* A program as the launches of all its commands. A GPU backend compiles and runs these.
 * Must not know: OpenCL, CUDA. Read next: program.c, fused_launch.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_PROGRAM_H
#define WEFT_DEVICE_GPU_BACKEND_PROGRAM_H

#include "device/gpu/gpu.h"

typedef struct weft_gpu_program {
    weft_launches launches; /* their arguments are those of a program, see kernel/source.h */
    int *commands;          /* the command of each launch; for a fused launch the first one */
    /* The slots after those of the commands: scratch memory, and that of launches beside the others. */
    int scratch_slot;
    int64_t scratch_bytes[2];
    int64_t *parameters; /* parameter buffer of fused launches: structs of numbers */
    size_t n_parameters;
    bool repeats; /* there is one launch, which is fused and can do the work of several runs */
} weft_gpu_program;

/* What a backend requests. */
typedef struct weft_gpu_request {
    int64_t guard;                  /* guard bytes before the contents of a buffer */
    weft_gpu_paths *paths;          /* paths in its fault record */
    bool fused;                     /* fuse launches where that pays; otherwise each launch has one command */
    struct weft_gpu_device *device; /* its libraries may replace templates; NULL: none does */
    const weft_device_outline *outline; /* without a device: whose libraries may; NULL: none does */
} weft_gpu_request;

/* Fills in a program. Context, arena and target of `launches` are set. The caller frees the program even
 * after an error. */
weft_status weft__gpu_program(weft_gpu_program *program, const weft_commands *commands,
                              const weft_gpu_request *request);
void weft__gpu_program_free(weft_gpu_program *program);

/* fused_launch.c: fuses launches where that pays. `guard`: bytes before the contents of a buffer. */
weft_status weft__gpu_fuse_launches(weft_gpu_program *program, const weft_commands *commands, int64_t guard);
/* Counts `times` more runs of a program. Returns true once, when it ran often enough for compiling fused
 * launches to pay. */
bool weft__gpu_fuse_now(int64_t *runs, int times);

#endif
