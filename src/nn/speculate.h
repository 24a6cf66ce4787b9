/* Speculative decoding; see speculate.c. Must not know: where the text goes. Read next: speculate.c. */
#ifndef WEFT_SRC_NN_SPECULATE_H
#define WEFT_SRC_NN_SPECULATE_H

#include "nn/generation.h"

enum { WEFT__DRAFT_MOST = 7 }; /* so that a check is one step of at most 8 rows */

/* Generates a text that has begun, with g->options->draft. */
weft_status weft__speculate(weft__generation *g, weft_decode_state *cache);

#endif
