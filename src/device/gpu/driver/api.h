/* The CUDA driver as Weft sees it: types and constants written by hand, and functions found in the library
 * that is opened at run time. HIP's driver gets the same form.
 * Must not know: Weft's devices. Read next: cuda/library.c, hip/library.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_API_H
#define WEFT_DEVICE_GPU_DRIVER_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

#ifndef __cuda_cuda_h__ /* defined by the vendor's header; a test includes both */
typedef unsigned CUresult;
typedef unsigned CUdevice_attribute;
typedef unsigned CUfunction_attribute;
typedef unsigned CUstreamCaptureMode;
typedef struct CUDA_KERNEL_NODE_PARAMS_v2 {
#define CUDA_NODE(type, name) type name;
#include "device/gpu/driver/cuda.def"
#undef CUDA_NODE
} CUDA_KERNEL_NODE_PARAMS_v2;
enum {
#define CUDA_CONSTANT(name, value) name = (value),
#include "device/gpu/driver/cuda.def"
#undef CUDA_CONSTANT
};
#endif

/* The functions of a driver: of CUDA, or of HIP by the names that CUDA's functions have. */
typedef struct weft__cuda_functions {
#define CUDA_FUNCTION(name, hip, arguments) CUresult(*name) arguments;
#include "device/gpu/driver/cuda.def"
#undef CUDA_FUNCTION
} weft__cuda_functions;

/* open.c: writes an error such as "CUDA_ERROR_NOT_FOUND: named symbol not found" to text, and returns it. */
const char *weft__cuda_error_name(const weft__cuda_functions *cu, CUresult error, char text[160]);

#endif
