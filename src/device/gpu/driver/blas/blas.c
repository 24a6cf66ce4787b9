/* Opens a library of matmuls at run time, so that the same program also runs on a machine without it.
 * Must not know: matmuls. Read next: cuda/blas.c, hip/blas.c, blas_problem.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu/driver/blas/blas.h"

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
