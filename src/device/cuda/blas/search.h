/* Libraries of CUDA that come without the driver, opened at run time: NVRTC, cuDNN. Must not know: what they
 * do. Read next: search.c. */
#ifndef WEFT_DEVICE_CUDA_BLAS_SEARCH_H
#define WEFT_DEVICE_CUDA_BLAS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_CUDA_PATH_SIZE = 1024, WEFT_CUDA_FILES = 4 };

typedef struct weft__cuda_symbol {
    const char *name;
    size_t at; /* of its pointer in the table */
} weft__cuda_symbol;

typedef struct weft__cuda_library {
    const char *title, *package;     /* "NVRTC", and that of PyPI which brings it */
    const char *const *files;        /* versioned names, the newest first, at most WEFT_CUDA_FILES */
    const weft__cuda_symbol *wanted; /* all of them, */
    void *table;                     /* whose pointers come here */
    int n_files, n_wanted;
    bool looked;
    char path[WEFT_CUDA_PATH_SIZE]; /* which file it is, */
    char reason[400];               /* or why there is none */
} weft__cuda_library;

/* A driver of CUDA 12 (12040) runs nothing of CUDA 13: for it the oldest file comes first. */
void weft__cuda_libraries_for(int driver);

/* Opens it, once a process, or `file` where that is not NULL; NULL, or why that cannot be and what helps.
 * Thread-safe. */
const char *weft__cuda_library_open(weft__cuda_library *library, const char *file);

#endif
