/* The CUDA driver's library, opened at run time, so that the same program also runs on a machine without it.
 * Must not know: devices. Read next: devices.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/driver/api.h"
#include "device/cuda/hooks.h"

weft__cuda_functions weft__cu;
weft__cuda_hooks weft__cuda_hook;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked;
static char reason[320];

static const char *const files[] = {
    "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", /* WSL does not list it among the libraries */
};

static const struct function {
    const char *name;
    size_t at; /* offset in weft__cu */
} functions[] = {
#define CUDA_FUNCTION(name, arguments) {#name, offsetof(weft__cuda_functions, name)},
#include "device/cuda/driver/cuda.def"
#undef CUDA_FUNCTION
};

/* Resolves all functions. Returns the name of the first missing one, or NULL. */
static const char *resolve(void *library) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *name = functions[i].name;
        const bool hidden = weft__cuda_hook.missing && strcmp(weft__cuda_hook.missing, name) == 0;
        void *symbol = hidden ? NULL : dlsym(library, name);
        if (!symbol) return name;
        memcpy((char *)&weft__cu + functions[i].at, &symbol, sizeof symbol);
    }
    return NULL;
}

static void look(void) {
    void *library = NULL;
    const char *file = weft__cuda_hook.library;
    if (file) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !weft__cuda_hook.library && !library && i < sizeof files / sizeof *files; i++)
        library = dlopen(file = files[i], RTLD_NOW | RTLD_LOCAL);
    reason[0] = 0;
    if (!library) {
        snprintf(reason, sizeof reason,
                 "%s cannot be opened: it comes with the driver of NVIDIA's cards (Debian: nvidia-driver, "
                 "Ubuntu: nvidia-driver-580)",
                 weft__cuda_hook.library ? file : files[0]);
        return;
    }
    const char *missing = resolve(library);
    if (missing)
        snprintf(reason, sizeof reason,
                 "%s has no %s: the driver is older than CUDA 12; install a newer one (525 or later); until "
                 "then opencl serves its cards",
                 file, missing);
}

const char *weft__cuda_open_library(void) {
    pthread_mutex_lock(&lock);
    if (!looked) look();
    looked = true;
    pthread_mutex_unlock(&lock);
    return reason[0] ? reason : NULL;
}

void weft__cuda_forget_library(void) { looked = false; }

const char *weft__cuda_error_name(CUresult error, char text[160]) {
    const char *name = NULL, *said = NULL;
    if (weft__cu.cuGetErrorName(error, &name) != 0 || weft__cu.cuGetErrorString(error, &said) != 0)
        snprintf(text, 160, "error %u", (unsigned)error);
    else
        snprintf(text, 160, "%.60s: %.90s", name, said);
    return text;
}
