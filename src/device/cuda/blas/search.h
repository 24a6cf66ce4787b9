/* Libraries of CUDA that do not come with the driver, opened at run time: NVRTC, cuBLASLt, cuDNN, NCCL.
 * Must not know: what they do. Read next: search.c. */
#ifndef WEFT_DEVICE_CUDA_BLAS_SEARCH_H
#define WEFT_DEVICE_CUDA_BLAS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_CUDA_PATH_SIZE = 1024, WEFT_CUDA_FILES = 4 };

typedef struct weft__cuda_symbol {
    const char *name;
    size_t at; /* offset of its pointer in the table */
} weft__cuda_symbol;

typedef struct weft__cuda_library {
    const char *title, *package;     /* such as "NVRTC", and the PyPI package that contains it */
    const char *const *files;        /* versioned names, the newest first, at most WEFT_CUDA_FILES */
    const weft__cuda_symbol *wanted; /* all functions that Weft calls */
    void *table;                     /* receives their pointers */
    int n_files, n_wanted;
    bool looked;
    char path[WEFT_CUDA_PATH_SIZE]; /* the file that was opened */
    char reason[400];               /* why none was opened */
} weft__cuda_library;

/* Sets the driver's version, such as 12040. A driver of CUDA 12 runs no code of CUDA 13, so the search then
 * begins with the oldest file. */
void weft__cuda_libraries_for(int driver);

/* Opens the library once in the process. `file` replaces the search if it is not NULL. Returns NULL, or why
 * this fails and what helps. Thread-safe. */
const char *weft__cuda_library_open(weft__cuda_library *library, const char *file);

#endif
