/* Generates text from a language model: a GPT, or a weft_nn_recurrent_lm. For a model that `weft train` made,
 * use weft_run_generate of run.h. */
#ifndef WEFT_GENERATE_H
#define WEFT_GENERATE_H

#include <weft/grammar.h>
#include <weft/nn.h>
#include <weft/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of the tokens that a draft proposed. */
typedef struct weft_drafted {
    int64_t proposed, accepted;
} weft_drafted;

typedef struct weft_generate_options {
    const char *prompt; /* text to continue; NULL or "": a newline, or token 0 if there is no newline token */
    int64_t tokens;     /* how many to add, at most 2^31 - 1 together with the prompt; 0: only the prompt */
    double temperature; /* 0: always the likeliest token */
    int64_t top_k;      /* choose among the k likeliest; 0: all */
    uint64_t seed;      /* same seed, same text */
    /* The model may have more logits than there are tokens. Such logits are never sampled. 0: the tokenizer's
     * number of tokens; without a tokenizer all logits */
    int64_t vocabulary;
    /* Gets the characters of the prompt that the tokenizer does not know, and a NUL. They are left out. NULL:
     * not wanted */
    char *left_out;
    size_t left_out_bytes; /* size of left_out; characters that do not fit are not written */
    double top_p;          /* choose among the fewest likeliest tokens that have this share of the probability
                              (Holtzman et al.          2019); 0: all */
    double min_p; /* leave out tokens less likely than this share of the likeliest (Nguyen et al. 2024) */
    double repetition_penalty; /* divides positive logits of tokens that the text has already, and multiplies
                                  negative ones (Keskar et al. 2019); 0: 1 */
    const char *const *stops;  /* [stop_count] texts that end the generation; they are not passed on */
    size_t stop_count;
    const int32_t *ends; /* [end_count] tokens that end it, besides the tokenizer's WEFT_SPECIAL_EOS */
    size_t end_count;
    bool endless;  /* no token ends it */
    bool only_new; /* does not pass the prompt on */
    bool no_frame; /* encodes the prompt as it is. Default: with the special tokens that the tokenizer's files
                      put around a text, such as <s> */
    bool keep_cache; /* does not reset the cache: of the prompt, only what the cache does not hold yet is fed.
                        For conversations, whose prompts grow */
    /* The new text is one value of this grammar. Tokens that cannot continue it are never sampled, and the
     * generation ends with the value, at the latest. NULL: any text. Needs a tokenizer */
    const weft_grammar *grammar;
    bool *incomplete; /* becomes whether the text ended before its value did: `tokens` was too small, or a
                         stop ended it. NULL: not wanted */
    const char *name; /* of the prompt in messages of weft_generate_many; NULL: "prompt" and its index */
    /* Speculative decoding (Leviathan et al. 2023): the cache of a smaller model with the same tokens, the
     * draft. It proposes draft_tokens tokens, and the model checks them in one step. Tokens have the
     * probabilities of the model all the same, and with temperature 0 the text is that without a draft. Both
     * models are made by weft_nn_gpt. NULL: no draft */
    weft_decode_state *draft;
    int64_t draft_tokens;  /* 1 to 7; 0: 4 */
    weft_drafted *drafted; /* counts are added to it; NULL: not wanted */
} weft_generate_options;

/* Receives a piece of text: bytes[0..count), without a NUL. Characters are never divided. Any status except
 * WEFT_OK ends the generation with that status. */
typedef weft_status (*weft_text_fn)(void *user, const char *bytes, size_t count);

/* Continues a prompt, and passes prompt and continuation piece by piece to `emit`. The cache is reset first,
 * unless keep_cache is set. When its context is full, the newest half of it is kept.
 *
 * tokenizer NULL: the prompt and the output are token numbers with spaces between them.
 *
 * WEFT_ERR_INDEX: the tokenizer knows no character of the prompt, or a number is no token. WEFT_ERR_NUMERIC:
 * the logits are not finite. WEFT_ERR_ARGUMENT: options. WEFT_ERR_STATE: the model was freed.
 * WEFT_ERR_UNSUPPORTED: no token of the tokenizer can continue a text of the grammar. */
WEFT_API WEFT_CHECKED weft_status weft_generate(weft_decode_state *cache, const weft_tokenizer *tokenizer,
                                                const weft_generate_options *options, weft_text_fn emit,
                                                void *user);

/* ---- several texts at once ---- */

/* A text that weft_generate_many has finished. */
typedef struct weft_generated {
    size_t index;     /* of its prompt */
    const char *text; /* what weft_generate passes on; ended by a NUL, valid during the call */
    size_t bytes;
    int64_t prompt_tokens, tokens; /* of the prompt, and how many were added */
    bool ended; /* a token or a stop ended it, or its value is complete. false: `tokens` was reached */
} weft_generated;

/* Receives a text. Any status except WEFT_OK ends weft_generate_many with that status. */
typedef weft_status (*weft_generated_fn)(void *user, const weft_generated *text);

/* Continues `count` prompts, `rows` of them at once: 1 to 64; 0: 8. A step then reads the weights once for
 * all of them, so they take much less time than one after the other. When a text ends, the next prompt takes
 * its place. `done` receives each text as soon as it ends.
 *
 * options[i] belongs to prompt i. Each text has its own seed, stops, grammar and number of tokens, and does
 * not depend on the others: it is the text of weft_generate with the same options. As other numbers of rows
 * may round sums in another order, texts may part where two tokens are equally likely. keep_cache and
 * draft have no effect.
 *
 * Makes a cache for each row, which holds the longest text. Errors are those of weft_generate; the message
 * names the prompt. */
WEFT_API WEFT_CHECKED weft_status weft_generate_many(weft_module *gpt, const weft_tokenizer *tokenizer,
                                                     const weft_generate_options *options, size_t count,
                                                     int64_t rows, weft_generated_fn done, void *user);

#ifdef __cplusplus
}
#endif
#endif
