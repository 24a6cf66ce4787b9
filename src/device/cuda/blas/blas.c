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
const char *weft__blas_file;

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

static const weft_shared_symbol wanted[] = {
#define BLAS_FUNCTION(result, name, arguments) {#name, offsetof(weft__blas_functions, name)},
#include "device/cuda/blas/blas.def"
#undef BLAS_FUNCTION
};

static weft_shared_library library =
    WEFT_CUDA_LIBRARY("cuBLASLt", "nvidia-cublas", files, wanted, weft__blas);

const char *weft__blas_open(void) {
    const char *setting = secure_getenv("WEFT_MATMUL");
    if (setting && strcmp(setting, "own") == 0) return "WEFT_MATMUL=own";
    return weft__shared_library_open(&library, weft__blas_file, NULL);
}

void weft__blas_forget(void) { library.looked = false; }

void weft__blas_version(char text[32]) {
    const size_t version = weft__blas.cublasLtGetVersion();
    snprintf(text, 32, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}
