/* hipBLASLt, AMD's library of matmuls, in the form of cuBLASLt. So gpu/driver/blas serves both. blas.def has
 * the functions that are the same in both, and the numbers that differ. The form of hipBLASLt has not changed
 * from ROCm 6.1 to 7.1. Must not know: matmuls. Read next: gpu/driver/blas/blas.h,
 * docs/design/047-hipblaslt.md. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/hip/hip.h"

/* Versions in the form of cuBLASLt: 10000 * major + 100 * minor. Kernels of older ones add parts of k by
 * atomic additions, in any order. A newer major version may have other numbers. */
enum { OLDEST = 700, TOO_NEW = 20000, ALIGNMENT = 16, WORKSPACE = 32 << 20, REVISION = 256 };

static struct {
    weft__blas_functions as_cuda;
#define BLAS_HIP(result, name, arguments) result(*name) arguments;
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_HIP
} hipblas;

static int version;             /* of the library; 0: not asked yet */
static char revision[REVISION]; /* of its source; builds of a version may number their kernels differently */

/* ---- numbers ---- */

typedef enum number_kind { OPERATION, COMPUTE, LAYOUT, DESC, PREFERENCE } number_kind;

/* Returns the number that hipBLASLt has for a constant of cuBLASLt; -1: it has none. */
static int hip_blas_number(number_kind kind, unsigned constant) {
    static const struct {
        number_kind kind;
        unsigned cuda;
        int hip;
    } numbers[] = {
#define BLAS_NUMBER(kind, name, hip, value) {kind, name, value},
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_NUMBER
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].kind == kind && numbers[i].cuda == constant) return numbers[i].hip;
    return -1;
}

enum {
#define BLAS_STATUS(name, value) name = (value),
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_STATUS
};

static const char *status_name(unsigned status) {
    switch (status) {
#define BLAS_STATUS(name, value)                                                                             \
    case name:                                                                                               \
        return #name;
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_STATUS
    default: return "an unknown status";
    }
}

/* ---- functions in another form ---- */

static size_t get_version(void) { return (size_t)version; }

static unsigned desc_create(cublasLtMatmulDesc_t *desc, unsigned compute, unsigned scale) {
    const int number = hip_blas_number(COMPUTE, compute);
    if (number < 0) return HIPBLAS_STATUS_NOT_SUPPORTED;
    return hipblas.hipblasLtMatmulDescCreate(desc, (unsigned)number, scale);
}

static unsigned desc_set(cublasLtMatmulDesc_t desc, unsigned attribute, const void *value, size_t bytes) {
    const int number = hip_blas_number(DESC, attribute);
    int32_t operation;
    if (number < 0) return HIPBLAS_STATUS_NOT_SUPPORTED;
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA || attribute == CUBLASLT_MATMUL_DESC_TRANSB) {
        memcpy(&operation, value, sizeof operation);
        operation = hip_blas_number(OPERATION, (unsigned)operation);
        value = &operation;
    }
    return hipblas.hipblasLtMatmulDescSetAttribute(desc, (unsigned)number, value, bytes);
}

static unsigned layout_set(cublasLtMatrixLayout_t layout, unsigned attribute, const void *value,
                           size_t bytes) {
    const int number = hip_blas_number(LAYOUT, attribute);
    if (number < 0) return HIPBLAS_STATUS_NOT_SUPPORTED;
    return hipblas.hipblasLtMatrixLayoutSetAttribute(layout, (unsigned)number, value, bytes);
}

/* hipBLASLt has no other preference than the workspace. It does not need the rest: all operands are aligned,
 * and its kernels add up parts of k in f32. */
static unsigned preference_set(cublasLtMatmulPreference_t preference, unsigned attribute, const void *value,
                               size_t bytes) {
    const int number = hip_blas_number(PREFERENCE, attribute);
    if (number < 0) return HIPBLAS_STATUS_SUCCESS;
    return hipblas.hipblasLtMatmulPreferenceSetAttribute(preference, (unsigned)number, value, bytes);
}

enum { PROPOSALS = 32 };

static unsigned propose(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                        cublasLtMatmulPreference_t preference, int most,
                        cublasLtMatmulHeuristicResult_t *results, int *count) {
    weft__hipblas_result found[PROPOSALS];
    memset(found, 0, sizeof found);
    if (most > PROPOSALS) most = PROPOSALS;
    *count = 0;
    const unsigned error =
        hipblas.hipblasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, preference, most, found, count);
    for (int i = 0; i < *count && !error; i++) {
        memset(&results[i], 0, sizeof results[i]);
        memcpy(&results[i].algo, found[i].algo, sizeof found[i].algo);
        results[i].workspaceSize = found[i].workspace;
        results[i].state = found[i].state;
        results[i].wavesCount = found[i].waves;
    }
    return error;
}

/* ---- what Weft asks it for ---- */

/* hipBLASLt computes GELU in f16 on some cards, has no TF32 on most and no f64, and does not document that
 * the matmuls of a batch may share a matrix. */
