/* The kernel source of a command, for a card that is only described. Read next: test_golden.c. */
#ifndef WEFT_TESTS_GOLDEN_SOURCE_H
#define WEFT_TESTS_GOLDEN_SOURCE_H

#include "base/text.h"
#include "compiler/program.h"

/* Writes the sources of the command's kernel, or of the epilogue of its matmul. WGSL: the modules. */
void golden_source(weft_context *ctx, const weft_command *command, weft_dialect dialect, weft_text *out);

#endif
