/* What recurrent layers and the language model around them share. */
#ifndef WEFT_NN_RECURRENT_H
#define WEFT_NN_RECURRENT_H

#include <weft/recurrent.h>
#include "nn/module.h"

/* The layer that has the states of m: that of a language model, else m itself. */
const weft_module *weft__recurrent_in(const weft_module *m);

/* The states of the call under way; NULL: it has none. */
weft_states *weft__recurrent_states(const weft_module *layer);
/* And its lengths. */
const int64_t *weft__recurrent_lengths(const weft_module *layer);

/* Rows of a language model's token table; 0: m is none. */
int64_t weft__recurrent_vocab(const weft_module *m);

/* Runs a language model over so many tokens of one sequence, in evaluation, from the states on, which become
 * the last ones (NULL members: 0); logits (vocab) of what follows. */
weft_status weft__recurrent_feed(weft_module *m, weft_states *states, const int32_t *tokens, int64_t count,
                                 float *logits);

#endif
