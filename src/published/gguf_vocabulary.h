/* A tokenizer on its way into the metadata of a GGUF file. Must not know: tensors. Read next:
 * gguf_vocabulary.c. */
#ifndef WEFT_SRC_PUBLISHED_GGUF_VOCABULARY_H
#define WEFT_SRC_PUBLISHED_GGUF_VOCABULARY_H

#include "published/gguf_write.h"

#define WEFT__TOKENIZER_KEY(name) "tokenizer.ggml." name

typedef struct weft__vocabulary {
    weft_context *ctx;
    const char *path;
    weft__gguf_header *h;
    weft_tokenizer *t;
    const json_t *root; /* of tokenizer.json */
    int64_t rows;       /* of the table of token vectors */
} weft__vocabulary;

/* Says that GGUF files cannot hold the tokenizer, which "is ..." or "has ...". */
weft_status weft__vocabulary_fail(const weft__vocabulary *v, const char *what);

/* Whether a part of tokenizer.json has this type. */
bool weft__is_part(const json_t *part, const char *type);

/* Append the tokens with their types, the ids of special tokens, and which of these belong around a text. */
weft_status weft__put_tokens(const weft__vocabulary *v);
weft_status weft__put_roles(const weft__vocabulary *v);
weft_status weft__put_frame(const weft__vocabulary *v);

/* Appends SentencePiece's BPE: gguf_sentencepiece.c. */
weft_status weft__put_sentencepiece(const weft__vocabulary *v);

#endif
