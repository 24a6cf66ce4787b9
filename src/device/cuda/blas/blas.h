/* cuBLASLt, NVIDIA's matrix products as a library: the way products run on the CUDA device where it is
 * installed. Read next: blas.c (the library), blas_problem.c (which products, as it wants them), blas_plan.c
 * (how each is done, and the call). */
#ifndef WEFT_DEVICE_CUDA_BLAS_BLAS_H
#define WEFT_DEVICE_CUDA_BLAS_BLAS_H

#include "device/cuda/driver/api.h"
#include "device/device.h"
#include "kernel/source.h"

#ifndef CUBLAS_VERSION /* the vendor's header, beside which a test includes this one */
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

/* Opens the library, once a process; NULL, or why that cannot be and what helps. Thread-safe. All else wants
 * it to have been opened. */
const char *weft__blas_open(void);
/* "cuBLASLt 13.1" */
void weft__blas_version(char text[32]);

/* For tests. */
extern const char *weft__blas_file; /* instead of the usual names; NULL: those */
void weft__blas_forget(void);

/* Of an opened device. */
typedef struct weft__blas_state {
    bool opened;             /* the library was looked for */
    cublasLtHandle_t handle; /* NULL: products are templates' */
    struct weft__blas_plan *plans;
    uint64_t workspace_most; /* bytes */
    double seconds;          /* spent on timing */
} weft__blas_state;

/* ---- blas_problem.c: no function of the library is called ---- */

/* A matrix in columns, as cuBLASLt sees it: element (row, column) at column * ld + row, `step` elements to
 * the same of the next product of a batch. */
typedef struct weft__blas_matrix {
    int64_t rows, columns, ld, step;
    int32_t type, transposed;
} weft__blas_matrix;

/* D = epilogue(alpha op(A) op(B) + C + bias), C as D is stored. All bytes count in comparisons. */
typedef struct weft__blas_problem {
    weft__blas_matrix a, b, d;
    double alpha;
    int64_t batch;
    int32_t compute, scale, epilogue, based; /* based: there is a C */
} weft__blas_problem;

/* Operands of the command: numbers of those that there are, else -1. */
typedef struct weft__blas_operands {
    int a, b, d, c, bias, aux;
    bool narrow; /* the bias is f32, and must be as D is */
} weft__blas_operands;

/* Whether it is a product that is worth a call and that cuBLASLt can be asked for, its epilogue, where it has
 * one, included; fills in both. tf32: f32 may be rounded to TF32. */
bool weft__blas_problem_of(const weft_heavy_matmul *mm, bool tf32, weft__blas_problem *problem,
                           weft__blas_operands *operands);

/* ---- blas_call.c ---- */

struct weft__cuda;

/* Whether an operation may be one command with its epilogue: not where cuBLASLt does the product and not what
 * follows. */
bool weft__blas_suits(struct weft__cuda *d, const weft_heavy *heavy);
/* Adds the launches of a product that cuBLASLt does; else nothing. */
weft_status weft__blas_offer(struct weft__cuda *d, weft_launches *launches, const weft_command *command);

/* ---- blas_plan.c ---- */

void weft__blas_close(struct weft__cuda *d);

#endif
