/* The functions of HIP that have another form than CUDA's, over the simulated driver of tests/cuda. Numbers
 * and the form of structures are written here a second time, from hip/hip_runtime_api.h of ROCm 5.2 and 6.3.
 * Read next: fake_hip.h, cuda/driver.c. */
#include <stdio.h>
#include <string.h>

#include "cuda/driver.h"
#include "hip/fake_hip.h"

#define HIP __attribute__((visibility("default")))

HIP const char *hipGetErrorName(unsigned error);
HIP const char *hipGetErrorString(unsigned error);
HIP unsigned hipGetDevice(int *device);
HIP unsigned hipSetDevice(int device);
HIP unsigned hipDeviceReset(void);
HIP unsigned hipDeviceGetAttribute(int *value, unsigned attribute, int device);
HIP unsigned hipGetDevicePropertiesR0600(void *properties, int device);
HIP unsigned hipGetDeviceProperties(void *properties, int device);

/* "CUDA_ERROR_OUT_OF_MEMORY" as "hipErrorOutOfMemory" */
const char *hipGetErrorName(unsigned error) {
    static _Thread_local char text[80];
    const char *name;
    bool first = true;
    int n = snprintf(text, sizeof text, "hipError");
    if (cuGetErrorName(error, &name) != 0) return "hipErrorUnknown";
    for (name += strlen("CUDA_ERROR_"); *name && n < (int)sizeof text - 1; name++) {
        if (*name != '_') text[n++] = (char)(first ? *name : *name | 0x20);
        first = *name == '_';
    }
    text[n] = 0;
    return text;
}

const char *hipGetErrorString(unsigned error) {
    const char *text;
    return cuGetErrorString(error, &text) == 0 ? text : "unknown error";
}

/* ---- the current device ---- */

static _Thread_local struct {
    int device;
    bool pushed; /* its context */
} current;

unsigned hipGetDevice(int *device) {
    *device = current.device;
    return 0;
}

unsigned hipSetDevice(int device) {
    static CUcontext contexts[16];
    CUcontext context = NULL;
    const int n = fake_contexts(NULL);
    if (device < 0 || device >= n)
        return fake_refuse("hipSetDevice", CUDA_ERROR_INVALID_DEVICE, "device %d", device);
    if (current.pushed) cuCtxPopCurrent_v2(&context);
    pthread_mutex_lock(&fake_lock);
    if (!contexts[device]) cuDevicePrimaryCtxRetain(&contexts[device], device);
    pthread_mutex_unlock(&fake_lock);
    current.device = device;
    current.pushed = true;
    return cuCtxPushCurrent_v2(contexts[device]);
}

unsigned hipDeviceReset(void) { return cuDevicePrimaryCtxReset_v2(current.device); }

/* ---- properties ---- */

unsigned hipDeviceGetAttribute(int *value, unsigned attribute, int device) {
    (void)device;
    switch (attribute) {
    case 56: *value = 1024; break;               /* hipDeviceAttributeMaxThreadsPerBlock */
    case 63: *value = 2; break;                  /* hipDeviceAttributeMultiprocessorCount */
    case 74: *value = FAKE_SHARED_STATIC; break; /* hipDeviceAttributeMaxSharedMemoryPerBlock */
    case 87: *value = fake_hip_wave(); break;    /* hipDeviceAttributeWarpSize */
    default: return fake_refuse("hipDeviceGetAttribute", CUDA_ERROR_INVALID_VALUE, "attribute %u", attribute);
    }
    return 0;
}

static unsigned fill(void *properties, size_t bytes, size_t at, int device) {
    char *p = memset(properties, 0x5a, bytes);
    snprintf(p, 256, "Test driver, no card %c", 'A' + device);
    snprintf(p + at, 256, "%s", fake_hip_arch());
    return 0;
}

/* of ROCm 6 and 7, and of ROCm 5 */
unsigned hipGetDevicePropertiesR0600(void *properties, int device) {
    return fill(properties, 1472, 1160, device);
}
unsigned hipGetDeviceProperties(void *properties, int device) { return fill(properties, 792, 396, device); }

/* ---- graphs ---- */

typedef struct hip_node { /* hipKernelNodeParams */
    fake_dim threads;
    void **extra;
    void *function;
    fake_dim blocks;
    void **values;
    unsigned shared;
} hip_node;

HIP unsigned hipGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                                   const hip_node *parameters);
HIP unsigned hipGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                             const hip_node *parameters);

static CUDA_KERNEL_NODE_PARAMS_v2 as_cuda(const hip_node *p) {
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = p->function,
                                        .gridDimX = p->blocks.x,
                                        .gridDimY = p->blocks.y,
                                        .gridDimZ = p->blocks.z,
                                        .blockDimX = p->threads.x,
                                        .blockDimY = p->threads.y,
                                        .blockDimZ = p->threads.z,
                                        .sharedMemBytes = p->shared,
                                        .kernelParams = p->values,
                                        .extra = p->extra};
}

unsigned hipGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                               const hip_node *parameters) {
    const CUDA_KERNEL_NODE_PARAMS_v2 p = as_cuda(parameters);
    return cuGraphAddKernelNode_v2(node, graph, after, n_after, &p);
}

unsigned hipGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                         const hip_node *parameters) {
    const CUDA_KERNEL_NODE_PARAMS_v2 p = as_cuda(parameters);
    return cuGraphExecKernelNodeSetParams_v2(executable, node, &p);
}
