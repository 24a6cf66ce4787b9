/* The static shared memory of kernels. Read next: rooms.c. */
#ifndef WEFT_TESTS_CUDA_ROOMS_H
#define WEFT_TESTS_CUDA_ROOMS_H

#include <stdbool.h>
#include <stdio.h>

/* For each kernel of an object file, writes fake_rooms_NAME = bytes; as a linker script. If a kernel has more
 * than GPUs allow, writes to the log what ptxas says, and returns false. */
bool fake_put_rooms(const char *object, FILE *symbols, FILE *log);

#endif
