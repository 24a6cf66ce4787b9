/* The components of HIP, and whether each is installed. No component is needed to answer.
 * Must not know: what a component does. Read next: devices.c, docs/devices.md. */
#include <stdio.h>
#include <string.h>

#include "device/hip/hip.h"

static const char *find_cards(char text[WEFT_COMPONENT_TEXT]) {
    const weft__cuda_found *list;
    const char *why;
    const int n = weft__hip_devices(&list, &why);
    size_t used = 0;
    for (int i = 0; i < n && used < WEFT_COMPONENT_TEXT; i++)
        used += (size_t)snprintf(text + used, WEFT_COMPONENT_TEXT - used, "%s%.120s, %.*s", i ? "; " : "",
                                 list[i].gpu.name, (int)strcspn(list[i].arch, ":"), list[i].arch);
    return n ? NULL : why;
}

/* The library tells its version only where it finds a card. Elsewhere this returns the file. */
static const char *find_blas(char text[WEFT_COMPONENT_TEXT]) {
    static char why[WEFT_BLAS_WHY];
    char name[WEFT_BLAS_VERSION];
    const weft__cuda_found *list;
    const char *reason = weft__blas_open(&weft__hipblas);
    if (reason) return reason;
    if (!weft__hip_devices(&list, &reason)) {
        snprintf(text, WEFT_COMPONENT_TEXT, "%.200s", weft__hipblas.library->path);
        return NULL;
    }
    cublasLtHandle_t handle = weft__blas_handle(&weft__hipblas, "", why);
    if (!handle) return why;
    weft__blas_version(&weft__hipblas, name);
    weft__hipblas.functions->cublasLtDestroy(handle);
    snprintf(text, WEFT_COMPONENT_TEXT, "%s", name);
    return NULL;
}

static const char *find_rccl(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__nccl_open(&weft__rccl);
    if (!why) weft__nccl_name(&weft__rccl, text);
    return why;
}

static const char *find_runtime(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__hip_open_library();
    if (!why) weft__hip_version(text);
    return why;
}

static const char *find_compiler(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__hip_open_compiler();
    if (!why) weft__hiprtc_version(text);
    return why;
}

const weft_device_component weft__hip_components[] = {
    {"runtime", "ROCm 5", "AMD: hip-runtime-amd; Debian: libamdhip64-5",
     "there is no HIP device; opencl and webgpu may serve the card", find_runtime},
    {"card", "gfx900", "the driver amdgpu of Linux; the groups render and video", "there is no HIP device",
     find_cards},
    {"hipRTC", "that of the runtime", "AMD: hip-runtime-amd; Debian: libhiprtc-builtins5",
     "there is no HIP device; opencl serves the card", find_compiler},
    {"hipBLASLt", "0.7 (ROCm 6.1)", "AMD: hipblaslt", "Weft's own kernels compute matmuls", find_blas},
    {"RCCL", "2; 2.14 for several processes", "AMD: rccl", "the host adds the gradients of several cards",
     find_rccl},
    {.name = NULL}};
