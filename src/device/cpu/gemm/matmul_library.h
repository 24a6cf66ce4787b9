/* The types in the prototypes of matmul_library.def.
 * Must not know: how a library is opened. Read next: matmul_library.c. */
#ifndef WEFT_DEVICE_CPU_GEMM_MATMUL_LIBRARY_H
#define WEFT_DEVICE_CPU_GEMM_MATMUL_LIBRARY_H

#include <stdint.h>

/* The start of dnnl_version_t. It is the same in 2.x and 3.x; the rest differs. */
typedef struct weft_dnnl_version {
    int major, minor, patch;
} weft_dnnl_version;

#endif
