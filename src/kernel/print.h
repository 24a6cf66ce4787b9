/* Text of single instructions, for messages. Whole kernels: weft__kernel_print in kernel.h. */
#ifndef WEFT_KERNEL_PRINT_H
#define WEFT_KERNEL_PRINT_H

#include "kernel/kernel.h"

/* Readable text of instruction i, at most `size` bytes with the NUL; returns the whole length. Numbers that
 * lie outside the kernel's tables are printed, not followed: the verifier prints what it refuses. */
size_t weft__kernel_print_instr(const weft_kernel *kernel, int i, char *buffer, size_t size);

#endif
