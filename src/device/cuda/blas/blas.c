/* cuBLASLt, opened at run time, so that the same program also runs on a machine without it.
 * Must not know: matmuls. Read next: search.c, blas_problem.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/blas/blas.h"
#include "device/cuda/blas/search.h"

weft__blas_functions weft__blas;

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

static const weft_shared_symbol wanted[] = {
#define BLAS_FUNCTION(result, name, hip, arguments) {#name, offsetof(weft__blas_functions, name)},
#include "device/cuda/blas/blas.def"
#undef BLAS_FUNCTION
};

static weft_shared_library library =
    WEFT_CUDA_LIBRARY("cuBLASLt", "nvidia-cublas", files, wanted, weft__blas);

weft_blas weft__cublas = {.name = "cuBLASLt",
                          .prefix = "cublasLt",
                          .functions = &weft__blas,
                          .library = &library,
                          .revision = "",
                          .no_memory = CUBLAS_STATUS_ALLOC_FAILED,
                          .alignment = 1};

const char *weft__blas_open(const weft_blas *blas) {
    const char *setting = secure_getenv("WEFT_MATMUL");
    if (setting && strcmp(setting, "own") == 0) return "WEFT_MATMUL=own";
    const char *why = blas->open_first ? blas->open_first() : NULL;
    return why ? why : weft__shared_library_open(blas->library, blas->file, NULL);
}

void weft__blas_forget(weft_blas *blas) { blas->library->looked = false; }

void weft__blas_version(const weft_blas *blas, char text[WEFT_BLAS_VERSION]) {
    const size_t version = blas->functions->cublasLtGetVersion();
    snprintf(text, WEFT_BLAS_VERSION, "%s %zu.%zu.%zu", blas->name, version / 10000, version / 100 % 100,
             version % 100);
}

cublasLtHandle_t weft__blas_handle(const weft_blas *blas, const char *arch, char why[WEFT_BLAS_WHY]) {
    cublasLtHandle_t handle = NULL;
    const unsigned error = blas->functions->cublasLtCreate(&handle);
    if (error) {
        snprintf(why, WEFT_BLAS_WHY, "%sCreate returned %s", blas->prefix,
                 blas->functions->cublasLtGetStatusName(error));
        return NULL;
    }
    if (!blas->check || blas->check(handle, arch, why)) return handle;
    blas->functions->cublasLtDestroy(handle);
    return NULL;
}
