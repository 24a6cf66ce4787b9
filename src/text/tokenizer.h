/* The private interface of tokenizers: a vocabulary (the bytes of each id) that all kinds share, and a table
 * of functions for each kind. A new kind is a new file with such a table, and one line in tokenizer.c. Must
 * not know: files (tokenizer_file.c does), corpora. Read next: tokenizer.c, then the kinds:
 * tokenizer_character.c, tokenizer_byte.c, tokenizer_word.c, tokenizer_bpe.c. */
#ifndef WEFT_SRC_TEXT_TOKENIZER_H
#define WEFT_SRC_TEXT_TOKENIZER_H

#include <weft/data.h>
#include <weft/text.h>

#include "base/base.h"

/* What decoding remembers from one id to the next. Zero at the begin. */
typedef struct weft__decoding {
    size_t count;         /* ids that came before */
    bool spaced;          /* the next word needs a space before it */
    bool space;           /* the same, for a pipeline */
    bool stripping_ended; /* a pipeline found text that stays */
    size_t stripped;      /* characters that a pipeline removed from the begin of the text */
} weft__decoding;

/* A text, with the name that messages use for it. */
typedef struct weft__span {
    const char *name, *text;
    size_t bytes;
} weft__span;

/* Receives encoded ids. The ids go into an array of the caller, and ids beyond its capacity are only counted.
 * Or the ids go into an array that grows. */
typedef struct weft__ids {
    int32_t *ids;
    size_t capacity, count;
    bool grows;        /* ids grows; the caller frees it with weft__free of ctx */
    bool failed;       /* memory was short, so later ids are missing */
    weft_context *ctx; /* context of an array that grows */
} weft__ids;

static inline void weft__put_id(weft__ids *out, int32_t id) {
    if (out->grows && out->count == out->capacity)
        out->failed |= !weft__grow(out->ctx, &out->ids, &out->capacity, out->count, sizeof *out->ids);
    if (out->count < out->capacity) out->ids[out->count] = id;
    out->count++;
}

typedef struct weft__tokenizer_type {
    const char *name; /* name in files and configurations */
    bool listed;      /* the vocabulary is in the file; otherwise it follows from the kind */
    bool merged;      /* the file also has merges, and writes tokens in the alphabet of bytes: bpe.h */
    /* Fills the vocabulary from texts. NULL: the vocabulary comes only from files. */
    weft_status (*build)(weft_tokenizer *t, const weft__span *spans, size_t count, size_t max_vocabulary);
    /* Checks a vocabulary from build or from a file, and prepares what encode needs. `name` is for
     * messages. */
    weft_status (*index)(weft_tokenizer *t, const char *name);
    weft_status (*encode)(const weft_tokenizer *t, const weft__span *span, weft__ids *out);
} weft__tokenizer_type;

struct weft_tokenizer {
    weft_context *ctx;
    const weft__tokenizer_type *type;
    weft_tokenizer_kind kind;
    char *text;   /* the bytes of all tokens, one after the other */
    size_t *ends; /* [count]: where each token ends */
    size_t text_used, text_capacity, count, capacity;
    /* id that decodes to "\n" whatever its token is, without spaces around it; -1: none */
    int32_t newline;
    bool spaced;        /* decoding puts a space between tokens */
    uint32_t *points;   /* character: [count] code points, ascending */
    int32_t ascii[128]; /* character: id of each ASCII character, or -1 */
    int32_t *slots;     /* word, bpe: open-addressing table of ids; -1 is a free slot */
    size_t slot_count;  /* a power of two */
    uint64_t key;       /* key of the hashes, so that no file can choose collisions */
    struct weft__bpe *bpe;
    struct weft__pipeline *pipeline;
    struct weft__token_tree *tree; /* of grammar/token_tree.h, made when it is needed first; NULL before */
};

extern const weft__tokenizer_type weft__tokenizer_character, weft__tokenizer_byte, weft__tokenizer_word,
    weft__tokenizer_bpe, weft__tokenizer_pipeline;

/* Returns an empty tokenizer of a kind, or NULL when memory is short. */
weft_tokenizer *weft__tokenizer_new(weft_context *ctx, weft_tokenizer_kind kind);
/* Adds a token. Its id is the previous count. */
weft_status weft__tokenizer_add(weft_tokenizer *t, const char *token, size_t bytes);
static inline const char *weft__token(const weft_tokenizer *t, size_t id, size_t *bytes) {
    size_t begin = id ? t->ends[id - 1] : 0;
    *bytes = t->ends[id] - begin;
    return t->text ? t->text + begin : ""; /* all tokens may be empty */
}

/* ---- the table from tokens to ids ---- */

/* Makes room for one more token. */
weft_status weft__tokenizer_reserve(weft_tokenizer *t);
/* Returns the slot of a token in t->slots. If the token is unknown, the slot holds -1 and is the place where
 * its id belongs. Needs a free slot. */
size_t weft__tokenizer_slot(const weft_tokenizer *t, const char *token, size_t bytes);
/* Puts the whole vocabulary into the table. WEFT_ERR_FORMAT names a token that appears twice. */
weft_status weft__tokenizer_tabulate(weft_tokenizer *t, const char *name);

weft_status weft__tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind, const weft__span *spans,
                                  size_t count, size_t max_vocabulary, weft_tokenizer **out);
/* Encodes a text as models read it: with the special tokens that belong around a text, such as <s>. */
weft_status weft__tokenizer_encode_text(const weft_tokenizer *t, const weft__span *span, weft__ids *out);
/* Encodes a text into a new array *ids of *count ids, if `special` with the special tokens around it. The
 * caller frees the array with weft__free. */
weft_status weft__tokenizer_encode_all(const weft_tokenizer *t, weft_context *ctx, const weft__span *span,
                                       bool special, int32_t **ids, size_t *count);

/* Makes a copy for another context, which may be NULL, so that another thread can encode. The copy does not
 * know the roles of special tokens. */
weft_status weft__tokenizer_copy(const weft_tokenizer *t, weft_context *ctx, weft_tokenizer **out);

/* Gives the text that an id adds to the ids before it, valid until the next call. If *spaced, a space comes
 * first. WEFT_ERR_INDEX: the id is out of range. */
weft_status weft__tokenizer_next(const weft_tokenizer *t, weft__decoding *d, int32_t id, const char **text,
                                 size_t *bytes, bool *spaced);

/* Parses JSON of at most 64 levels. `name` appears in messages. */
struct json_t;
struct weft__json;
weft_status weft__tokenizer_json(struct weft__json *json, const char *name, const char *text, size_t bytes,
                                 size_t flags, struct json_t **root);

/* Makes a tokenizer from the bytes of encoder.json and vocab.bpe. */
weft_status weft__tokenizer_parse_gpt2(weft_context *ctx, const weft__span *json, const weft__span *merges,
                                       weft_tokenizer **out);

/* Returns WEFT_OK if all bytes are UTF-8. WEFT_ERR_FORMAT names the first byte that is not. */
weft_status weft__check_utf8(weft_context *ctx, const weft__span *span);
/* The text of a file. Some editors begin a UTF-8 file with a byte order mark, which is no part of it. */
weft__span weft__span_of(const char *path, const weft_bytes *file);
weft_status weft__fail_utf8(weft_context *ctx, const weft__span *span, size_t at);

#endif
