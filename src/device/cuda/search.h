/* Where libraries of CUDA lie that come without the driver: NVRTC, and what will follow it. Read next:
 * search.c. */
#ifndef WEFT_DEVICE_CUDA_SEARCH_H
#define WEFT_DEVICE_CUDA_SEARCH_H

#include <stddef.h>

enum { WEFT_CUDA_PATH_SIZE = 1024 };

/* Opens the first of `names` (versioned, the best first) that is found, by dlopen; NULL: none is. path:
 * which. */
void *weft__cuda_search(const char *const *names, int count, char path[WEFT_CUDA_PATH_SIZE]);

#endif
