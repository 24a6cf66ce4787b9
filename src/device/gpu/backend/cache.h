/* Compiled kernels on disk, for the next start. Read next: cache.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_CACHE_H
#define WEFT_DEVICE_GPU_BACKEND_CACHE_H

#include "base/base.h"

/* The key says everything that the bytes depend on: source, options, device, driver. */

enum { WEFT_GPU_CACHE_PATH = 1024 };
/* Where they are to be kept; false where nowhere. */
bool weft__gpu_cache_folder(char path[WEFT_GPU_CACHE_PATH]);
/* Whether they can be kept there; makes the folder. */
bool weft__gpu_cache_wanted(void);
/* True where there is an undamaged file: *bytes is to be freed with weft__free. */
bool weft__gpu_cache_load(weft_context *ctx, weft_hash key, void **bytes, size_t *size);
/* Does what it can; a disk that is full or a folder that is not ours costs the next start a compilation. */
void weft__gpu_cache_store(weft_context *ctx, weft_hash key, const void *bytes, size_t size);

#endif
