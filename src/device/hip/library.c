/* The libraries of ROCm, opened at run time: HIP's runtime, hipRTC, the compiler, and RCCL. Searches
 * $WEFT_HIP_PATH, the folders of the loader, $ROCM_PATH and /opt/rocm, in this order. Must not know: devices.
 * Read next: device/shared_library.h, adapt.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/hip/hip.h"
#include "device/shared_library.h"

weft__hip_functions weft__hip;
weft__hip_hooks weft__hip_hook;
static weft__nvrtc_functions hiprtc;

/* ---- search ---- */

static const char *const files[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
enum { FILES = sizeof files / sizeof *files };

static void *open_path(const char *path, char opened[WEFT_LIBRARY_PATH]) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle) snprintf(opened, WEFT_LIBRARY_PATH, "%s", path);
    return handle;
}

/* Opens the newest file of the library in a folder. `folder` may be a pattern, such as "/opt/rocm-*". NULL:
 * the folders of the loader. */
static void *open_in(const weft_shared_library *l, const char *folder, const char *below,
                     char path[WEFT_LIBRARY_PATH]) {
    void *handle = NULL;
    for (int i = 0; i < l->n_files && !handle; i++) {
        char pattern[WEFT_LIBRARY_PATH];
        glob_t found;
        if (!folder) {
            handle = open_path(l->files[i], path);
            continue;
        }
        const int n = snprintf(pattern, sizeof pattern, "%s%s/%s", folder, below, l->files[i]);
        if (n >= (int)sizeof pattern || glob(pattern, 0, NULL, &found) != 0) continue;
        for (size_t k = found.gl_pathc; k-- > 0 && !handle;) handle = open_path(found.gl_pathv[k], path);
        globfree(&found);
    }
    return handle;
}

static void *open_named(const weft_shared_library *l, const char *variable, char path[WEFT_LIBRARY_PATH]) {
    const char *folder = secure_getenv(variable);
    if (!folder || *folder != '/') return NULL;
    void *handle = open_in(l, folder, "", path);
    return handle ? handle : open_in(l, folder, "/lib", path);
}

void *weft__hip_search(const weft_shared_library *l, char path[WEFT_LIBRARY_PATH]) {
    void *handle = open_named(l, "WEFT_HIP_PATH", path);
    if (!handle) handle = open_in(l, NULL, "", path);
    if (!handle) handle = open_named(l, "ROCM_PATH", path);
    if (!handle) handle = open_in(l, "/opt/rocm", "/lib", path);
    return handle ? handle : open_in(l, "/opt/rocm-*", "/lib", path);
}

/* ---- runtime ---- */

static const weft_shared_symbol wanted[] = {
#define CUDA_FUNCTION(name, hip, arguments) {#hip, offsetof(weft__hip_functions, cu.name)},
#define CUDA_ADAPTED(name, arguments)
#include "device/gpu/driver/cuda.def"
#undef CUDA_FUNCTION
#undef CUDA_ADAPTED
#define HIP_FUNCTION(result, name, arguments) {#name, offsetof(weft__hip_functions, name)},
#include "device/hip/hip.def"
#undef HIP_FUNCTION
};

static const weft_shared_symbol optional[] = {
#define HIP_PROPERTIES(name, at) {#name, offsetof(weft__hip_functions, name)},
#include "device/hip/hip.def"
#undef HIP_PROPERTIES
};

static void start(weft_shared_library *library) {
    bool properties = false;
#define HIP_PROPERTIES(name, at) properties = properties || weft__hip.name;
#include "device/hip/hip.def"
#undef HIP_PROPERTIES
    weft__hip_adapt();
    if (!properties)
        snprintf(library->reason, sizeof library->reason, "%.150s has no hipGetDeviceProperties: %s",
                 library->path, library->old);
}

static weft_shared_library runtime = {
    .files = files,
    .n_files = FILES,
    .wanted = wanted,
    .n_wanted = sizeof wanted / sizeof *wanted,
    .optional = optional,
    .n_optional = sizeof optional / sizeof *optional,
    .table = &weft__hip,
    .absent =
        "install the HIP runtime of ROCm (AMD: hip-runtime-amd; Debian: libamdhip64-5; $WEFT_HIP_PATH names "
        "a folder with it)",
    .old = "install ROCm 5, 6 or 7; until then opencl serves its cards",
    .search = weft__hip_search,
    .start = start};

