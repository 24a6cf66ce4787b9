/* Compiled kernels that tests share: a folder of files, one for each kernel source. Read next: nvrtc.c. */
#ifndef WEFT_TESTS_CUDA_CUBINS_H
#define WEFT_TESTS_CUDA_CUBINS_H

#include <stddef.h>
#include <stdint.h>

/* A hash of all that a compiled kernel depends on. Begins as {0}. */
typedef struct cubin_key {
    uint64_t part[2];
} cubin_key;

void cubin_add(cubin_key *key, const void *data, size_t bytes);

/* Returns the compiled kernel with this key, which the caller frees, or NULL. */
char *cubin_find(const char *folder, cubin_key key, size_t *bytes);

/* Stores a compiled kernel. If that fails, it is compiled again next time. */
void cubin_keep(const char *folder, cubin_key key, const char *cubin, size_t bytes);

#endif
