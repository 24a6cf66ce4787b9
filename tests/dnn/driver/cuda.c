/* libcuda.so.1 for test_dnn_plans: the driver calls that cuDNN makes while it compiles plans for a GPU that
 * is only described. Loaded kernels are ignored. Calls that NVIDIA's stub library refuses are refused. */
#include <stddef.h>

#define API __attribute__((visibility("default"))) int

enum { STUB_LIBRARY = 34 };

/* Returns a dummy handle. */
#define GIVES(name)                                                                                          \
    API name(void **handle);                                                                                 \
    API name(void **handle) {                                                                                \
        static char nothing;                                                                                 \
        *handle = &nothing;                                                                                  \
        return 0;                                                                                            \
    }
#define ANSWERS(name, status)                                                                                \
    API name(void);                                                                                          \
    API name(void) { return status; }

GIVES(cuLibraryLoadData)
GIVES(cuLibraryGetKernel)
GIVES(cuKernelGetFunction)
GIVES(cuModuleLoadData)
GIVES(cuModuleGetFunction)

API cuKernelGetAttribute(int *value);
API cuKernelGetAttribute(int *value) { return *value = 0; }
API cuFuncGetAttribute(int *value);
API cuFuncGetAttribute(int *value) { return *value = 0; }
API cuLibraryGetGlobal(void **at, size_t *bytes);
API cuLibraryGetGlobal(void **at, size_t *bytes) {
    static char nothing[4];
    *at = nothing;
    *bytes = sizeof nothing;
    return 0;
}
ANSWERS(cuKernelSetAttribute, 0)
ANSWERS(cuFuncSetAttribute, 0)
ANSWERS(cuLibraryUnload, 0)
ANSWERS(cuModuleUnload, 0)
ANSWERS(cuFuncSetCacheConfig, 0)

ANSWERS(cuCtxGetCurrent, STUB_LIBRARY)
ANSWERS(cuCtxGetLimit, STUB_LIBRARY)
ANSWERS(cuCtxPopCurrent, STUB_LIBRARY)
ANSWERS(cuCtxPushCurrent, STUB_LIBRARY)
ANSWERS(cuDeviceGet, STUB_LIBRARY)
ANSWERS(cuDeviceGetCount, STUB_LIBRARY)
ANSWERS(cuDriverGetVersion, STUB_LIBRARY)
ANSWERS(cuGetErrorName, STUB_LIBRARY)
ANSWERS(cuGetErrorString, STUB_LIBRARY)
ANSWERS(cuLaunchCooperativeKernel, STUB_LIBRARY)
ANSWERS(cuLaunchKernel, STUB_LIBRARY)
ANSWERS(cuLaunchKernelEx, STUB_LIBRARY)
ANSWERS(cuLibraryLoadFromFile, STUB_LIBRARY)
ANSWERS(cuLinkAddData, STUB_LIBRARY)
ANSWERS(cuLinkComplete, STUB_LIBRARY)
ANSWERS(cuLinkCreate, STUB_LIBRARY)
ANSWERS(cuLinkDestroy, STUB_LIBRARY)
ANSWERS(cuOccupancyMaxPotentialClusterSize, STUB_LIBRARY)
ANSWERS(cuStreamGetCtx, STUB_LIBRARY)
ANSWERS(cuInit, STUB_LIBRARY)
ANSWERS(cuLinkCreate_v2, STUB_LIBRARY)
ANSWERS(cuLinkAddData_v2, STUB_LIBRARY)
ANSWERS(cuLinkAddFile_v2, STUB_LIBRARY)
ANSWERS(cuModuleLoadFatBinary, STUB_LIBRARY)
ANSWERS(cuModuleLoadDataEx, STUB_LIBRARY)
ANSWERS(cuCtxGetDevice, STUB_LIBRARY)
ANSWERS(cuDevicePrimaryCtxRetain, STUB_LIBRARY)
ANSWERS(cuDevicePrimaryCtxRelease, STUB_LIBRARY)
ANSWERS(cuDevicePrimaryCtxReset, STUB_LIBRARY)
ANSWERS(cuDeviceGetAttribute, STUB_LIBRARY)
ANSWERS(cuStreamSynchronize, STUB_LIBRARY)
ANSWERS(cuOccupancyMaxActiveBlocksPerMultiprocessor, STUB_LIBRARY)
ANSWERS(cuTensorMapEncodeTiled, STUB_LIBRARY)
ANSWERS(cuTensorMapEncodeIm2col, STUB_LIBRARY)
ANSWERS(cuMemcpyDtoH_v2, STUB_LIBRARY)
ANSWERS(cuModuleGetGlobal_v2, STUB_LIBRARY)
