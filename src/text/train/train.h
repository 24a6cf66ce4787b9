/* The private interface of training a byte-level BPE: words and their counts (words.c), then merges
 * (merging.c), then tokenizer.json (train.c). Must not know: how tokenizers encode. Read next: words.c. */
#ifndef WEFT_SRC_TEXT_TRAIN_H
#define WEFT_SRC_TEXT_TRAIN_H

#include "text/pipeline/pipeline.h"

/* ---- words: words.c ---- */

typedef struct weft__word {
    size_t at; /* in the text of all words */
    uint32_t bytes;
    uint64_t count;
} weft__word;

typedef struct weft__words {
    weft_context *ctx;
    weft__buffer text; /* of all words, one after the other */
    weft__word *list;  /* [count] */
    size_t count, capacity;
    uint32_t *slots; /* open-addressing table of indices; UINT32_MAX is a free slot */
    size_t slot_count;
    uint64_t key;
    uint64_t dropped; /* words with at most this count were dropped, to bound the memory */
} weft__words;

/* Cuts a file into words by a pattern, and counts them. The file may be packed with gzip. */
weft_status weft__words_read(weft__words *words, weft__regex *pattern, const char *path);
weft_status weft__words_add(weft__words *words, const char *word, size_t bytes, uint64_t count);
void weft__words_free(weft__words *words);

/* ---- merges: merging.c ---- */

typedef struct weft__learned {
    weft_context *ctx;
    weft__buffer text; /* of all tokens, as bytes */
    size_t *ends;      /* [count] where each token ends */
    size_t count, capacity;
    weft__trie trie;     /* from tokens to ids */
    weft__merge *merges; /* [merge_count] */
    size_t merge_count, merge_capacity;
} weft__learned;

/* Adds a token; its id is the previous count. */
weft_status weft__learned_add(weft__learned *learned, const char *token, size_t bytes);
/* Learns merges until there are `vocabulary` tokens, or no pair occurs `least` times. All bytes must be
 * tokens. */
weft_status weft__learn_merges(weft__learned *learned, const weft__words *words, size_t vocabulary,
                               uint64_t least);
void weft__learned_free(weft__learned *learned);

#endif
