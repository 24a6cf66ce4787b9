/* Functions of CUDA that HIP has in another form, written with HIP's. HIP knows no contexts of their own:
 * each thread has a current device. So a context here is a card, and push and pop change the device. Must not
 * know: Weft's devices. Read next: hip.def. */
#include <stdio.h>
#include <string.h>

#include "device/hip/hip.h"

struct CUctx_st {
    int device;
};

static struct CUctx_st contexts[WEFT_HIP_CARDS];

/* ---- errors ---- */

static CUresult error_name(CUresult error, const char **name) {
    *name = weft__hip.hipGetErrorName(error);
    return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult error_string(CUresult error, const char **text) {
    *text = weft__hip.hipGetErrorString(error);
    return *text ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* ---- contexts ---- */

enum { DEPTH = 16 }; /* nested pushes of a thread */
static _Thread_local struct {
    int before[DEPTH]; /* the device before each push */
    int depth;
} pushed;

static CUresult context_push(CUcontext context) {
    int before = 0;
    if (!context || pushed.depth == DEPTH) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult error = weft__hip.hipGetDevice(&before);
    if (!error) error = weft__hip.hipSetDevice(context->device);
    if (!error) pushed.before[pushed.depth++] = before;
    return error;
}

static CUresult context_pop(CUcontext *context) {
    int now = 0;
    if (!pushed.depth) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult error = weft__hip.hipGetDevice(&now);
    *context = !error && now < WEFT_HIP_CARDS ? &contexts[now] : NULL;
    const CUresult restored = weft__hip.hipSetDevice(pushed.before[--pushed.depth]);
    return error ? error : restored;
}

/* The runtime makes a card's state at its first use. */
static CUresult context_retain(CUcontext *context, CUdevice device) {
    CUcontext was;
    if (device < 0 || device >= WEFT_HIP_CARDS) return CUDA_ERROR_INVALID_DEVICE;
    contexts[device].device = device;
    *context = &contexts[device];
    const CUresult error = context_push(*context);
    return error ? error : context_pop(&was);
}

/* The runtime frees the state when the process ends. */
static CUresult context_release(CUdevice device) {
    (void)device;
    return 0;
}

static CUresult context_reset(CUdevice device) {
    CUcontext was;
    CUresult error = context_push(&contexts[device]);
    if (error) return error;
    error = weft__hip.hipDeviceReset();
    const CUresult popped = context_pop(&was);
    return error ? error : popped;
}

/* ---- properties ---- */

static CUresult attribute(int *value, CUdevice_attribute wanted, CUdevice device) {
    static const struct {
        unsigned cuda, hip;
    } attributes[] = {
#define HIP_ATTRIBUTE(cuda, name, value) {CU_DEVICE_ATTRIBUTE_##cuda, value},
#include "device/hip/hip.def"
#undef HIP_ATTRIBUTE
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].cuda == wanted)
            return weft__hip.hipDeviceGetAttribute(value, attributes[i].hip, device);
    return CUDA_ERROR_INVALID_VALUE;
}

/* A launch may request all of a group's memory. It needs no permission, and there is no cache to take it
 * from. */
static CUresult function_set(CUfunction function, CUfunction_attribute what, int value) {
    const bool known = what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
                       what == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    (void)value;
    return function && known ? 0 : CUDA_ERROR_INVALID_VALUE;
}

void weft__hip_arch(int device, char arch[WEFT_HIP_ARCH]) {
    static const struct {
        size_t function, at;
    } forms[] = {
#define HIP_PROPERTIES(name, at) {offsetof(weft__hip_functions, name), at},
#include "device/hip/hip.def"
#undef HIP_PROPERTIES
    };
    union { /* larger than any version of the structure */
        char bytes[8192];
        long long align;
    } properties;
    arch[0] = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        unsigned (*fill)(void *, int);
        memcpy(&fill, (const char *)&weft__hip + forms[i].function, sizeof fill);
        if (!fill) continue;
        memset(&properties, 0, sizeof properties);
        const char *at = properties.bytes + forms[i].at;
        if (fill(&properties, device) == 0 && strncmp(at, "gfx", 3) == 0)
            snprintf(arch, WEFT_HIP_ARCH, "%.*s", WEFT_HIP_ARCH - 1, at);
        return;
    }
}

/* ---- graphs ---- */

static weft__hip_node node_of(const CUDA_KERNEL_NODE_PARAMS_v2 *p) {
    return (weft__hip_node){.func = p->func,
                            .gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ},
                            .blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ},
                            .sharedMemBytes = p->sharedMemBytes,
                            .kernelParams = p->kernelParams,
                            .extra = p->extra};
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
    const weft__hip_node p = node_of(parameters);
    return weft__hip.hipGraphAddKernelNode(node, graph, after, n_after, &p);
}

static CUresult set_kernel(CUgraphExec executable, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
    const weft__hip_node p = node_of(parameters);
    return weft__hip.hipGraphExecKernelNodeSetParams(executable, node, &p);
}

void weft__hip_adapt(void) {
    weft__cuda_functions *cu = &weft__hip.cu;
    cu->cuGetErrorName = error_name;
    cu->cuGetErrorString = error_string;
    cu->cuDeviceGetAttribute = attribute;
    cu->cuDevicePrimaryCtxRetain = context_retain;
    cu->cuDevicePrimaryCtxRelease_v2 = context_release;
    cu->cuDevicePrimaryCtxReset_v2 = context_reset;
    cu->cuCtxPushCurrent_v2 = context_push;
    cu->cuCtxPopCurrent_v2 = context_pop;
    cu->cuFuncSetAttribute = function_set;
    cu->cuGraphAddKernelNode_v2 = add_kernel;
    cu->cuGraphExecKernelNodeSetParams_v2 = set_kernel;
}
