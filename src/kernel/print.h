/* Prints single instructions, for messages. weft__kernel_print in kernel.h prints whole kernels. Must not
 * know: devices. Read next: print.c. */
#ifndef WEFT_KERNEL_PRINT_H
#define WEFT_KERNEL_PRINT_H

#include "kernel/kernel.h"

/* Writes instruction i as readable text: at most `size` bytes with the NUL. Returns the whole length. The
 * verifier prints what it refuses, so numbers outside the kernel's tables are printed and not used as
 * indices. */
size_t weft__kernel_print_instr(const weft_kernel *kernel, int i, char *buffer, size_t size);

#endif
