/* NVRTC, opened at run time, so that the same program also runs on a machine without it. No option changes
 * floating-point results. a * b + c is not contracted, so fused kernels agree with single ones. Division,
 * roots and subnormals lose no bits.
 * Must not know: devices. Read next: gpu/driver/nvrtc.c. */
#include "device/cuda/nvrtc.h"
#include "device/cuda/search.h"

static weft__nvrtc_functions nvrtc;

const char *weft__nvrtc_file;

/* Versions that know sm_75 and C++17, the newest first. */
static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

static const weft_shared_symbol wanted[] = {
#define NVRTC_FUNCTION(result, name, hip, arguments) {#name, offsetof(weft__nvrtc_functions, name)},
#include "device/gpu/driver/nvrtc.def"
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

static const char *const options[] = {"--std=c++17", "--fmad=false", "--disable-warnings"};

const weft_nvrtc weft__nvrtc = {.name = "nvrtc",
                                .functions = &nvrtc,
                                .options = options,
                                .n_options = sizeof options / sizeof *options,
                                .arch = "--gpu-architecture=",
                                .verbose = "--ptxas-options=-v"};
