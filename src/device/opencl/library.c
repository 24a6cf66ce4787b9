/* The OpenCL library, opened at run time.
 * Must not know: devices. Read next: device/shared_library.h, devices.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>

#include "device/opencl/api.h"
#include "device/opencl/hooks.h"
#include "device/shared_library.h"

weft__opencl_functions weft__cl;
weft__opencl_hooks weft__opencl_hook;

static const char *const files[] = {
#if defined(__APPLE__)
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#else
    "libOpenCL.so.1",
    "libOpenCL.so",
#endif
};

static const weft_shared_symbol wanted[] = {
#define OPENCL_FUNCTION(result, name, arguments) {#name, offsetof(weft__opencl_functions, name)},
#include "device/opencl/opencl.def"
#undef OPENCL_FUNCTION
};

static weft_shared_library library = {
    .files = files,
    .n_files = sizeof files / sizeof *files,
    .wanted = wanted,
    .n_wanted = sizeof wanted / sizeof *wanted,
    .table = &weft__cl,
    .absent = "install the OpenCL loader (Debian: ocl-icd-libopencl1) and the driver of your card, or "
              "pocl-opencl-icd to compute on the processor",
    .old = "it is older than OpenCL 1.2; install a newer loader"};

const char *weft__opencl_open_library(void) {
    return weft__shared_library_open(&library, weft__opencl_hook.library, weft__opencl_hook.missing);
}

void weft__opencl_forget_library(void) { library.looked = false; }

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
