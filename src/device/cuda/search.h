/* Libraries of CUDA that do not come with the driver, opened at run time: NVRTC, cuBLASLt, cuDNN, NCCL.
 * Must not know: what they do. Read next: device/shared_library.h, search.c. */
#ifndef WEFT_DEVICE_CUDA_SEARCH_H
#define WEFT_DEVICE_CUDA_SEARCH_H

#include "device/shared_library.h"

enum { WEFT_CUDA_FILES = 4 }; /* the most names of one library; they have versions, the newest first */

/* Sets the driver's version, such as 12040. A driver of CUDA 12 runs no code of CUDA 13, so the search then
 * begins with the oldest file. */
void weft__cuda_libraries_for(int driver);

/* For weft_shared_library.search. */
void *weft__cuda_search(const weft_shared_library *library, char path[WEFT_LIBRARY_PATH]);

/* A weft_shared_library. `title` is such as "NVRTC", `package` is the PyPI package that contains it, and
 * `functions` is the table of its functions. */
#define WEFT_CUDA_LIBRARY(title, package, names, symbols, functions)                                         \
    {                                                                                                        \
        .files = (names), .n_files = sizeof(names) / sizeof *(names), .wanted = (symbols),                   \
        .n_wanted = sizeof(symbols) / sizeof *(symbols), .table = &(functions),                              \
        .absent = "install " title " (the CUDA toolkit; or pip install " package                             \
                  ", in the environment that is active; $WEFT_CUDA_PATH names any other folder)",            \
        .old = "install a newer " title, .search = weft__cuda_search                                         \
    }

#endif
