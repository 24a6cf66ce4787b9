/* cuBLASLt, NVIDIA's library of matmuls. The CUDA device uses it where it is installed and worth a call
 * (device/cuda/blas.c). The HIP device uses hipBLASLt, AMD's library, in the same way, with cuBLASLt's names
 * and numbers (device/hip/blas.c).
 * Must not know: graphs, layers. Read next: blas.c (the library), blas_problem.c (which matmuls, in its
 * terms), blas_plan.c (the algorithm and the call), docs/design/023-cublaslt.md, 047-hipblaslt.md. */
#ifndef WEFT_DEVICE_GPU_DRIVER_BLAS_BLAS_H
#define WEFT_DEVICE_GPU_DRIVER_BLAS_BLAS_H

#include "device/gpu/driver/api.h"
#include "device/device.h"
#include "device/shared_library.h"
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
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_CONSTANT
};
#endif

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

/* ---- blas.c ---- */

typedef struct weft__blas_functions {
#define BLAS_FUNCTION(result, name, hip, arguments) result(*name) arguments;
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_FUNCTION
} weft__blas_functions;

/* cuBLASLt or hipBLASLt. */
enum { WEFT_BLAS_WHY = 200 };
typedef struct weft_blas {
    const char *name;                      /* such as "cuBLASLt" */
    const char *prefix;                    /* of its functions, such as "cublasLt" */
    const weft__blas_functions *functions; /* NULL in the table: the library has no such function */
    weft_shared_library *library;
    /* Opens what the library needs. Returns NULL, or why this fails and what helps. NULL: it needs nothing.
     */
    const char *(*open_first)(void);
    bool (*knows)(const char *arch); /* has a version kernels for it, such as "gfx90a:xnack-"? NULL: always */
    /* Looks at the library's version. Returns whether Weft uses it for the architecture; "" stands for any.
     * If not, writes why, and what helps. NULL: each version fits. */
    bool (*check)(cublasLtHandle_t handle, const char *arch, char why[WEFT_BLAS_WHY]);
    bool (*grants)(const weft__blas_problem *problem); /* may it be asked for the problem? NULL: always */
    const char *revision; /* tells builds of a version apart; "": there is only one */
    unsigned no_memory;   /* its status for short memory */
    uint32_t alignment;   /* all operands must have it, in bytes */
    uint64_t workspace;   /* at most, in bytes; 0: that of NVIDIA's card */
    bool alone;           /* calls with the same handle must not run at the same time */
    const char *file;     /* for tests: opened instead of the usual names; NULL: the usual ones */
} weft_blas;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. Thread-safe. Call it
 * before all other functions here. */
const char *weft__blas_open(const weft_blas *blas);
/* Writes the version, such as "cuBLASLt 13.1.0". If there is a `check`, it comes first. */
enum { WEFT_BLAS_VERSION = 32 };
void weft__blas_version(const weft_blas *blas, char text[WEFT_BLAS_VERSION]);
/* Makes a handle for the current card. If this fails, returns NULL, and writes why. */
cublasLtHandle_t weft__blas_handle(const weft_blas *blas, const char *arch, char why[WEFT_BLAS_WHY]);

/* For tests. */
void weft__blas_forget(weft_blas *blas);

/* The part of an opened device. */
typedef struct weft__blas_state {
    bool opened;             /* the library was already looked for */
    const weft_blas *blas;   /* that of the card */
    cublasLtHandle_t handle; /* NULL: templates compute all matmuls */
    struct weft__blas_plan *plans;
    uint64_t workspace_most; /* in bytes, at most */
    double seconds;          /* spent on timing algorithms */
} weft__blas_state;

/* ---- blas_problem.c: calls no function of the library ---- */

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
