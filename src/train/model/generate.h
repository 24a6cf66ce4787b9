/* Text from a trained language model. Read next: generate.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_GENERATE_H
#define WEFT_SRC_TRAIN_MODEL_GENERATE_H

#include <weft/nn.h>
#include <weft/text.h>

#include "base/base.h"

typedef struct weft__generation {
    const char *prompt; /* NULL or "": a newline, or token 0 where there is none */
    int64_t tokens;
    double temperature; /* 0: always the likeliest */
    int64_t top_k;      /* 0: all */
    uint64_t seed;
} weft__generation;

/* Receives each piece of text as it comes. Another status than WEFT_OK ends the generation. */
typedef weft_status (*weft__emit_fn)(void *user, const char *text, size_t bytes);

/* Continues the prompt by tokens of the vocabulary, of which the model may have more `rows`, which are never
 * drawn. tokenizer NULL: the prompt is numbers between blanks, and so is what comes. When the
 * context is full, its later half is kept and the rest forgotten. WEFT_ERR_INDEX for a prompt the tokenizer
 * cannot read. */
weft_status weft__generate(weft_gpt_cache *cache, const weft_tokenizer *tokenizer, int64_t vocabulary,
                           int64_t rows, const weft__generation *wanted, weft__emit_fn emit, void *user);

#endif
