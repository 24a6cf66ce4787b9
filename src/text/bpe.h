/* The private interface of the byte-pair tokenizer: Sennrich et al., "Neural machine translation of rare
 * words with subword units", 2016, over bytes as in GPT-2. A pattern splits the text into words. A word
 * begins as its bytes. Then the neighbours with the best merge become one token, again and again, until no
 * merge applies. Must not know: files. Read next: tokenizer_bpe.c, then bpe_alphabet.c. */
#ifndef WEFT_SRC_TEXT_BPE_H
#define WEFT_SRC_TEXT_BPE_H

#include "text/tokenizer.h"

typedef struct weft__merge {
    int32_t left, right, made; /* ids */
} weft__merge;

/* What encoding needs: the compiled pattern and work memory. See tokenizer_bpe.c. */
typedef struct weft__bpe_work weft__bpe_work;

typedef struct weft__bpe {
    weft__merge *merges; /* [merge_count], the best first; the index is the rank */
    size_t merge_count, merge_capacity;
    uint32_t *ranks;    /* open-addressing table of ranks; UINT32_MAX is a free slot */
    size_t rank_slots;  /* a power of two */
    int32_t bytes[256]; /* id of each byte */
    /* [special_count]: tokens that are neither a byte nor made by a merge, such as <|endoftext|> */
    int32_t *specials;
    size_t special_count;
    weft__bpe_work *work;
} weft__bpe;

void weft__bpe_free(weft_tokenizer *t);

/* ---- the alphabet of bytes: bpe_alphabet.c ----
 *
 * Files write tokens in this alphabet. Each byte is a printable character: itself if it is printable in
 * Latin-1, otherwise a character from U+0100 on. */

/* Adds the token that `text` stands for. `name` is for messages. */
weft_status weft__bpe_add_token(weft_tokenizer *t, const char *name, const char *text, size_t bytes);
/* Writes a token in the alphabet, at most 2 bytes for each byte of the token. Returns the number of bytes
 * written. */
size_t weft__bpe_print(const char *token, size_t bytes, char *out);

/* Prepares for merges, after all tokens were added. */
weft_status weft__bpe_begin(weft_tokenizer *t, const char *name);
/* Adds the next merge: two tokens in the alphabet with one space between them. `where` is "line" or "merge";
 * messages say which `number` of it is wrong. */
weft_status weft__bpe_add_merge(weft_tokenizer *t, const char *name, const char *where, size_t number,
                                const char *text, size_t bytes);

#endif
