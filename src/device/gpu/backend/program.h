/* A program as the launches of all its commands, which is what a GPU backend compiles and runs. Must not
 * know: OpenCL, CUDA. Read next: program.c, chain.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_PROGRAM_H
#define WEFT_DEVICE_GPU_BACKEND_PROGRAM_H

#include "device/gpu/gpu.h"

typedef struct weft_gpu_program {
    weft_launches launches; /* their arguments are those of a program: kernel/source.h */
    int *commands;          /* which command each launch is of; of a chain the first */
    int scratch_slot;       /* the one after the commands' */
    int64_t scratch_bytes;
    int64_t *words; /* that chains read: structs of numbers */
    size_t n_words;
    bool repeats; /* there is one launch, a chain, and it can do the work of several runs */
} weft_gpu_program;

/* How a backend wants it. */
typedef struct weft_gpu_wish {
    int64_t guard;                  /* bytes before what a buffer holds */
    weft_gpu_paths *paths;          /* of its fault record */
    bool chain;                     /* where that pays; without, each launch is of one command */
    struct weft_gpu_device *device; /* whose libraries may do commands; NULL: none does */
} weft_gpu_wish;

/* Fills in a program whose `launches` has context, arena and target, and which is to be freed in any case. */
weft_status weft__gpu_program(weft_gpu_program *program, const weft_commands *commands,
                              const weft_gpu_wish *wish);
void weft__gpu_program_free(weft_gpu_program *program);

/* chain.c: makes chains of the launches, where that pays. */
weft_status weft__gpu_chain(weft_gpu_program *program, const weft_commands *commands);
/* Counts `times` runs of a program; true once: now it has run so often that compiling its chains pays. */
bool weft__gpu_chain_now(int64_t *runs, int times);
/* What building them came to: a program that has no room for its chains stays plain, which is no failure. */
static inline weft_status weft__gpu_chain_built(weft_status status) {
    return status == WEFT_ERR_OOM ? WEFT_OK : status;
}
enum {
    WEFT_GPU_REPEATS = 64
}; /* runs in one launch: cards that draw the screen stop what lasts for seconds */

#endif
