/* The simulated GPU: runs the blocks of a launch. Read next: items.c. */
#ifndef WEFT_TESTS_CUDA_ITEMS_H
#define WEFT_TESTS_CUDA_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "fake.h"

typedef void (*fake_kernel)(fake_item *item, void **values);

/* A kernel, with the static shared memory of its module. */
typedef struct fake_code {
    fake_kernel call;
    const char *name, *text; /* text: the source, for reports */
    char *rooms;
    size_t rooms_bytes;
    int faults; /* which argument is the record of faults (prelude/faults_params.h), or -1 */
    /* the module: an open file, and where it was loaded */
    int file;
    const char *base, *end;
} fake_code;

typedef struct fake_grid {
    const fake_code *code;
    fake_dim blocks, threads;
    unsigned shared_bytes;
    void **values;
} fake_grid;

/* Returns false if threads wait forever. */
bool fake_run_grid(const fake_grid *grid);

/* Reports a fault of a kernel at a line of its source. 0: at no line. */
void fake_report(const fake_code *code, int line, const char *why, ...) __attribute__((format(printf, 3, 4)));

#endif
