/* The components of CUDA, and whether each is installed. No component is needed to answer.
 * Must not know: what a piece does. Read next: driver/devices.c, docs/devices.md. */
#include "device/cuda/components.h"

#include <stdio.h>
#include <string.h>

#include "device/cuda/blas/blas.h"
#include "device/cuda/driver/devices.h"
#include "device/cuda/dnn/dnn.h"
#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nvml/nvml.h"
#include "device/cuda/driver/nvrtc.h"

static const char *find_driver(char *text) {
    const char *why = weft__cuda_open_library();
    if (!why) weft__cuda_driver_version(text);
    return why;
}

static const char *find_card(char *text) {
    const weft__cuda_found *list;
    const char *why;
    const int n = weft__cuda_devices(&list, &why);
    size_t used = 0;
    for (int i = 0; i < n && used < WEFT_COMPONENT_TEXT; i++)
        used += (size_t)snprintf(text + used, WEFT_COMPONENT_TEXT - used, "%s%.120s, %d.%d", i ? "; " : "",
                                 list[i].gpu.name, list[i].capability / 10, list[i].capability % 10);
    return n ? NULL : why;
}

static const char *find_nvrtc(char *text) {
    int major = 0, minor = 0;
    const char *why = weft__nvrtc_open();
    if (!why) weft__nvrtc_version(&major, &minor);
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d", major, minor);
    return why;
}

static const char *find_blas(char *text) {
    const char *why = weft__blas_open(&weft__cublas);
    char version[WEFT_BLAS_VERSION];
    if (!why) weft__blas_version(&weft__cublas, version);
    if (!why) snprintf(text, WEFT_COMPONENT_TEXT, "%s", version + strcspn(version, "0123456789"));
    return why;
}

static const char *find_dnn(char *text) {
    const char *why = weft__dnn_open();
    const int version = why ? 0 : weft__dnn_version();
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return why;
}

static const char *find_nccl(char *text) {
    const char *why = weft__nccl_open(&weft__nccl);
    const int version = why ? 0 : weft__nccl_version(&weft__nccl);
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return why;
}

static const char *find_nvml(char *text) {
    const char *why = weft__nvml_open();
    (void)weft__nvml_version(text);
    return why;
}

bool weft__cuda_component(const char *name, char text[WEFT_COMPONENT_TEXT]) {
    static const struct {
        const char *name;
        const char *(*find)(char *text);
    } components[] = {{"driver", find_driver}, {"card", find_card}, {"NVRTC", find_nvrtc},
                      {"cuBLASLt", find_blas}, {"cuDNN", find_dnn}, {"NCCL", find_nccl},
                      {"NVML", find_nvml}};
    const char *why = "no such component";
    text[0] = 0;
    for (size_t i = 0; i < sizeof components / sizeof *components; i++)
        if (strcmp(components[i].name, name) == 0) why = components[i].find(text);
    if (why) snprintf(text, WEFT_COMPONENT_TEXT, "%s", why);
    return !why;
}
