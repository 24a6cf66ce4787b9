/* NVRTC, NVIDIA's compiler as a library: texts of CUDA C++ become cubins, on any machine, without a card or
 * its driver. Must not know: devices, what texts compute, files. Read next: nvrtc.c. */
#ifndef WEFT_DEVICE_CUDA_DRIVER_NVRTC_H
#define WEFT_DEVICE_CUDA_DRIVER_NVRTC_H

#include "base/base.h"

typedef struct _nvrtcProgram *nvrtcProgram;

/* Opens the library, once a process; NULL, or why that cannot be and what helps. Thread-safe. All other
 * functions want it to have been opened. */
const char *weft__nvrtc_open(void);
void weft__nvrtc_version(int *major, int *minor);
/* Whether it compiles for cards of a compute capability: 90 for 9.0. */
bool weft__nvrtc_knows(int capability);
/* What texts are compiled with, besides the architecture: a part of the key of what is kept. */
const char *weft__nvrtc_options(void);

/* A text on its way to a cubin. */
typedef struct weft_nvrtc_job {
    const char *text; /* the whole of it, prelude and all */
    const char *arch; /* "sm_90a" */
    bool verbose;     /* the log tells registers and spills */
    nvrtcProgram program;
    unsigned error; /* of NVRTC; 0: none */
} weft_nvrtc_job;

/* Compiles it, in any thread; takes no memory of Weft's. Then one of the next two. */
void weft__nvrtc_compile(weft_nvrtc_job *job);
/* The cubin, to be freed with weft__free; or the error, with the compiler's words. Ends the job. */
weft_status weft__nvrtc_take(weft_context *ctx, weft_nvrtc_job *job, const char *what, void **cubin,
                             size_t *bytes);
void weft__nvrtc_drop(weft_nvrtc_job *job);
/* What the compiler said of a job that has not ended, to be freed with weft__free; NULL: memory is gone. */
char *weft__nvrtc_log(weft_context *ctx, const weft_nvrtc_job *job);

/* For tests. */
extern const char *weft__nvrtc_file; /* instead of the usual names; NULL: those */
void weft__nvrtc_forget(void);

#endif
