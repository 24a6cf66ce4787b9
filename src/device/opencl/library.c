/* The OpenCL library, opened at run time, so that the same program also runs on a machine without it.
 * Must not know: devices. Read next: devices.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/opencl/api.h"
#include "device/opencl/hooks.h"

weft__opencl_functions weft__cl;
weft__opencl_hooks weft__opencl_hook;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked;
static char reason[320];

static const char *const files[] = {
#if defined(__APPLE__)
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#else
    "libOpenCL.so.1",
    "libOpenCL.so",
#endif
};

/* Resolves all functions. Returns the name of the first missing one, or NULL. */
static const char *resolve(void *library) {
    void *symbol;
#define OPENCL_FUNCTION(result, name, arguments)                                                             \
    symbol = weft__opencl_hook.missing && strcmp(weft__opencl_hook.missing, #name) == 0                      \
                 ? NULL                                                                                      \
                 : dlsym(library, #name);                                                                    \
    if (!symbol) return #name;                                                                               \
    memcpy(&weft__cl.name, &symbol, sizeof symbol);
#include "device/opencl/opencl.def"
#undef OPENCL_FUNCTION
    return NULL;
}

static void look(void) {
    void *library = NULL;
    const char *file = weft__opencl_hook.library;
    if (file) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !weft__opencl_hook.library && !library && i < sizeof files / sizeof *files; i++)
        library = dlopen(file = files[i], RTLD_NOW | RTLD_LOCAL);
    reason[0] = 0;
    if (!library) {
        snprintf(
            reason, sizeof reason,
            "%s cannot be opened: install the OpenCL loader (Debian: ocl-icd-libopencl1) and the driver of "
            "your card, or pocl-opencl-icd to compute on the processor",
            weft__opencl_hook.library ? file : files[0]);
        return;
    }
    const char *missing = resolve(library);
    if (missing)
        snprintf(reason, sizeof reason, "%s has no %s: it is older than OpenCL 1.2; install a newer loader",
                 file, missing);
}

const char *weft__opencl_open_library(void) {
    pthread_mutex_lock(&lock);
    if (!looked) look();
    looked = true;
    pthread_mutex_unlock(&lock);
    return reason[0] ? reason : NULL;
}

void weft__opencl_forget_library(void) { looked = false; }

void weft__opencl_keep_signals(weft__opencl_signals *kept) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept->mask);
    for (int s = 1; s < OPENCL_SIGNALS; s++)
        if (sigaction(s, NULL, &kept->actions[s]) != 0) kept->actions[s].sa_handler = SIG_ERR;
}

void weft__opencl_restore_signals(const weft__opencl_signals *kept) {
    for (int s = 1; s < OPENCL_SIGNALS; s++)
        if (s != SIGKILL && s != SIGSTOP && kept->actions[s].sa_handler != SIG_ERR)
            sigaction(s, &kept->actions[s], NULL);
    pthread_sigmask(SIG_SETMASK, &kept->mask, NULL);
}

const char *weft__opencl_error_name(cl_int error, char text[64]) {
    static const struct {
        cl_int error;
        const char *name;
    } names[] = {
#define OPENCL_CONSTANT(name, value) {(cl_int)(value), #name},
#include "device/opencl/opencl.def"
#undef OPENCL_CONSTANT
    };
    for (size_t i = 0; error < 0 && i < sizeof names / sizeof *names; i++) {
        if (names[i].error != error || strcmp(names[i].name, "DEVICE_TYPE_ALL") == 0) continue;
        size_t k = 0;
        for (; names[i].name[k] && k < 63; k++) /* in lower case, with spaces between words */
            text[k] = names[i].name[k] == '_' ? ' ' : (char)(names[i].name[k] | 0x20);
        text[k] = 0;
        return text;
    }
    snprintf(text, 64, "error %d", (int)error);
    return text;
}
