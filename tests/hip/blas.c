/* hipBLASLt for tests: its functions over the simulated cuBLASLt of tests/cuda. Numbers and the form of
 * structures are written here a second time, from hipblaslt.h and hipblas-common.h of ROCm 6.3. It refuses
 * what hipBLASLt cannot do on all cards. The matmuls of a handle use the same memory of the card, as some
 * kernels of hipBLASLt do: with FAKE_CUDA_RACES it is reported if two of them run at the same time. This file
 * must not know Weft, except for its declarations. Read next: fake_hip.h, cuda/blas.c. */
#include <stdio.h>
#include <string.h>

#include "cuda/fake_blas.h"
#include "hip/fake_hip.h"

#define HIP   __attribute__((visibility("default")))
#define ENTRY HIP unsigned

/* of hipBLASLt */
enum { SUCCESS = 0, NOT_INITIALIZED = 1, NO_MEMORY = 2, INVALID = 3, FAILED = 5, NOT_SUPPORTED = 7 };

typedef struct hip_algo {
    uint8_t data[16];
    size_t max_workspace_bytes;
} hip_algo;

typedef struct hip_result {
    hip_algo algo;
    size_t workspaceSize;
    unsigned state;
    float wavesCount;
    int reserved[4];
} hip_result;

typedef cublasLtMatmulDesc_t desc_t;
typedef cublasLtMatrixLayout_t layout_t;
typedef cublasLtMatmulPreference_t preference_t;

ENTRY hipblasLtGetVersion(void *handle, int *version);
ENTRY hipblasLtGetGitRevision(void *handle, char *revision);
ENTRY hipblasLtCreate(cublasLtHandle_t *handle);
ENTRY hipblasLtDestroy(cublasLtHandle_t handle);
ENTRY hipblasLtMatmulDescCreate(desc_t *desc, unsigned compute, unsigned scale);
ENTRY hipblasLtMatmulDescDestroy(desc_t desc);
ENTRY hipblasLtMatmulDescSetAttribute(desc_t desc, unsigned attribute, const void *value, size_t bytes);
ENTRY hipblasLtMatrixLayoutCreate(layout_t *layout, unsigned type, uint64_t rows, uint64_t columns,
                                  int64_t ld);
ENTRY hipblasLtMatrixLayoutDestroy(layout_t layout);
ENTRY hipblasLtMatrixLayoutSetAttribute(layout_t layout, unsigned attribute, const void *value, size_t bytes);
ENTRY hipblasLtMatmulPreferenceCreate(preference_t *preference);
ENTRY hipblasLtMatmulPreferenceDestroy(preference_t preference);
ENTRY hipblasLtMatmulPreferenceSetAttribute(preference_t preference, unsigned attribute, const void *value,
                                            size_t bytes);
ENTRY hipblasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, desc_t desc, layout_t a, layout_t b,
                                      layout_t c, layout_t d, preference_t preference, int most,
                                      hip_result *results, int *count);
ENTRY hipblasLtMatmul(cublasLtHandle_t handle, desc_t desc, const void *alpha, const void *a,
                      layout_t a_layout, const void *b, layout_t b_layout, const void *beta, const void *c,
                      layout_t c_layout, void *d, layout_t d_layout, const hip_algo *algo, void *workspace,
                      size_t workspace_bytes, CUstream stream);

/* of the simulated runtime */
unsigned hipInit(unsigned flags);
unsigned hipGetDevice(int *device);
unsigned hipSetDevice(int device);
unsigned hipMalloc(CUdeviceptr *address, size_t bytes);
unsigned hipFree(CUdeviceptr address);

static unsigned status_of(unsigned cuda) {
    switch (cuda) {
    case CUBLAS_STATUS_SUCCESS: return SUCCESS;
    case CUBLAS_STATUS_NOT_INITIALIZED: return NOT_INITIALIZED;
    case CUBLAS_STATUS_ALLOC_FAILED: return NO_MEMORY;
    case CUBLAS_STATUS_INVALID_VALUE: return INVALID;
    case CUBLAS_STATUS_NOT_SUPPORTED: return NOT_SUPPORTED;
    default: return FAILED;
    }
}

/* ---- handles ---- */

unsigned hipblasLtGetVersion(void *handle, int *version) {
    const char *wish = getenv("FAKE_HIPBLASLT_VERSION");
    if (!handle) return NOT_INITIALIZED;
    *version = wish ? atoi(wish) : 1000;
    return SUCCESS;
}

unsigned hipblasLtGetGitRevision(void *handle, char *revision) {
    if (!handle) return NOT_INITIALIZED;
    memcpy(revision, "a0b1c2d3-tests", sizeof "a0b1c2d3-tests");
    return SUCCESS;
}

unsigned hipblasLtCreate(cublasLtHandle_t *handle) {
    int device = 0;
    CUdeviceptr memory = 0;
    unsigned error = cublasLtCreate(handle);
    if (error) return status_of(error);
    if (hipInit(0) != 0 || hipGetDevice(&device) != 0 || hipSetDevice(device) != 0 ||
        hipMalloc(&memory, FAKE_SYNCHRONIZER) != 0) {
        cublasLtDestroy(*handle);
        return NO_MEMORY;
    }
    (*handle)->synchronizer = (void *)(uintptr_t)memory;
    return SUCCESS;
}

unsigned hipblasLtDestroy(cublasLtHandle_t handle) {
    if (hipFree((CUdeviceptr)(uintptr_t)handle->synchronizer) != 0)
        return fake_blas_refuse(__func__, "a handle of another card");
    return cublasLtDestroy(handle);
}

/* ---- descriptors ---- */

