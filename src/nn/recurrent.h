/* Functions that recurrent layers, their language model and decoding share.
 * Must not know: devices. Read next: recurrent.c, recurrent_lm.c. */
#ifndef WEFT_NN_RECURRENT_H
#define WEFT_NN_RECURRENT_H

#include <weft/recurrent.h>
#include "nn/module.h"

/* The layer that holds the states of m: the layers of a language model, or m itself. */
const weft_module *weft__recurrent_in(const weft_module *m);

/* The states of the running call; NULL: it has none. */
weft_states *weft__recurrent_states(const weft_module *layer);
/* The lengths of the running call; NULL: it has none. */
const int64_t *weft__recurrent_lengths(const weft_module *layer);

/* The number of rows of a language model's token table; 0: m is no language model. */
int64_t weft__recurrent_vocab(const weft_module *m);

/* Runs a language model over `count` tokens of one sequence, in evaluation. Starts from the states (NULL
 * members: 0) and replaces them by the last ones. Writes the logits (vocab) of the next token. */
weft_status weft__recurrent_feed(weft_module *m, weft_states *states, const int32_t *tokens, int64_t count,
                                 float *logits);

/* The same for `count` sequences, 1 to WEFT__DECODE_MOST, and one token of each. Writes the logits (count,
 * vocab). After an error the states are unchanged. */
weft_status weft__recurrent_feed_many(weft_module *m, weft_states *const *states, const int32_t *tokens,
                                      int64_t count, float *logits);

#endif