static bool grants(const weft__blas_problem *p) {
    const bool shared = p->batch > 1 && (!p->a.step || !p->b.step);
    const bool plain = p->epilogue == CUBLASLT_EPILOGUE_DEFAULT || p->epilogue == CUBLASLT_EPILOGUE_BIAS ||
                       p->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    return p->compute == CUBLAS_COMPUTE_32F && plain && !shared;
}

/* Returns whether a version has kernels for an architecture. Without them the library may end the process. */
static bool serves(int of, const char *arch) {
    static const struct {
        const char *name;
        int oldest;
    } served[] = {
#define BLAS_ARCH(name, version) {#name, version},
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_ARCH
    };
    const size_t n = strcspn(arch, ":");
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (n == strlen(served[i].name) && strncmp(arch, served[i].name, n) == 0)
            return of >= served[i].oldest;
    return n == 0;
}

static bool knows(const char *arch) { return serves(TOO_NEW, arch); }

static bool check(cublasLtHandle_t handle, const char *arch, char why[WEFT_BLAS_WHY]) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int number = 0;
    pthread_mutex_lock(&lock);
    unsigned error = hipblas.hipblasLtGetVersion(handle, &number);
    if (!error) error = hipblas.hipblasLtGetGitRevision(handle, revision);
    const int of = version = number / 100000 * 10000 + number % 100000;
    pthread_mutex_unlock(&lock);
    if (error)
        snprintf(why, WEFT_BLAS_WHY, "hipblasLtGetVersion returned %s: install hipBLASLt of ROCm 6.1 to 7",
                 status_name(error));
    else if (of < OLDEST || of >= TOO_NEW)
        snprintf(why, WEFT_BLAS_WHY,
                 "hipBLASLt is version %d.%d.%d, and Weft knows 0.7 to 1: install that of ROCm 6.1 to 7",
                 of / 10000, of / 100 % 100, of % 100);
    else if (!serves(of, arch))
        snprintf(why, WEFT_BLAS_WHY, "hipBLASLt %d.%d.%d has no kernels for %.*s: install a newer ROCm",
                 of / 10000, of / 100 % 100, of % 100, (int)strcspn(arch, ":"), arch);
    else
        return true;
    return false;
}

/* ---- library ---- */

/* hipBLASLt must belong to the runtime: two runtimes in a process know nothing of each other's memory. ROCm 6
 * has the first file, ROCm 7 the second. */
static const char *const files[] = {"libhipblaslt.so.0", "libhipblaslt.so.1"};

static void *search(const weft_shared_library *l, char path[WEFT_LIBRARY_PATH]) {
    int runtime = 0;
    weft_shared_library one = *l;
    if (weft__hip.cu.cuDriverGetVersion(&runtime) != 0 || runtime / 10000000 < 6) return NULL;
    one.files += runtime / 10000000 > 6;
    one.n_files = 1;
    return weft__hip_search(&one, path);
}

static void hip_blas_start(weft_shared_library *l) {
    weft__blas_functions *f = &hipblas.as_cuda;
    (void)l;
    f->cublasLtGetVersion = get_version;
    f->cublasLtGetStatusName = status_name;
    f->cublasLtMatmulDescCreate = desc_create;
    f->cublasLtMatmulDescSetAttribute = desc_set;
    f->cublasLtMatrixLayoutSetAttribute = layout_set;
    f->cublasLtMatmulPreferenceSetAttribute = preference_set;
    f->cublasLtMatmulAlgoGetHeuristic = propose;
}

static const weft_shared_symbol wanted[] = {
#define BLAS_FUNCTION(result, name, hip, arguments)                                                          \
    {#hip, (size_t)((char *)&hipblas.as_cuda.name - (char *)&hipblas)},
#define BLAS_ADAPTED(result, name, arguments)
#define BLAS_HIP(result, name, arguments) {#name, (size_t)((char *)&hipblas.name - (char *)&hipblas)},
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_FUNCTION
#undef BLAS_ADAPTED
#undef BLAS_HIP
};

static weft_shared_library library = {
    .files = files,
    .n_files = sizeof files / sizeof *files,
    .wanted = wanted,
    .n_wanted = sizeof wanted / sizeof *wanted,
    .table = &hipblas,
    .absent = "install hipBLASLt of ROCm 6.1 or later, in the version of the HIP runtime (AMD: hipblaslt; "
              "$WEFT_HIP_PATH names a folder with it)",
    .old = "install hipBLASLt of ROCm 6.1 or later, in the version of the HIP runtime",
    .search = search,
    .start = hip_blas_start};

weft_blas weft__hipblas = {.name = "hipBLASLt",
                           .prefix = "hipblasLt",
                           .functions = &hipblas.as_cuda,
                           .library = &library,
                           .open_first = weft__hip_open_library,
                           .knows = knows,
                           .check = check,
                           .grants = grants,
                           .revision = revision,
                           .no_memory = HIPBLAS_STATUS_ALLOC_FAILED,
                           .alignment = ALIGNMENT,
                           .workspace = WORKSPACE,
                           .alone = true};
