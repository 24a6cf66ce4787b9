/* OpenCL as Weft sees it: types and constants written by hand, and functions found in the library that is
 * opened at run time.
 * Must not know: Weft's devices. Read next: library.c. */
#ifndef WEFT_DEVICE_OPENCL_API_H
#define WEFT_DEVICE_OPENCL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

/* OPENCL_DEVICE_NAME stands for CL_DEVICE_NAME, and so on. */
enum {
#define OPENCL_CONSTANT(name, value) OPENCL_##name = (int)(value),
#include "device/opencl/opencl.def"
#undef OPENCL_CONSTANT
};

/* The functions. All are set after weft__opencl_open_library has returned NULL. */
typedef struct weft__opencl_functions {
#define OPENCL_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/opencl/opencl.def"
#undef OPENCL_FUNCTION
} weft__opencl_functions;
extern weft__opencl_functions weft__cl;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. */
const char *weft__opencl_open_library(void);
void weft__opencl_forget_library(void);

/* Writes a name to text and returns it: "out of resources" for CL_OUT_OF_RESOURCES, or "error -77" for an
 * error that opencl.def does not list. */
const char *weft__opencl_error_name(cl_int error, char text[64]);

#endif
