/* How products are done, as the files of cuBLASLt share it. Read next: blas_plan.c, blas_time.c, blas_call.c.
 */
#ifndef WEFT_DEVICE_CUDA_BLAS_BLAS_PLAN_H
#define WEFT_DEVICE_CUDA_BLAS_BLAS_PLAN_H

#include "device/cuda/cuda.h"
#include "device/cuda/run.h"

/* All that a choice depends on besides library and card. The alignments are of addresses, in bytes, 16 where
 * that is more. */
typedef struct weft__blas_key {
    weft__blas_problem problem;
    uint32_t a, b, c, d, bias, aux;
} weft__blas_key;

typedef struct weft__blas_algorithm {
    cublasLtMatmulAlgo_t algo;
    uint64_t workspace;
} weft__blas_algorithm;

/* Where things lie; 0 where there are none. */
typedef struct weft__blas_places {
    CUdeviceptr a, b, d, c, bias, aux, workspace;
} weft__blas_places;

/* Which way, and what was measured; ms 0: nothing. */
typedef struct weft__blas_timing {
    double gain;     /* times as fast as the library's first */
    float ms, sweep; /* of the chosen one; of writing its result alone, as a kernel after it does at least */
    int32_t chosen, proposed; /* its number among so many; of none: the library has no way */
} weft__blas_timing;

typedef struct weft__blas_plan {
    weft_call call; /* blas_call.c */
    struct weft__blas_plan *next;
    weft__blas_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d; /* C lies as D does */
    weft__blas_algorithm way;
    weft__blas_timing timing;
    bool usable; /* the library has one */
} weft__blas_plan;

/* A vector beside the matrices: the bias, or the sums of b that its gradient is. */
static inline bool weft__blas_has_bias(const weft__blas_problem *p) {
    return p->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
}
static inline bool weft__blas_has_aux(const weft__blas_problem *p) { return p->epilogue & 128; }
/* The dimension that is summed over. */
static inline int64_t weft__blas_k(const weft__blas_problem *p) {
    return p->a.transposed == CUBLAS_OP_T ? p->a.rows : p->a.columns;
}

/* ---- blas_plan.c ---- */

/* The plan of a problem, which lives as long as the device; NULL: no library, or none for that. */
weft__blas_plan *weft__blas_plan_of(weft__cuda *d, const weft__blas_key *key);

/* Descriptors of plan->key: 0 or the library's error. They are given back in any case. */
unsigned weft__blas_describe(weft__blas_plan *plan);
void weft__blas_undescribe(weft__blas_plan *plan);

/* Submits it: 0 or the library's error. */
unsigned weft__blas_multiply(const weft__blas_state *state, const weft__blas_plan *plan,
                             const weft__blas_algorithm *way, const weft__blas_places *at, CUstream stream);

/* ---- blas_time.c ---- */

/* The fastest of several ways, the first where nothing can be measured. */
weft__blas_timing weft__blas_fastest(weft__cuda *d, const weft__blas_plan *plan,
                                     const weft__blas_algorithm *ways, int count);

#endif
