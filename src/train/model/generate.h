/* Generates text from a trained language model. Must not know: where the text goes. Read next: generate.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_GENERATE_H
#define WEFT_SRC_TRAIN_MODEL_GENERATE_H

#include <weft/nn.h>
#include <weft/text.h>

#include "base/base.h"

typedef struct weft__generation {
    const char *prompt; /* NULL or "": a newline, or token 0 if there is no newline token */
    int64_t tokens;
    double temperature; /* 0: always the likeliest token */
    int64_t top_k;      /* 0: all tokens */
    uint64_t seed;
} weft__generation;

enum { WEFT__LEFT_OUT = 64 };

/* Receives each piece of text. Any status except WEFT_OK ends the generation. */
typedef weft_status (*weft__emit_fn)(void *user, const char *text, size_t bytes);

/* Continues the prompt with tokens of the vocabulary. The model may have more `rows` than the vocabulary has
 * tokens; such rows are never sampled. If tokenizer is NULL, prompt and output are ids separated by blanks.
 * When the context is full, its newest half is kept. `left_out` (NULL: not wanted) begins empty and gets
 * characters of the prompt that the tokenizer does not know. Returns WEFT_ERR_INDEX if it knows none. */
weft_status weft__generate(weft_gpt_cache *cache, const weft_tokenizer *tokenizer, int64_t vocabulary,
                           int64_t rows, const weft__generation *wanted, weft__emit_fn emit, void *user,
                           char left_out[WEFT__LEFT_OUT]);

#endif
