/* Compiled kernels on disk, for the next process.
 * Must not know: what the bytes mean. Read next: cache.c. */
#ifndef WEFT_DEVICE_CACHE_H
#define WEFT_DEVICE_CACHE_H

#include "base/base.h"

/* A key is a hash of all that the bytes depend on: source, options, device, driver. */

enum { WEFT_GPU_CACHE_PATH = 1024 };
/* Returns the path of the folder. Returns false if there is none. */
bool weft__gpu_cache_folder(char path[WEFT_GPU_CACHE_PATH]);
/* Makes the folder. Returns whether kernels can be stored there. */
bool weft__gpu_cache_wanted(void);
/* Loads an undamaged file into *bytes, which the caller frees with weft__free. Returns false if there is
 * none. */
bool weft__gpu_cache_load(weft_context *ctx, weft_hash key, void **bytes, size_t *size);
/* Tries to store the bytes. After a failure, such as a full disk, the next process compiles again. */
void weft__gpu_cache_store(weft_context *ctx, weft_hash key, const void *bytes, size_t size);

#endif
