/* The tokens of texts that stay in their files, for texts larger than memory. The text is cut into blocks of
 * some KiB. Opening encodes each block once, to count its tokens. Later a block is encoded again when its
 * tokens are read. Must not know: batches, splits. Read next: text_stream.c. */
#ifndef WEFT_SRC_TEXT_TEXT_STREAM_H
#define WEFT_SRC_TEXT_TEXT_STREAM_H

#include <pthread.h>

#include "data/tokens.h"
#include "text/passages.h"
#include "text/tokenizer.h"

enum { WEFT__STREAM_CACHE = 256 }; /* blocks whose tokens are kept */

/* A block of the text. Its end is the begin of the next one. */
typedef struct weft__block {
    weft__place begin;
    int64_t first; /* tokens before it */
} weft__block;

typedef struct weft__cached_block {
    size_t block;
    uint64_t used; /* when it was read last; 0: this entry is free */
    weft__ids ids;
} weft__cached_block;

typedef struct weft__text_stream {
    weft_context *ctx;
    weft__documents documents;
    weft__passages passages;
    weft_tokenizer *tokenizer; /* a copy without a context: threads of loaders use it */
    weft__block *blocks;       /* [count + 1]; the last one is the end of the text */
    size_t count, capacity;
    weft__hash_stream *marks; /* [count] the hash of all tokens before a block, while the hash is computed */
    int32_t largest;
    weft__buffer room;
    weft__cached_block cache[WEFT__STREAM_CACHE];
    uint64_t reads;
    pthread_mutex_t lock; /* of passages, tokenizer, room and cache */
    weft_tokens *tokens;  /* all tokens, for a loader */
} weft__text_stream;

/* Lists the documents of a path's files. `unpack`: see weft__documents_list. The caller frees *out with
 * weft__text_stream_free. */
weft_status weft__text_stream_open(weft_context *ctx, const char *path, const weft__text_files *files,
                                   bool unpack, weft__text_stream **out);
void weft__text_stream_free(weft__text_stream *stream);

/* Appends each character of the text once. `seen` has a bit for each code point. */
weft_status weft__text_stream_characters(weft__text_stream *stream, uint8_t *seen, weft__buffer *characters);

/* Reads the whole text into memory. `utf8`: it must be UTF-8. */
weft_status weft__text_stream_read(weft__text_stream *stream, bool utf8, weft_bytes *out);

/* Cuts the text into blocks, and counts their tokens. Adds all tokens to the hash, of which a share at the
 * end are hashed as a text of their own, if it is above 0. *kept: the tokens before this share. */
weft_status weft__text_stream_index(weft__text_stream *stream, const weft_tokenizer *tokenizer, double share,
                                    weft_hash *hash, int64_t *kept);

/* Encodes the text block by block, without an index: `take` gets the tokens of each block. */
typedef weft_status weft__take_ids(void *user, const int32_t *ids, size_t count);
weft_status weft__text_stream_encode(weft__text_stream *stream, const weft_tokenizer *tokenizer,
                                     weft__take_ids *take, void *user);

#endif
