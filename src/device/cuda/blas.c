/* cuBLASLt, the library of matmuls for NVIDIA's cards.
 * Must not know: matmuls. Read next: search.c, gpu/driver/blas/blas.h. */
#include "device/cuda/cuda.h"
#include "device/cuda/search.h"

static weft__blas_functions functions;

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

static const weft_shared_symbol wanted[] = {
#define BLAS_FUNCTION(result, name, hip, arguments) {#name, offsetof(weft__blas_functions, name)},
#include "device/gpu/driver/blas/blas.def"
#undef BLAS_FUNCTION
};

static weft_shared_library library = WEFT_CUDA_LIBRARY("cuBLASLt", "nvidia-cublas", files, wanted, functions);

weft_blas weft__cublas = {.name = "cuBLASLt",
                          .prefix = "cublasLt",
                          .functions = &functions,
                          .library = &library,
                          .revision = "",
                          .no_memory = CUBLAS_STATUS_ALLOC_FAILED,
                          .alignment = 1};
