/* One text that is generated; see generation.c. Must not know: models. Read next: generation.c. */
#ifndef WEFT_SRC_NN_GENERATION_H
#define WEFT_SRC_NN_GENERATION_H

#include <weft/generate.h>

#include "text/grammar/constraint.h"

typedef struct weft__generation {
    weft_context *ctx;
    const weft_tokenizer *tokenizer;
    const weft_generate_options *options;
    weft_decoder *decoder;        /* NULL without a tokenizer */
    weft__constraint *constraint; /* NULL without a grammar */
    int32_t *ids;                 /* the prompt, then the sampled tokens */
    int64_t count, prompt;        /* of all tokens, and of those of the prompt */
    int64_t fed;                  /* how many of them the caller has given to the model */
    int64_t vocabulary;           /* how many of the logits may be sampled */
    size_t room;                  /* most ids of the prompt */
    weft_text_fn emit;
    void *user;
    bool over;    /* no token follows */
    bool refused; /* emit ended the generation */
    bool stopped; /* a text of options->stops ended it */
    bool ended;   /* a token ended it, or the value of the grammar is complete */
    char *held; /* the last text, which may begin such a text; as much room as the longest one, and a piece */
    size_t held_bytes;
    size_t held_room;
} weft__generation;

/* Checks the options, and reads the prompt. rows: the number of the model's logits. Close *g with
 * weft__generation_close, also after an error. */
weft_status weft__generation_open(weft__generation *g, weft_context *ctx, int64_t rows,
                                  const weft_tokenizer *tokenizer, const weft_generate_options *options,
                                  weft_text_fn emit, void *user);
/* Passes the prompt on, if it is wanted. */
weft_status weft__generation_begin(weft__generation *g);

/* Draws the next token from its logits (rows), which change, and passes its text on. */
weft_status weft__generation_take(weft__generation *g, float *logits);

/* The parts of weft__generation_take. _mask: applies penalty and grammar to logits. _add: takes token `id`.
 */
weft_status weft__generation_mask(weft__generation *g, float *logits);
weft_status weft__generation_add(weft__generation *g, int64_t id);

/* Passes the last text on. */
weft_status weft__generation_finish(weft__generation *g);
void weft__generation_close(weft__generation *g);

/* Gives the tokens that are not fed yet to a cache, and writes the logits that follow. If the cache has no
 * room, it restarts with the newest half of the context. */
weft_status weft__generation_feed(weft__generation *g, weft_decode_state *cache, float *logits);

/* ---- generate_many.c ---- */

/* weft_generate_many for a GPT whose blocks are divided: each part has those that follow the blocks of the
 * part before it, on a device of its own. */
weft_status weft__generate_many(weft_module *const *parts, size_t n_parts, const weft_tokenizer *tokenizer,
                                const weft_generate_options *options, size_t count, int64_t rows,
                                weft_generated_fn done, void *user);

#endif
