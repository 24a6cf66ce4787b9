/* The components of CUDA, and whether each is installed. No component is needed to answer.
 * Must not know: what a piece does. Read next: devices.c, docs/devices.md. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/cuda/nvml/nvml.h"
#include "device/cuda/nvrtc.h"

static const char *find_driver(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__cuda_open_library();
    if (!why) weft__cuda_driver_version(text);
    return why;
}

static const char *find_card(char text[WEFT_COMPONENT_TEXT]) {
    const weft__cuda_found *list;
    const char *why;
    const int n = weft__cuda_devices(&list, &why);
    size_t used = 0;
    for (int i = 0; i < n && used < WEFT_COMPONENT_TEXT; i++)
        used += (size_t)snprintf(text + used, WEFT_COMPONENT_TEXT - used, "%s%.120s, %d.%d", i ? "; " : "",
                                 list[i].gpu.name, list[i].capability / 10, list[i].capability % 10);
    return n ? NULL : why;
}

static const char *find_nvrtc(char text[WEFT_COMPONENT_TEXT]) {
    int major = 0, minor = 0;
    const char *why = weft__nvrtc_open();
    if (!why) weft__nvrtc_version(&major, &minor);
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d", major, minor);
    return why;
}

static const char *find_blas(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__blas_open(&weft__cublas);
    char version[WEFT_BLAS_VERSION];
    if (!why) weft__blas_version(&weft__cublas, version);
    if (!why) snprintf(text, WEFT_COMPONENT_TEXT, "%s", version + strcspn(version, "0123456789"));
    return why;
}

static const char *find_dnn(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__dnn_open();
    const int version = why ? 0 : weft__dnn_version();
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return why;
}

static const char *find_nccl(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__nccl_open(&weft__nccl);
    const int version = why ? 0 : weft__nccl_version(&weft__nccl);
    snprintf(text, WEFT_COMPONENT_TEXT, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return why;
}

static const char *find_nvml(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__nvml_open();
    (void)weft__nvml_version(text);
    return why;
}

const weft_device_component weft__cuda_components[] = {
    {"driver", "525 (CUDA 12); 580 for libraries of CUDA 13",
     "Debian: nvidia-driver; Ubuntu: nvidia-driver-580",
     "there is no CUDA device, and no OpenCL device for NVIDIA's cards", find_driver},
    {"card", "compute capability 7.5; older cards with NVRTC 12 are not tested", "-",
     "there is no CUDA device", find_card},
    {"NVRTC", "12", "make cuda; PyPI: nvidia-cuda-nvrtc, nvidia-cuda-nvrtc-cu12; the CUDA toolkit",
     "there is no CUDA device; opencl serves the card", find_nvrtc},
    {"cuBLASLt", "12", "make cuda; PyPI: nvidia-cublas, nvidia-cublas-cu12; the CUDA toolkit",
     "Weft's own kernels compute matmuls", find_blas},
    {"cuDNN", "9.10.2", "make cuda; PyPI: nvidia-cudnn-cu13, nvidia-cudnn-cu12",
     "Weft's own kernels compute attention and convolutions", find_dnn},
    {"NCCL", "2; 2.14 for several processes", "make cuda; PyPI: nvidia-nccl-cu13, nvidia-nccl-cu12",
     "the host adds the gradients of several cards", find_nccl},
    {"NVML", "any", "the driver's package",
     "runs do not record the card's utilisation, memory, power, clocks and temperature", find_nvml},
    {.name = NULL}};
