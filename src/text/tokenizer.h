/* Inside of tokenizers: a vocabulary (the bytes of each id) that all kinds share, and a table of functions
 * for each kind. A new kind is a new file with such a table and its line in tokenizer.c.
 *
 * Must not know: files (tokenizer_file.c does), corpora. Read next: tokenizer.c, then the kinds:
 * tokenizer_character.c, tokenizer_byte.c, tokenizer_word.c, tokenizer_bpe.c. */
#ifndef WEFT_SRC_TEXT_TOKENIZER_H
#define WEFT_SRC_TEXT_TOKENIZER_H

#include <weft/text.h>

#include "base/base.h"

/* Text with the name that messages give it. */
typedef struct weft__span {
    const char *name, *text;
    size_t bytes;
} weft__span;

/* Where encoded ids go: into the caller's room, beyond which they are only counted, or into an array that
 * grows. */
typedef struct weft__ids {
    int32_t *ids;
    size_t capacity, count;
    bool grows;        /* ids is to be freed with weft__free of ctx */
    bool failed;       /* memory was short: what came after is not there */
    weft_context *ctx; /* of an array that grows */
} weft__ids;

static inline void weft__put_id(weft__ids *out, int32_t id) {
    if (out->grows && out->count == out->capacity)
        out->failed |= !weft__grow(out->ctx, &out->ids, &out->capacity, out->count, sizeof *out->ids);
    if (out->count < out->capacity) out->ids[out->count] = id;
    out->count++;
}

typedef struct weft__tokenizer_type {
    const char *name; /* in files and configs */
    bool listed;      /* the vocabulary is in the file; else it follows from the kind */
    bool merged;      /* so are merges, and tokens are written in the alphabet of bytes: bpe.h */
    /* Fills the vocabulary from texts; NULL: it comes from files only. */
    weft_status (*build)(weft_tokenizer *t, const weft__span *spans, size_t count, size_t max_vocabulary);
    /* Checks a vocabulary (from build or a file) and makes what encode needs. `name` is for messages. */
    weft_status (*index)(weft_tokenizer *t, const char *name);
    weft_status (*encode)(const weft_tokenizer *t, const weft__span *span, weft__ids *out);
} weft__tokenizer_type;

struct weft_tokenizer {
    weft_context *ctx;
    const weft__tokenizer_type *type;
    weft_tokenizer_kind kind;
    char *text;   /* the tokens' bytes, one after the other */
    size_t *ends; /* [count] where each ends */
    size_t text_used, text_capacity, count, capacity;
    int32_t newline;    /* the id that stands for "\n" under another name, and joins without a space; -1 */
    bool spaced;        /* tokens are joined by a space */
    uint32_t *points;   /* character: [count] code points, ascending */
    int32_t ascii[128]; /* character: ids of those, -1 */
    int32_t *slots;     /* word, bpe: open-addressing table of ids, -1 is free */
    size_t slot_count;  /* a power of two */
    uint64_t key;       /* of hashes, so that no file can choose collisions */
    struct weft__bpe *bpe;
};

extern const weft__tokenizer_type weft__tokenizer_character, weft__tokenizer_byte, weft__tokenizer_word,
    weft__tokenizer_bpe;

/* An empty tokenizer of a kind; NULL when memory is short. */
weft_tokenizer *weft__tokenizer_new(weft_context *ctx, weft_tokenizer_kind kind);
/* Adds a token, whose id is the count before. */
weft_status weft__tokenizer_add(weft_tokenizer *t, const char *token, size_t bytes);
static inline const char *weft__token(const weft_tokenizer *t, size_t id, size_t *bytes) {
    size_t begin = id ? t->ends[id - 1] : 0;
    *bytes = t->ends[id] - begin;
    return t->text ? t->text + begin : ""; /* all tokens may be empty */
}

/* ---- the table from tokens to ids ---- */

/* Room for one more token. */
weft_status weft__tokenizer_reserve(weft_tokenizer *t);
/* Where a token has its id in t->slots, or where it would be put: -1 is there then. Needs room. */
size_t weft__tokenizer_slot(const weft_tokenizer *t, const char *token, size_t bytes);
/* Puts the whole vocabulary into the table; WEFT_ERR_FORMAT names a token that comes twice. */
weft_status weft__tokenizer_tabulate(weft_tokenizer *t, const char *name);

weft_status weft__tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind, const weft__span *spans,
                                  size_t count, size_t max_vocabulary, weft_tokenizer **out);
/* Allocates *ids (weft__free) of *count ids. */
weft_status weft__tokenizer_encode_all(const weft_tokenizer *t, weft_context *ctx, const weft__span *span,
                                       int32_t **ids, size_t *count);

/* Parses JSON that has at most two levels. `name` stands in messages. */
struct json_t;
struct weft__json;
weft_status weft__tokenizer_json(struct weft__json *json, const char *name, const char *text, size_t bytes,
                                 struct json_t **root);

/* From the bytes of encoder.json and of vocab.bpe. */
weft_status weft__tokenizer_parse_gpt2(weft_context *ctx, const weft__span *json, const weft__span *merges,
                                       weft_tokenizer **out);

/* WEFT_ERR_FORMAT naming the first byte that is not UTF-8; WEFT_OK when all are. */
weft_status weft__check_utf8(weft_context *ctx, const weft__span *span);
weft_status weft__fail_utf8(weft_context *ctx, const weft__span *span, size_t at);

#endif
