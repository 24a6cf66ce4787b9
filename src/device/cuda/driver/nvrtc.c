/* NVRTC, opened at run time, so that the same program also runs on a machine without it. Kernel sources can
 * include no headers. No option changes floating-point results. a * b + c is not contracted, so fused kernels
 * agree with single ones. Division, roots and subnormals lose no bits.
 * Must not know: devices. Read next: gpu/backend/kernel_source.c. */
#include <stdio.h>

#include "device/cuda/driver/nvrtc.h"
#include "device/cuda/blas/search.h"

static struct nvrtc_functions {
#define NVRTC_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/cuda/driver/nvrtc.def"
#undef NVRTC_FUNCTION
} nvrtc;

const char *weft__nvrtc_file;

/* Versions that know sm_75 and C++17, the newest first. */
static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

static const weft_shared_symbol wanted[] = {
#define NVRTC_FUNCTION(result, name, arguments) {#name, offsetof(struct nvrtc_functions, name)},
#include "device/cuda/driver/nvrtc.def"
#undef NVRTC_FUNCTION
};

static weft_shared_library library = WEFT_CUDA_LIBRARY("NVRTC", "nvidia-cuda-nvrtc", files, wanted, nvrtc);

const char *weft__nvrtc_open(void) { return weft__shared_library_open(&library, weft__nvrtc_file, NULL); }

void weft__nvrtc_forget(void) { library.looked = false; }

void weft__nvrtc_version(int *major, int *minor) {
    if (nvrtc.nvrtcVersion(major, minor) != 0) *major = *minor = 0;
}

bool weft__nvrtc_knows(int capability) {
    int count = 0, list[256];
    if (nvrtc.nvrtcGetNumSupportedArchs(&count) != 0 || count > (int)(sizeof list / sizeof *list))
        return false;
    if (nvrtc.nvrtcGetSupportedArchs(list) != 0) return false;
    for (int i = 0; i < count; i++)
        if (list[i] == capability) return true;
    return false;
}

/* ---- jobs ---- */

#define OPTIONS(X)      X("--std=c++17") X("--fmad=false") X("--disable-warnings")
#define IN_LIST(option) option,
#define IN_TEXT(option) option " "

const char *weft__nvrtc_options(void) { return OPTIONS(IN_TEXT); }

void weft__nvrtc_compile(weft_nvrtc_job *job) {
    char arch[64];
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", job->arch);
    const char *const options[] = {OPTIONS(IN_LIST) arch, "--ptxas-options=-v"};
    const int n = (int)(sizeof options / sizeof *options) - !job->verbose;
    job->program = NULL;
    job->error = nvrtc.nvrtcCreateProgram(&job->program, job->source, "weft.cu", 0, NULL, NULL);
    if (!job->error) job->error = nvrtc.nvrtcCompileProgram(job->program, n, options);
}

char *weft__nvrtc_log(weft_context *ctx, const weft_nvrtc_job *job) {
    size_t bytes = 0;
    if (!job->program || nvrtc.nvrtcGetProgramLogSize(job->program, &bytes) != 0) return NULL;
    char *log = weft__alloc(ctx, bytes + 1);
    if (!log) return NULL;
    log[bytes] = log[0] = 0;
    if (bytes) nvrtc.nvrtcGetProgramLog(job->program, log);
    return log;
}

void weft__nvrtc_drop(weft_nvrtc_job *job) {
    if (job->program) nvrtc.nvrtcDestroyProgram(&job->program);
    job->program = NULL;
}

static weft_status nvrtc_take(weft_context *ctx, const weft_nvrtc_job *job, const char *what, void **cubin,
                              size_t *bytes) {
    unsigned error = job->error;
    if (!error) error = nvrtc.nvrtcGetCUBINSize(job->program, bytes);
    if (error) {
        char *log = weft__nvrtc_log(ctx, job);
        weft__log(ctx, WEFT_LOG_DEBUG, "%s", job->source);
        const weft_status status = weft__fail(ctx, WEFT_ERR_DEVICE, "nvrtc: %s for %s: %s: %.600s", what,
                                              job->arch, nvrtc.nvrtcGetErrorString(error), log ? log : "");
        weft__free(ctx, log);
        return status;
    }
    *cubin = weft__alloc(ctx, *bytes + 1);
    if (!*cubin) return weft__fail_oom(ctx, *bytes, "a compiled kernel");
    error = nvrtc.nvrtcGetCUBIN(job->program, *cubin);
    if (!error) return WEFT_OK;
    weft__free(ctx, *cubin);
    return weft__fail(ctx, WEFT_ERR_DEVICE, "nvrtc: %s for %s: %s", what, job->arch,
                      nvrtc.nvrtcGetErrorString(error));
}

weft_status weft__nvrtc_take(weft_context *ctx, weft_nvrtc_job *job, const char *what, void **cubin,
                             size_t *bytes) {
    *cubin = NULL;
    const weft_status status = nvrtc_take(ctx, job, what, cubin, bytes);
    weft__nvrtc_drop(job);
    if (status != WEFT_OK) *cubin = NULL;
    return status;
}
