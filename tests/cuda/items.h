/* Runs blocks of GPU threads on two threads of the host. Each host thread runs one GPU thread at a time. Read
 * next: items.c. */
#ifndef WEFT_TESTS_CUDA_ITEMS_H
#define WEFT_TESTS_CUDA_ITEMS_H

#include <stdbool.h>

#include "fake.h"

typedef void (*fake_kernel)(fake_item *item, void **values);

/* Returns false if threads wait for each other forever. backwards: runs the last block first. */
bool fake_run_blocks(fake_kernel kernel, fake_dim blocks, fake_dim threads, unsigned shared_bytes,
                     void **values, bool backwards);

#endif
