/* Plans of matmuls, shared by the files of cuBLASLt.
 * Must not know: graphs, layers. Read next: blas_plan.c, blas_time.c, blas_call.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_BLAS_BLAS_PLAN_H
#define WEFT_DEVICE_GPU_DRIVER_BLAS_BLAS_PLAN_H

#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/run.h"

/* All that a choice depends on besides the library and the card. a to aux are the alignments of addresses in
 * bytes, at most 16. */
typedef struct weft__blas_key {
    weft__blas_problem problem;
    uint32_t a, b, c, d, bias, aux;
} weft__blas_key;

typedef struct weft__blas_algorithm {
    cublasLtMatmulAlgo_t algo;
    uint64_t workspace;
} weft__blas_algorithm;

/* The addresses of operands; 0: there is none. */
typedef struct weft__blas_places {
    CUdeviceptr a, b, d, c, bias, aux, workspace;
} weft__blas_places;

/* The choice and its measurements. ms is 0 if nothing was measured. */
typedef struct weft__blas_timing {
    double gain;     /* speed relative to the library's first proposal */
    float ms, sweep; /* of the chosen algorithm; of only writing its result, the least that a kernel after it
                        takes */
    int32_t chosen, proposed; /* the choice and the number of proposals; if there are none, the library cannot
                                 compute it */
} weft__blas_timing;

typedef struct weft__blas_plan {
    weft_call call; /* see blas_call.c */
    struct weft__blas_plan *next;
    weft__blas_key key;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d; /* C has the layout of D */
    weft__blas_algorithm algorithm;
    weft__blas_timing timing;
    bool usable; /* the library can compute it */
} weft__blas_plan;

/* Returns whether there is a vector: the bias, or the sums of b that are the bias gradient. */
static inline bool weft__blas_has_bias(const weft__blas_problem *p) {
    return p->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
}
static inline bool weft__blas_has_aux(const weft__blas_problem *p) { return p->epilogue & 128; }
/* Returns the extent of the dimension that is summed over. */
static inline int64_t weft__blas_k(const weft__blas_problem *p) {
    return p->a.transposed == CUBLAS_OP_T ? p->a.rows : p->a.columns;
}

/* ---- blas_plan.c ---- */

/* Returns the plan of a problem, or NULL if the library is missing or cannot compute it. The plan lives as
 * long as the device. */
weft__blas_plan *weft__blas_plan_of(weft__cuda *d, const weft__blas_key *key);

/* Make the descriptors of plan->key. Return 0 or the library's error. Call weft__blas_undescribe in any
 * case. */
unsigned weft__blas_describe(const weft__blas_functions *f, weft__blas_plan *plan);
void weft__blas_undescribe(const weft__blas_functions *f, weft__blas_plan *plan);

/* Submits the matmul. Returns 0 or the library's error. */
unsigned weft__blas_multiply(const weft__blas_state *state, const weft__blas_plan *plan,
                             const weft__blas_algorithm *algorithm, const weft__blas_places *at,
                             CUstream stream);

/* ---- blas_time.c ---- */

/* Times several algorithms. Returns the fastest one, or the first if nothing can be measured. */
weft__blas_timing weft__blas_fastest(weft__cuda *d, const weft__blas_plan *plan,
                                     const weft__blas_algorithm *algorithms, int count);

#endif
