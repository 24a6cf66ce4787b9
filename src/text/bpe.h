/* Inside of the byte-pair tokenizer: Sennrich et al., "Neural machine translation of rare words with subword
 * units", 2016, over bytes as in GPT-2. A text is cut into words by a pattern; a word begins as its bytes,
 * and the best pair of neighbours that there is a merge for becomes one token until there is none. Must not
 * know: files. Read next: tokenizer_bpe.c, then bpe_alphabet.c. */
#ifndef WEFT_SRC_TEXT_BPE_H
#define WEFT_SRC_TEXT_BPE_H

#include "text/tokenizer.h"

typedef struct weft__merge {
    int32_t left, right, made; /* ids */
} weft__merge;

/* What encoding needs of the pattern, the merges and memory: tokenizer_bpe.c. */
typedef struct weft__bpe_work weft__bpe_work;

typedef struct weft__bpe {
    weft__merge *merges; /* [merge_count], the best first: a place is a rank */
    size_t merge_count, merge_capacity;
    uint32_t *ranks;    /* open-addressing table of ranks, UINT32_MAX is free */
    size_t rank_slots;  /* a power of two */
    int32_t bytes[256]; /* their ids */
    int32_t *specials;  /* [special_count]: what is neither a byte nor made by a merge, like <|endoftext|> */
    size_t special_count;
    weft__bpe_work *work;
} weft__bpe;

void weft__bpe_free(weft_tokenizer *t);

/* ---- the alphabet of bytes: bpe_alphabet.c. Files write tokens in it: each byte is a printable character,
 * itself where it is one in Latin-1, otherwise one from U+0100 on. ---- */

/* Adds the token that `text` is written as. `name` and id are for messages. */
weft_status weft__bpe_add_token(weft_tokenizer *t, const char *name, const char *text, size_t bytes);
/* Writes a token, at most 2 bytes for each of its own, and returns how many. */
size_t weft__bpe_print(const char *token, size_t bytes, char *out);

/* When all tokens are there: gets ready for merges. */
weft_status weft__bpe_begin(weft_tokenizer *t, const char *name);
/* Adds the next merge, two written tokens and one space. `where`: "line" or "merge", which messages count. */
weft_status weft__bpe_add_merge(weft_tokenizer *t, const char *name, const char *where, size_t number,
                                const char *text, size_t bytes);

#endif
