/* What all tokenizers share: the vocabulary, building, encoding and decoding through the kind's table.
 * Must not know: how any kind cuts text. Read next: tokenizer_character.c. */
#include <inttypes.h>
#include <string.h>

#include "text/tokenizer.h"
#include "text/utf8.h"

static const weft__tokenizer_type *const types[WEFT_TOKENIZER_KIND_COUNT] = {
    [WEFT_TOKENIZER_CHARACTER] = &weft__tokenizer_character,
    [WEFT_TOKENIZER_BYTE] = &weft__tokenizer_byte,
    [WEFT_TOKENIZER_WORD] = &weft__tokenizer_word,
};

static bool known(weft_tokenizer_kind kind) { return (unsigned)kind < WEFT_TOKENIZER_KIND_COUNT; }

const char *weft_tokenizer_kind_name(weft_tokenizer_kind kind) {
    return known(kind) ? types[kind]->name : NULL;
}

bool weft_tokenizer_kind_parse(const char *name, weft_tokenizer_kind *kind) {
    if (!name) return false;
    if (strcmp(name, "char") == 0) name = "character";
    for (int k = 0; k < WEFT_TOKENIZER_KIND_COUNT; k++)
        if (strcmp(types[k]->name, name) == 0) {
            *kind = (weft_tokenizer_kind)k;
            return true;
        }
    return false;
}

/* ---- UTF-8 ---- */

weft_status weft__fail_utf8(weft_context *ctx, const weft__span *span, size_t at) {
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: byte %zu (0x%02x) is not UTF-8: convert the text, or use bytes", span->name, at,
                      (unsigned)(unsigned char)span->text[at]);
}

weft_status weft__check_utf8(weft_context *ctx, const weft__span *span) {
    uint32_t point;
    for (size_t at = 0; at < span->bytes;) {
        if ((unsigned char)span->text[at] < 0x80) {
            at++;
            continue;
        }
        int n = weft__utf8_read(span->text + at, span->bytes - at, &point);
        if (n <= 0) return weft__fail_utf8(ctx, span, at);
        at += (size_t)n;
    }
    return WEFT_OK;
}

/* ---- the vocabulary ---- */

weft_tokenizer *weft__tokenizer_new(weft_context *ctx, weft_tokenizer_kind kind) {
    weft_tokenizer *t = weft__zalloc(ctx, sizeof *t);
    if (!t) return NULL;
    t->ctx = ctx;
    t->kind = kind;
    t->type = types[kind];
    t->newline = -1;
    return t;
}

weft_status weft__tokenizer_add(weft_tokenizer *t, const char *token, size_t bytes) {
    if (t->count >= INT32_MAX)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "tokenizer: more than 2^31 - 1 tokens");
    if (!weft__grow(t->ctx, &t->ends, &t->capacity, t->count, sizeof *t->ends))
        return weft__fail_oom(t->ctx, t->count * sizeof *t->ends, "a vocabulary");
    if (bytes > t->text_capacity - t->text_used) {
        size_t wanted = t->text_capacity + bytes;
        wanted += wanted / 2 + 256;
        char *text = weft__realloc(t->ctx, t->text, wanted);
        if (!text) return weft__fail_oom(t->ctx, wanted, "a vocabulary");
        t->text = text;
        t->text_capacity = wanted;
    }
    if (bytes) memcpy(t->text + t->text_used, token, bytes);
    t->text_used += bytes;
    t->ends[t->count++] = t->text_used;
    return WEFT_OK;
}

