/* AMD's cards by HIP, which is CUDA under other names: device/gpu/driver serves both. This
 * folder has what differs. Must not know: what kernels compute. Read next: library.c (runtime and compiler),
 * adapt.c (functions that differ), blas.c (hipBLASLt), devices.c (cards), hip.c (device), docs/devices.md. */
#ifndef WEFT_DEVICE_HIP_HIP_H
#define WEFT_DEVICE_HIP_HIP_H

#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nccl/nccl.h"

typedef struct hip_dim {
    unsigned x, y, z;
} hip_dim;

typedef struct weft__hip_node { /* hipKernelNodeParams */
#define HIP_NODE(type, name) type name;
#include "device/hip/hip.def"
#undef HIP_NODE
} weft__hip_node;

/* HIP's functions. `cu` has them by the names of CUDA, with CUDA's arguments and numbers. All are set after
 * weft__hip_open_library has returned NULL, except for the functions that fill in properties: of these there
 * is at least one. */
typedef struct weft__hip_functions {
    weft__cuda_functions cu;
#define HIP_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/hip/hip.def"
#undef HIP_FUNCTION
#define HIP_PROPERTIES(name, at) unsigned (*name)(void *properties, int device);
#include "device/hip/hip.def"
#undef HIP_PROPERTIES
} weft__hip_functions;
extern weft__hip_functions weft__hip;

/* What tests change, in addition to gpu/backend/hooks.h. */
typedef struct weft__hip_hooks {
    const char *library; /* opened instead of the system's runtime; NULL: the system's */
    const char *missing; /* this function is reported as missing */
    const char *node;    /* stands for /dev/kfd */
    const char *bus;     /* stands for /sys/bus/pci/devices */
} weft__hip_hooks;
extern weft__hip_hooks weft__hip_hook;

/* ---- components.c ---- */

extern const weft_device_component weft__hip_components[];

/* ---- telemetry.c ---- */

bool weft__hip_telemetry(const weft_device *device, weft_telemetry *telemetry);

/* ---- library.c ---- */

/* Opens the runtime, or the compiler after it, once in the process. Returns NULL, or why this fails and what
 * helps. Thread-safe. */
const char *weft__hip_open_library(void);
const char *weft__hip_open_compiler(void);
void weft__hip_forget_libraries(void);
extern const weft_nvrtc weft__hiprtc;
extern weft_nccl weft__rccl;
/* For weft_shared_library.search: finds a library of ROCm. */
void *weft__hip_search(const weft_shared_library *library, char path[WEFT_LIBRARY_PATH]);
/* Writes versions, such as "HIP 6.3.42134" and "hipRTC 6.3". Each library must be open. */
enum { WEFT_HIP_VERSION = 40 };
void weft__hip_version(char text[WEFT_HIP_VERSION]);
void weft__hiprtc_version(char text[WEFT_HIP_VERSION]);

/* ---- blas.c ---- */

/* hipBLASLt by the names of cuBLASLt, with cuBLASLt's arguments and numbers. */
extern weft_blas weft__hipblas;
/* A proposal of hipBLASLt: hipblasLtMatmulHeuristicResult_t. */
enum { WEFT_HIPBLAS_ALGO = 24 }; /* bytes of hipblasLtMatmulAlgo_t */
typedef struct weft__hipblas_result {
    _Alignas(8) unsigned char algo[WEFT_HIPBLAS_ALGO];
    size_t workspace;
    unsigned state;
    float waves;
    int reserved[4];
} weft__hipblas_result;

/* ---- adapt.c ---- */

enum { WEFT_HIP_CARDS = 16 }; /* at most */
/* Sets the functions of weft__hip.cu that HIP has in another form. */
void weft__hip_adapt(void);
/* Writes the card's architecture with its features, such as "gfx90a:sramecc+:xnack-". Writes "" if the
 * runtime does not tell. */
enum { WEFT_HIP_ARCH = 64 };
void weft__hip_arch(int device, char arch[WEFT_HIP_ARCH]);

/* ---- devices.c ---- */

extern weft_gpu_devices weft__hip_kind;
/* Lists all cards that the runtime finds, in its order. It looks once in the process. Returns their number.
 * If it is 0, *why says what helps. */
int weft__hip_devices(const weft__cuda_found **list, const char **why);
/* Returns whether `gpu` and `auto` try HIP: there is an AMD card, and a runtime. Opens no library if there is
 * no card. */
bool weft__hip_driver(void);
/* Forgets the libraries and the devices without closing them. The next look finds them again. */
void weft__hip_forget(void);
#endif
