/* The simulated cuBLASLt (blas.c), as the simulated hipBLASLt (hip/blas.c) sees it.
 * Read next: blas.c. */
#ifndef WEFT_TESTS_CUDA_FAKE_BLAS_H
#define WEFT_TESTS_CUDA_FAKE_BLAS_H

#include "device/gpu/driver/blas/blas.h"

#include "fake.h"

#ifdef FAKE_HIP /* hip/blas.c has the names that are exported */
#define FAKE_BLAS_EXPORT __attribute__((visibility("hidden")))
#else
#define FAKE_BLAS_EXPORT __attribute__((visibility("default")))
#endif
#define BLAS_FUNCTION(result, name, hip, arguments) FAKE_BLAS_EXPORT result name arguments;
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_FUNCTION

extern fake_blas_state fake_blas;

enum { FAKE_SYNCHRONIZER = 64 << 10 };

struct cublasLtContext {
    int alive;
    void *synchronizer; /* memory of the card that each matmul of the handle uses; NULL: there is none */
};

struct weft__blas_desc {
    unsigned compute, scale;
    int32_t transposed[2], bias_type;
    int32_t epilogue;
    uint64_t bias, aux; /* addresses */
    int64_t aux_ld, aux_step;
};

struct weft__blas_layout {
    unsigned type;
    int32_t batch;
    uint64_t rows, columns;
    int64_t ld, step;
};

struct weft__blas_preference {
    uint64_t workspace;
    uint32_t schemes, alignment[4];
};

/* Reports a call that the library would refuse. The process then ends with status 1. */
unsigned fake_blas_refuse(const char *function, const char *why, ...);

#endif
