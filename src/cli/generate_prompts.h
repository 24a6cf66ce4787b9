/* weft generate for a file of prompts. Must not know: how tokens are sampled. Read next: generate_prompts.c.
 */
#ifndef WEFT_SRC_CLI_GENERATE_PROMPTS_H
#define WEFT_SRC_CLI_GENERATE_PROMPTS_H

#include <weft/generate.h>

#include "train/run/copies.h"

/* Continues the prompts of a file, `rows` at once on each device. layers: the devices divide the layers of
 * the model, else the prompts. Prints a line of JSON for each, in their order. `how` has the options of all
 * prompts; its seed is that of the first one. *reader_left becomes whether the reader closed the pipe;
 * how->incomplete, whether a value of how->grammar is not complete. */
weft_status weft__generate_prompts(const weft__copies *copies, const weft_generate_options *how,
                                   const char *path, int64_t rows, bool layers, bool *reader_left);

#endif
