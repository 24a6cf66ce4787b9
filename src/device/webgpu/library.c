/* The WebGPU library, opened at run time: wgpu-native or Dawn.
 * Must not know: devices. Read next: device/shared_library.h, api.h. */
#include <dlfcn.h>
#include <stdio.h>

#include "device/shared_library.h"
#include "device/webgpu/api.h"
#include "device/webgpu/hooks.h"

/* The major version of wgpu-native whose structures api.h has. Other versions have other structures. */
enum { VERSION_MAJOR = 29 };

weft__webgpu_functions weft__wgpu;
weft__webgpu_hooks weft__webgpu_hook;

static const char *const files[] = {
#if defined(__APPLE__)
    "libwgpu_native.dylib",
    "libwgpu_native-release.dylib",
    "libwebgpu_dawn.dylib",
#else
    "libwgpu_native.so",
    "libwgpu_native-release.so",
    "libwebgpu_dawn.so",
#endif
};

/* Looks in the folders of the loader, and then where `make webgpu` puts the library, beside the program. */
static void *search(const weft_shared_library *l, char path[WEFT_LIBRARY_PATH]) {
    char folder[WEFT_LIBRARY_PATH];
    void *handle = NULL;
    const bool known = weft__program_folder(folder);
    for (int i = 0; i < 2 * l->n_files && !handle; i++) {
        const bool beside = i >= l->n_files;
        const int n = snprintf(path, WEFT_LIBRARY_PATH, "%s%s%s", beside ? folder : "",
                               beside ? "/webgpu/lib/" : "", l->files[i % l->n_files]);
        if (n < WEFT_LIBRARY_PATH && (known || !beside)) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

#define WEBGPU_FUNCTION(result, name, arguments) {#name, offsetof(weft__webgpu_functions, name)},
#define WEBGPU_OPTIONAL(result, name, arguments)
static const weft_shared_symbol wanted[] = {
#include "device/webgpu/webgpu.def"
};
#undef WEBGPU_FUNCTION
#undef WEBGPU_OPTIONAL
#define WEBGPU_OPTIONAL(result, name, arguments) {#name, offsetof(weft__webgpu_functions, name)},
#define WEBGPU_DAWN(result, name, arguments)     {#name, offsetof(weft__webgpu_functions, name)},
static const weft_shared_symbol optional[] = {
#include "device/webgpu/webgpu.def"
};
#undef WEBGPU_OPTIONAL
#undef WEBGPU_DAWN

static uint32_t version(void) {
    if (weft__webgpu_hook.version) return weft__webgpu_hook.version;
    return weft__wgpu.wgpuGetVersion ? weft__wgpu.wgpuGetVersion() : 0;
}

/* Refuses wgpu-native of another major version, whose calls would crash. Dawn does not tell its version. */
static void check_version(weft_shared_library *library) {
    const uint32_t v = version();
    if (v && v >> 24 != VERSION_MAJOR)
        snprintf(library->reason, sizeof library->reason,
                 "%.150s is wgpu-native %u.%u, but Weft needs %d: run `make webgpu`, which fetches it",
                 library->path, v >> 24, v >> 16 & 255, VERSION_MAJOR);
}

static weft_shared_library library = {
    .files = files,
    .n_files = sizeof files / sizeof *files,
    .variable = "WEFT_WGPU_LIB",
    .wanted = wanted,
    .n_wanted = sizeof wanted / sizeof *wanted,
    .optional = optional,
    .n_optional = sizeof optional / sizeof *optional,
    .table = &weft__wgpu,
    .absent = "run `make webgpu`, which fetches wgpu-native 29; WEFT_WGPU_LIB names a library elsewhere",
    .search = search,
    .gone = "wgpuInstanceRequestAdapter2", /* of Dawn, as long as its structures were not those of webgpu.h */
    .old = "it is no library of WebGPU, or its version does not fit; run `make webgpu`, which fetches "
           "wgpu-native 29",
    .start = check_version};

const char *weft__webgpu_open_library(void) {
    return weft__shared_library_open(&library, weft__webgpu_hook.library, weft__webgpu_hook.missing);
}

void weft__webgpu_forget_library(void) { library.looked = false; }

const char *weft__webgpu_library_name(void) {
    static char name[48];
    const uint32_t v = version();
    if (!v) return "Dawn";
    snprintf(name, sizeof name, "wgpu-native %u.%u.%u.%u", v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255);
    return name;
}
