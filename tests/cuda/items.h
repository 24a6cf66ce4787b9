/* Blocks of threads, run one thread at a time on two threads of the host. Read next: items.c. */
#ifndef WEFT_TESTS_CUDA_ITEMS_H
#define WEFT_TESTS_CUDA_ITEMS_H

#include <stdbool.h>

#include "fake.h"

typedef void (*fake_kernel)(fake_item *item, void **values);

/* False when threads wait for each other without end. `backwards`: the last block first. */
bool fake_run_blocks(fake_kernel kernel, fake_dim blocks, fake_dim threads, unsigned shared_bytes,
                     void **values, bool backwards);

#endif