weft_status weft__tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind, const weft__span *spans,
                                  size_t count, size_t max_vocabulary, weft_tokenizer **out) {
    *out = NULL;
    weft_tokenizer *t = weft__tokenizer_new(ctx, kind);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a tokenizer");
    weft_status status = t->type->build(t, spans, count, max_vocabulary);
    if (status == WEFT_OK) status = t->type->index(t, spans[0].name);
    if (status != WEFT_OK) {
        weft_tokenizer_free(t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

weft_status weft_tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind, const char *text, size_t bytes,
                                 const weft_tokenizer_options *options, weft_tokenizer **out) {
    if (!out) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_build: out is NULL");
    *out = NULL;
    if (!known(kind))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_build: no kind %d", (int)kind);
    if (kind != WEFT_TOKENIZER_BYTE && (!text || bytes == 0))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_build: the corpus is empty");
    const weft__span span = {"text", text, bytes};
    return weft__tokenizer_build(ctx, kind, &span, 1, options ? options->max_vocabulary : 0, out);
}

void weft_tokenizer_free(weft_tokenizer *t) {
    if (!t) return;
    weft__free(t->ctx, t->text);
    weft__free(t->ctx, t->ends);
    weft__free(t->ctx, t->points);
    weft__free(t->ctx, t->slots);
    weft__free(t->ctx, t);
}

weft_tokenizer_kind weft_tokenizer_kind_of(const weft_tokenizer *t) { return t->kind; }

size_t weft_tokenizer_vocabulary(const weft_tokenizer *t) { return t->count; }

const char *weft_tokenizer_token(const weft_tokenizer *t, int32_t id, size_t *bytes) {
    if (!t || id < 0 || (size_t)id >= t->count) return NULL;
    if (id != t->newline) return weft__token(t, (size_t)id, bytes);
    *bytes = 1;
    return "\n";
}

/* ---- encoding ---- */

weft_status weft_tokenizer_encode(const weft_tokenizer *t, const char *text, size_t bytes, int32_t *ids,
                                  size_t capacity, size_t *count) {
    if (!t || !count || (!text && bytes))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_tokenizer_encode: NULL");
    const weft__span span = {"text", text, bytes};
    weft__ids out = {ids, ids ? capacity : 0, 0};
    WEFT_TRY(t->type->encode(t, &span, &out));
    *count = out.count;
    if (!ids || out.count <= capacity) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_encode: %zu ids, room for %zu", out.count,
                      capacity);
}

weft_status weft__tokenizer_encode_all(const weft_tokenizer *t, weft_context *ctx, const weft__span *span,
                                       int32_t **ids, size_t *count) {
    weft__ids out = {NULL, 0, 0};
    *ids = NULL;
    WEFT_TRY(t->type->encode(t, span, &out)); /* counting first: a text may be large, its ids four times so */
    int32_t *room = weft__array(ctx, out.count, sizeof *room);
    if (!room) return weft__fail_oom(ctx, out.count * sizeof *room, "the ids of a text");
    out = (weft__ids){room, out.count, 0};
    weft_status status = t->type->encode(t, span, &out);
    if (status != WEFT_OK) {
        weft__free(ctx, room);
        return status;
    }
    *ids = room;
    *count = out.count;
    return WEFT_OK;
}

/* ---- decoding ---- */

weft_status weft_tokenizer_decode(const weft_tokenizer *t, const int32_t *ids, size_t count, char *out,
                                  size_t capacity, size_t *bytes) {
    size_t used = 0;
    bool spaced = false; /* a space stands before the next word */
    if (!t || !bytes || (!ids && count))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_tokenizer_decode: NULL");
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const char *token = weft_tokenizer_token(t, ids[i], &n);
        if (!token)
            return weft__fail(t->ctx, WEFT_ERR_INDEX,
                              "tokenizer: id %" PRId32 " at position %zu: the vocabulary has %zu", ids[i], i,
                              t->count);
        bool word = t->spaced && ids[i] != t->newline;
        if (word && spaced) {
            if (out && used < capacity) out[used] = ' ';
            used++;
        }
        if (out && used <= capacity && n <= capacity - used) memcpy(out + used, token, n);
        used += n;
        spaced = word;
    }
    *bytes = used;
    if (!out || used <= capacity) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_decode: %zu bytes, room for %zu", used,
                      capacity);
}
