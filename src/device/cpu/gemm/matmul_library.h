/* What the prototypes of matmul_library.def need. */
#ifndef WEFT_DEVICE_CPU_GEMM_MATMUL_LIBRARY_H
#define WEFT_DEVICE_CPU_GEMM_MATMUL_LIBRARY_H

#include <stdint.h>

/* The start of dnnl_version_t in 2.x and 3.x; what follows differs. */
typedef struct weft_dnnl_version {
    int major, minor, patch;
} weft_dnnl_version;

#endif
