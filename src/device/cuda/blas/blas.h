/* cuBLASLt, NVIDIA's library of matmuls. The CUDA device uses it where it is installed and worth a call.
 * Must not know: graphs, layers. Read next: blas.c (the library), blas_problem.c (which matmuls, in its
 * terms), blas_plan.c (the algorithm and the call), docs/design/023-cublaslt.md. */
#ifndef WEFT_DEVICE_CUDA_BLAS_BLAS_H
#define WEFT_DEVICE_CUDA_BLAS_BLAS_H

#include "device/cuda/driver/api.h"
#include "device/device.h"
#include "kernel/source.h"

#ifndef CUBLAS_VERSION /* defined by the vendor's header; a test includes both */
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct weft__blas_desc *cublasLtMatmulDesc_t;
typedef struct weft__blas_layout *cublasLtMatrixLayout_t;
typedef struct weft__blas_preference *cublasLtMatmulPreference_t;
typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    unsigned state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
enum {
#define BLAS_CONSTANT(name, value) name = (value),
#include "device/cuda/blas/blas.def"
#undef BLAS_CONSTANT
};
#endif

/* ---- blas.c ---- */

typedef struct weft__blas_functions {
#define BLAS_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/cuda/blas/blas.def"
#undef BLAS_FUNCTION
} weft__blas_functions;
extern weft__blas_functions weft__blas;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. Call it
 * before all other functions here. */
const char *weft__blas_open(void);
/* Writes the version, such as "cuBLASLt 13.1". */
void weft__blas_version(char text[32]);

/* For tests. */
extern const char *weft__blas_file; /* opened instead of the usual names; NULL: the usual ones */
void weft__blas_forget(void);

/* The part of an opened device. */
typedef struct weft__blas_state {
    bool opened;             /* the library was already looked for */
    cublasLtHandle_t handle; /* NULL: templates compute all matmuls */
    struct weft__blas_plan *plans;
    uint64_t workspace_most; /* in bytes, at most */
    double seconds;          /* spent on timing algorithms */
} weft__blas_state;

/* ---- blas_problem.c: calls no function of the library ---- */

/* A matrix stored by columns, as cuBLASLt wants it. Element (row, column) is at column * ld + row. The same
 * element of the next matmul of a batch is `step` elements further. */
typedef struct weft__blas_matrix {
    int64_t rows, columns, ld, step;
    int32_t type, transposed;
} weft__blas_matrix;

/* D = epilogue(alpha op(A) op(B) + C + bias). C has the layout of D. Problems are compared by all their
 * bytes. */
typedef struct weft__blas_problem {
    weft__blas_matrix a, b, d;
    double alpha;
    int64_t batch;
    int32_t compute, scale, epilogue, based; /* based: there is a C */
} weft__blas_problem;

/* The numbers of the command's operands; -1: there is none. */
typedef struct weft__blas_operands {
    int a, b, d, c, bias, aux;
    bool narrow; /* the bias is f32, and must get the dtype of D */
} weft__blas_operands;

/* Returns whether cuBLASLt can compute the matmul, with its epilogue, and whether it is worth a call. Fills
 * in both structs. tf32: f32 may be rounded to TF32. */
bool weft__blas_problem_of(const weft_heavy_matmul *mm, bool tf32, weft__blas_problem *problem,
                           weft__blas_operands *operands);

/* ---- blas_call.c ---- */

struct weft__cuda;

/* Returns whether the operation and its epilogue may be one command. They may not if cuBLASLt can compute the
 * matmul but not its epilogue. */
bool weft__blas_suits(struct weft__cuda *d, const weft_heavy *heavy);
/* Returns the matmul without its epilogue, and with it in the form that it gets if both are one command. */
void weft__blas_forms(const weft_heavy_matmul *mm, weft_heavy_matmul *plain, weft_heavy_matmul *with);
/* Adds a kernel that converts the f32 bias to the dtype of D, in scratch memory. */
weft_status weft__blas_narrow(weft_launches *launches, const weft__blas_problem *p,
                              const weft__blas_operands *of);
/* Adds the launches of a matmul that cuBLASLt computes. Otherwise adds nothing. */
weft_status weft__blas_offer(struct weft__cuda *d, weft_launches *launches, const weft_command *command);

/* ---- blas_plan.c ---- */

void weft__blas_close(struct weft__cuda *d);

#endif