const char *weft__hip_open_library(void) {
    return weft__shared_library_open(&runtime, weft__hip_hook.library, weft__hip_hook.missing);
}

void weft__hip_version(char text[WEFT_HIP_VERSION]) {
    int version = 0;
    if (weft__hip.cu.cuDriverGetVersion(&version) != 0) version = 0;
    snprintf(text, WEFT_HIP_VERSION, "HIP %d.%d.%d", version / 10000000, version / 100000 % 100,
             version % 100000);
}

/* ---- compiler ---- */

/* The compiler must be as new as the runtime. It is beside it under the same number; the runtime of ROCm 5
 * has it inside. */
static void *search_compiler(const weft_shared_library *l, char path[WEFT_LIBRARY_PATH]) {
    static const char name[] = "libamdhip64";
    const char *at = strstr(runtime.path, name);
    char beside[WEFT_LIBRARY_PATH];
    (void)l;
    snprintf(beside, sizeof beside, "%.*slibhiprtc%s", at ? (int)(at - runtime.path) : 0, runtime.path,
             at ? at + strlen(name) : "");
    void *handle = at ? open_path(beside, path) : NULL;
    return handle ? handle : open_path(runtime.path, path);
}

static const char *const compiler_files[] = {"libhiprtc.so"};

static const weft_shared_symbol compiler_wanted[] = {
#define NVRTC_FUNCTION(result, name, hip, arguments) {#hip, offsetof(weft__nvrtc_functions, name)},
#define NVRTC_ONLY(result, name, arguments)
#include "device/gpu/driver/nvrtc.def"
#undef NVRTC_FUNCTION
#undef NVRTC_ONLY
};

static weft_shared_library compiler = {
    .files = compiler_files,
    .n_files = sizeof compiler_files / sizeof *compiler_files,
    .wanted = compiler_wanted,
    .n_wanted = sizeof compiler_wanted / sizeof *compiler_wanted,
    .table = &hiprtc,
    .absent = "install hipRTC of ROCm, in the version of the HIP runtime (AMD: hip-runtime-amd; Debian: "
              "libamdhip64-5 and libhiprtc-builtins5)",
    .old = "install hipRTC of ROCm, in the version of the HIP runtime (AMD: hip-runtime-amd; Debian: "
           "libamdhip64-5 and libhiprtc-builtins5)",
    .search = search_compiler};

const char *weft__hip_open_compiler(void) {
    const char *why = weft__hip_open_library();
    return why ? why : weft__shared_library_open(&compiler, NULL, weft__hip_hook.missing);
}

void weft__hiprtc_version(char text[WEFT_HIP_VERSION]) {
    int major = 0, minor = 0;
    if (hiprtc.nvrtcVersion(&major, &minor) != 0) major = minor = 0;
    snprintf(text, WEFT_HIP_VERSION, "hipRTC %d.%d", major, minor);
}

/* ---- sums over cards ---- */

static const char *const rccl_files[] = {"librccl.so.1"};

weft_nccl weft__rccl = {.name = "RCCL",
                        .library = {.files = rccl_files,
                                    .n_files = 1,
                                    .wanted = weft__nccl_wanted,
                                    .n_wanted = WEFT_NCCL_WANTED,
                                    .optional = weft__nccl_links,
                                    .n_optional = WEFT_NCCL_LINKS,
                                    .table = &weft__rccl.functions,
                                    .absent = "install RCCL of ROCm, in the version of the HIP runtime (AMD: "
                                              "rccl; $WEFT_HIP_PATH names a folder with it)",
                                    .old = "install RCCL of a newer ROCm",
                                    .search = weft__hip_search}};

void weft__hip_forget_libraries(void) {
    runtime.looked = compiler.looked = false;
    weft__nccl_forget(&weft__rccl);
    weft__blas_forget(&weft__hipblas);
}

/* No option changes floating-point results, as in cuda/nvrtc.c. Division and roots of f32 are rounded
 * correctly by default. Kernels read memory as other types than it was written as. */
static const char *const options[] = {"-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv",
                                      "-w"};

const weft_nvrtc weft__hiprtc = {.name = "hiprtc",
                                 .functions = &hiprtc,
                                 .options = options,
                                 .n_options = sizeof options / sizeof *options,
                                 .arch = "--offload-arch="};
