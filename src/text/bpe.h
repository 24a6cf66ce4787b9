/* The private interface of the byte-pair tokenizer of GPT-2: a pattern splits the text into words, and merges
 * turn the bytes of a word into tokens (merges.h). Must not know: files. Read next: tokenizer_bpe.c, then
 * bpe_alphabet.c. */
#ifndef WEFT_SRC_TEXT_BPE_H
#define WEFT_SRC_TEXT_BPE_H

#include "text/merges.h"

/* What encoding needs: the compiled pattern and work memory. See tokenizer_bpe.c. */
typedef struct weft__bpe_work weft__bpe_work;

typedef struct weft__bpe {
    weft__merges merges;
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

/* The character of a byte. */
uint32_t weft__bpe_point(unsigned char byte);
/* The byte of a code point, or -1 if the code point stands for no byte. */
int weft__bpe_byte(uint32_t point);
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