unsigned hipblasLtMatmulDescCreate(desc_t *desc, unsigned compute, unsigned scale) {
    if (compute != 2) return fake_blas_refuse(__func__, "compute type %u", compute); /* HIPBLAS_COMPUTE_32F */
    return cublasLtMatmulDescCreate(desc, CUBLAS_COMPUTE_32F, scale);
}

unsigned hipblasLtMatmulDescDestroy(desc_t desc) { return cublasLtMatmulDescDestroy(desc); }

unsigned hipblasLtMatmulDescSetAttribute(desc_t desc, unsigned attribute, const void *value, size_t bytes) {
    static const unsigned cuda[] = {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB,
                                    CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE};
    int32_t number = 0;
    if (attribute >= sizeof cuda / sizeof *cuda) return fake_blas_refuse(__func__, "attribute %u", attribute);
    if (bytes == sizeof number) memcpy(&number, value, sizeof number);
    if (attribute == 2 && number != 1 && number != 4 && number != 512)
        return fake_blas_refuse(__func__, "epilogue %d", number);
    if (attribute < 2) {
        if (number != 111 && number != 112) return fake_blas_refuse(__func__, "operation %d", number);
        number = number == 112; /* HIPBLAS_OP_T */
        value = &number;
    }
    return status_of(cublasLtMatmulDescSetAttribute(desc, cuda[attribute], value, bytes));
}

unsigned hipblasLtMatrixLayoutCreate(layout_t *layout, unsigned type, uint64_t rows, uint64_t columns,
                                     int64_t ld) {
    /* HIP_R_32F, HIP_R_16F, HIP_R_16BF */
    if (type != 0 && type != 2 && type != 14) return fake_blas_refuse(__func__, "type %u", type);
    return status_of(cublasLtMatrixLayoutCreate(layout, type, rows, columns, ld));
}

unsigned hipblasLtMatrixLayoutDestroy(layout_t layout) { return cublasLtMatrixLayoutDestroy(layout); }

unsigned hipblasLtMatrixLayoutSetAttribute(layout_t layout, unsigned attribute, const void *value,
                                           size_t bytes) {
    if (attribute > 1) return fake_blas_refuse(__func__, "attribute %u", attribute);
    return status_of(cublasLtMatrixLayoutSetAttribute(
        layout, attribute ? CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET : CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
        value, bytes));
}

unsigned hipblasLtMatmulPreferenceCreate(preference_t *preference) {
    const unsigned error = cublasLtMatmulPreferenceCreate(preference);
    if (error) return status_of(error);
    (*preference)->schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    for (int i = 0; i < 4; i++) (*preference)->alignment[i] = 16;
    return SUCCESS;
}

unsigned hipblasLtMatmulPreferenceDestroy(preference_t preference) {
    return cublasLtMatmulPreferenceDestroy(preference);
}

unsigned hipblasLtMatmulPreferenceSetAttribute(preference_t preference, unsigned attribute, const void *value,
                                               size_t bytes) {
    if (attribute != 1) return fake_blas_refuse(__func__, "attribute %u", attribute);
    return status_of(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, value, bytes));
}

/* ---- matmuls ---- */

enum { MOST = 64 };

/* Returns whether hipBLASLt of ROCm 6.3 has kernels for an architecture. Without them the real one ends. */
static bool has_kernels(const char *arch) {
    static const char *const known[] = {"gfx908",  "gfx90a",  "gfx940",  "gfx941", "gfx942",
                                        "gfx1100", "gfx1101", "gfx1200", "gfx1201"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(arch, known[i], strlen(known[i])) == 0) return true;
    return false;
}

/* The first two numbers of an algorithm of cuda/blas.c, which follow from the problem, are those of
 * hipBLASLt. The third is the alignment. */
unsigned hipblasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, desc_t desc, layout_t a, layout_t b,
                                         layout_t c, layout_t d, preference_t preference, int most,
                                         hip_result *results, int *count) {
    cublasLtMatmulHeuristicResult_t found[MOST];
    const char *arch = fake_hip_arch();
    *count = 0;
    if (!has_kernels(arch)) return fake_blas_refuse(__func__, "there are no kernels for %s", arch);
    if (d->batch > 1 && (!a->step || !b->step))
        return fake_blas_refuse(__func__, "a matrix that matmuls share");
    if (most > MOST) return fake_blas_refuse(__func__, "%d proposals", most);
    const unsigned error =
        cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, preference, most, found, count);
    for (int i = 0; i < *count && !error; i++) {
        memset(&results[i], 0x5a, sizeof results[i]);
        memcpy(results[i].algo.data, found[i].algo.data, sizeof results[i].algo.data);
        results[i].algo.max_workspace_bytes = (size_t)preference->workspace;
        results[i].workspaceSize = found[i].workspaceSize;
        results[i].state = SUCCESS;
        results[i].wavesCount = 1;
    }
    return status_of(error);
}

unsigned hipblasLtMatmul(cublasLtHandle_t handle, desc_t desc, const void *alpha, const void *a,
                         layout_t a_layout, const void *b, layout_t b_layout, const void *beta, const void *c,
                         layout_t c_layout, void *d, layout_t d_layout, const hip_algo *algo, void *workspace,
                         size_t workspace_bytes, CUstream stream) {
    cublasLtMatmulAlgo_t cuda = {{0}};
    memcpy(cuda.data, algo->data, sizeof algo->data);
    cuda.data[2] = UINT64_C(0x0010001000100010);
    if (algo->max_workspace_bytes < workspace_bytes)
        return fake_blas_refuse(__func__, "an algorithm for less workspace");
    return status_of(cublasLtMatmul(handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d,
                                    d_layout, &cuda, workspace, workspace_bytes, stream));
}
