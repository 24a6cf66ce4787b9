/* Compilers as libraries. NVIDIA's NVRTC compiles CUDA C++ to cubins on any machine, without a card or a
 * driver. AMD's hipRTC has the same interface, and compiles HIP C++ to code objects.
 * Must not know: devices, what kernels compute, files. Read next: nvrtc.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_NVRTC_H
#define WEFT_DEVICE_GPU_DRIVER_NVRTC_H

#include "base/base.h"

typedef struct _nvrtcProgram *nvrtcProgram;

typedef struct weft__nvrtc_functions {
#define NVRTC_FUNCTION(result, name, hip, arguments) result(*name) arguments;
#include "device/gpu/driver/nvrtc.def"
#undef NVRTC_FUNCTION
} weft__nvrtc_functions;

/* A compiler. */
enum { WEFT_NVRTC_OPTIONS = 8 };
typedef struct weft_nvrtc {
    const char *name; /* for messages, such as "nvrtc" */
    const weft__nvrtc_functions *functions;
    const char *const *options; /* for each kernel source, without the architecture */
    int n_options;
    const char *arch;    /* the option that the architecture follows */
    const char *verbose; /* the option for a log with registers and spills; NULL: there is none */
} weft_nvrtc;

/* Writes the compiler options, without the architecture. They are part of the keys on disk. */
enum { WEFT_NVRTC_WORDS = 200 };
const char *weft__nvrtc_options(const weft_nvrtc *compiler, char words[WEFT_NVRTC_WORDS]);

/* The compilation of one source. */
typedef struct weft_nvrtc_job {
    const weft_nvrtc *compiler;
    const char *source; /* the whole source with its prelude */
    const char *arch;   /* such as "sm_90a" */
    bool verbose;       /* the log lists registers and spills */
    nvrtcProgram program;
    unsigned error; /* NVRTC's error; 0: none */
} weft_nvrtc_job;

/* Compiles a source, in any thread, without Weft's allocator. Call weft__nvrtc_take or weft__nvrtc_drop
 * afterwards. */
void weft__nvrtc_compile(weft_nvrtc_job *job);
/* Returns the cubin, which the caller frees with weft__free, or the error with the compiler's message. Ends
 * the job. */
weft_status weft__nvrtc_take(weft_context *ctx, weft_nvrtc_job *job, const char *what, void **cubin,
                             size_t *bytes);
void weft__nvrtc_drop(weft_nvrtc_job *job);
/* Returns the compiler's message for a job that has not ended. The caller frees it with weft__free. Returns
 * NULL when memory is short. */
char *weft__nvrtc_log(weft_context *ctx, const weft_nvrtc_job *job);

#endif
