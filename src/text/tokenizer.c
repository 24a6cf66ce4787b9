/* What all tokenizers share: the vocabulary, and building, encoding and decoding by the functions of the
 * kind. Must not know: how any kind splits text. Read next: tokenizer_character.c. */
#include <inttypes.h>
#include <string.h>

#include "text/bpe.h"
#include "text/grammar/token_tree.h"
#include "text/pipeline/pipeline.h"
#include "base/utf8.h"
#include "data/parse.h"

static const weft__tokenizer_type *const kinds[WEFT_TOKENIZER_KIND_COUNT] = {
    [WEFT_TOKENIZER_CHARACTER] = &weft__tokenizer_character, [WEFT_TOKENIZER_BYTE] = &weft__tokenizer_byte,
    [WEFT_TOKENIZER_WORD] = &weft__tokenizer_word,           [WEFT_TOKENIZER_BPE] = &weft__tokenizer_bpe,
    [WEFT_TOKENIZER_PIPELINE] = &weft__tokenizer_pipeline,
};

static bool known(weft_tokenizer_kind kind) { return (unsigned)kind < WEFT_TOKENIZER_KIND_COUNT; }

const char *weft_tokenizer_kind_name(weft_tokenizer_kind kind) {
    return known(kind) ? kinds[kind]->name : NULL;
}

bool weft_tokenizer_kind_parse(const char *name, weft_tokenizer_kind *kind) {
    if (!name) return false;
    if (strcmp(name, "char") == 0) name = "character";
    for (int k = 0; k < WEFT_TOKENIZER_KIND_COUNT; k++)
        if (strcmp(kinds[k]->name, name) == 0) {
            if (kind) *kind = (weft_tokenizer_kind)k;
            return true;
        }
    return false;
}

/* ---- UTF-8 ---- */

weft__span weft__span_of(const char *path, const weft_bytes *file) {
    const char *text = (const char *)file->data;
    const size_t mark = file->size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return (weft__span){path, text + mark, file->size - mark};
}

weft_status weft__fail_utf8(weft_context *ctx, const weft__span *span, size_t at) {
    WEFT_TRY(weft__refuse_packed(ctx, span->name, span->text, span->bytes));
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
    t->type = kinds[kind];
    t->newline = -1;
    t->key = weft__mix64((uint64_t)(uintptr_t)t ^ (uint64_t)(uintptr_t)&t << 20);
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

/* ---- the table from tokens to ids ---- */

size_t weft__tokenizer_slot(const weft_tokenizer *t, const char *token, size_t bytes) {
    weft_hash h;
    weft__hash_init(&h);
    weft__hash_u64(&h, t->key);
    weft__hash_bytes(&h, token, bytes);
    for (size_t slot = (size_t)h.a & (t->slot_count - 1);; slot = (slot + 1) & (t->slot_count - 1)) {
        if (t->slots[slot] < 0) return slot;
        size_t n;
        const char *other = weft__token(t, (size_t)t->slots[slot], &n);
        if (n == bytes && memcmp(other, token, n) == 0) return slot;
    }
}

/* Keeps the table at most half full. A larger table is filled again from all ids. */
weft_status weft__tokenizer_reserve(weft_tokenizer *t) {
    if (t->slot_count > 2 * (t->count + 1)) return WEFT_OK;
    size_t wanted = t->slot_count ? 2 * t->slot_count : 1024;
    while (wanted <= 2 * (t->count + 1)) wanted *= 2;
    int32_t *slots = weft__array(t->ctx, wanted, sizeof *slots);
    if (!slots) return weft__fail_oom(t->ctx, wanted * sizeof *slots, "a vocabulary");
    memset(slots, 0xff, wanted * sizeof *slots); /* all -1 */
    weft__free(t->ctx, t->slots);
    t->slots = slots;
    t->slot_count = wanted;
    for (size_t id = 0; id < t->count; id++) {
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        slots[weft__tokenizer_slot(t, token, bytes)] = (int32_t)id;
    }
    return WEFT_OK;
}

weft_status weft__tokenizer_tabulate(weft_tokenizer *t, const char *name) {
    size_t total = t->count;
    weft_status status = WEFT_OK;
    t->count = 0; /* added one by one, so each token is compared with those before it */
    for (size_t id = 0; id < total; id++) {
        if ((status = weft__tokenizer_reserve(t)) != WEFT_OK) break;
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        int32_t *slot = &t->slots[weft__tokenizer_slot(t, token, bytes)];
        if (*slot >= 0) {
            status = weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu repeats id %d", name, id,
                                (int)*slot);
            break;
        }
        *slot = (int32_t)id;
        t->count++;
    }
    t->count = total;
    return status;
}

/* ---- making and freeing ---- */

weft_status weft__tokenizer_build(weft_context *ctx, weft_tokenizer_kind kind, const weft__span *spans,
                                  size_t count, size_t max_vocabulary, weft_tokenizer **out) {
    *out = NULL;
    if (!kinds[kind]->build)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "tokenizer: kind %s is not made from a text: load it from its files",
                          kinds[kind]->name);
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
    WEFT_NEED(ctx, out);
    *out = NULL;
    if (!known(kind))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_build: unknown kind %d", (int)kind);
    if (kind != WEFT_TOKENIZER_BYTE) WEFT_NEED_ARRAY(ctx, text, bytes);
    if (kind != WEFT_TOKENIZER_BYTE && bytes == 0)
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
    weft__bpe_free(t);
    weft__pipeline_free(t);
    weft__token_tree_free(t->tree);
    weft__free(t->ctx, t);
}

weft_tokenizer_kind weft_tokenizer_kind_of(const weft_tokenizer *t) {
    return t ? t->kind : WEFT_TOKENIZER_KIND_COUNT;
}

size_t weft_tokenizer_vocabulary(const weft_tokenizer *t) { return t ? t->count : 0; }

const char *weft_tokenizer_token(const weft_tokenizer *t, int32_t id, size_t *bytes) {
    size_t ignored;
    if (!t || id < 0 || (size_t)id >= t->count) return NULL;
    if (!bytes) bytes = &ignored;
    if (id != t->newline) return weft__token(t, (size_t)id, bytes);
    *bytes = 1;
    return "\n";
}

/* ---- encoding ---- */

static weft_status check_capacity(const weft_tokenizer *t, const char *function, const int32_t *ids,
                                  size_t capacity, size_t count) {
    if (!ids || count <= capacity) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_ARGUMENT, "%s: %zu ids do not fit, there is room for %zu", function,
                      count, capacity);
}

weft_status weft_tokenizer_encode(const weft_tokenizer *tokenizer, const char *text, size_t bytes,
                                  int32_t *ids, size_t capacity, size_t *count) {
    WEFT_NEED(NULL, tokenizer);
    WEFT_NEED(tokenizer->ctx, count);
    WEFT_NEED_ARRAY(tokenizer->ctx, text, bytes);
    const weft__span span = {"text", text, bytes};
    weft__ids out = {.ids = ids, .capacity = ids ? capacity : 0};
    WEFT_TRY(tokenizer->type->encode(tokenizer, &span, &out));
    *count = out.count;
    return check_capacity(tokenizer, __func__, ids, capacity, out.count);
}

/* Encodes texts with the special tokens of a frame. `types` may be NULL. */
static weft_status encode_framed(const weft_tokenizer *t, const weft__frame *frame, const weft__span *spans,
                                 weft__ids *out, int32_t *types) {
    for (size_t i = 0; i < frame->count; i++) {
        const weft__frame_item item = frame->items[i];
        size_t before = out->count;
        if (item.id >= 0)
            weft__put_id(out, item.id);
        else
            WEFT_TRY(t->type->encode(t, &spans[item.id == WEFT__OTHER_PLACE], out));
        for (size_t k = before; types && k < out->count && k < out->capacity; k++) types[k] = item.type;
    }
    return WEFT_OK;
}

weft_status weft__tokenizer_encode_text(const weft_tokenizer *t, const weft__span *span, weft__ids *out) {
    const weft__frame *frame = t->pipeline ? &t->pipeline->frame.single : NULL;
    const weft__span spans[2] = {*span, {span->name, "", 0}};
    return frame && frame->count ? encode_framed(t, frame, spans, out, NULL) : t->type->encode(t, span, out);
}

weft_status weft__tokenizer_encode_all(const weft_tokenizer *t, weft_context *ctx, const weft__span *span,
                                       bool special, int32_t **ids, size_t *count) {
    weft__ids out = {.grows = true, .ctx = ctx};
    *ids = NULL;
    weft_status status =
        special ? weft__tokenizer_encode_text(t, span, &out) : t->type->encode(t, span, &out);
    if (status == WEFT_OK && out.failed)
        status = weft__fail_oom(ctx, out.count * sizeof *out.ids, "the ids of a text");
    if (status != WEFT_OK) {
        weft__free(ctx, out.ids);
        return status;
    }
    /* Gives unused memory back. An array that cannot be made smaller stays as it is. */
    int32_t *fit =
        out.count < out.capacity ? weft__realloc(ctx, out.ids, (out.count + 1) * sizeof *fit) : NULL;
    *ids = fit ? fit : out.ids;
    *count = out.count;
    return WEFT_OK;
}

weft_status weft_tokenizer_encode_special(const weft_tokenizer *tokenizer, const char *text, size_t bytes,
                                          int32_t *ids, size_t capacity, size_t *count) {
    WEFT_NEED(NULL, tokenizer);
    WEFT_NEED(tokenizer->ctx, count);
    WEFT_NEED_ARRAY(tokenizer->ctx, text, bytes);
    const weft__span span = {"text", text, bytes};
    weft__ids out = {.ids = ids, .capacity = ids ? capacity : 0};
    WEFT_TRY(weft__tokenizer_encode_text(tokenizer, &span, &out));
    *count = out.count;
    return check_capacity(tokenizer, __func__, ids, capacity, out.count);
}

weft_status weft_tokenizer_encode_pair(const weft_tokenizer *tokenizer, const char *text, size_t bytes,
                                       const char *other, size_t other_bytes, int32_t *ids, int32_t *types,
                                       size_t capacity, size_t *count) {
    static weft__frame_item plain[2] = {{WEFT__TEXT_PLACE, 0}, {WEFT__OTHER_PLACE, 1}};
    const weft__frame without = {.items = plain, .count = 2};
    WEFT_NEED(NULL, tokenizer);
    WEFT_NEED(tokenizer->ctx, count);
    WEFT_NEED_ARRAY(tokenizer->ctx, text, bytes);
    WEFT_NEED_ARRAY(tokenizer->ctx, other, other_bytes);
    const weft__pipeline *p = tokenizer->pipeline;
    const weft__span spans[2] = {{"text", text, bytes}, {"other", other, other_bytes}};
    weft__ids out = {.ids = ids, .capacity = ids ? capacity : 0};
    WEFT_TRY(
        encode_framed(tokenizer, p && p->frame.pair.count ? &p->frame.pair : &without, spans, &out, types));
    *count = out.count;
    return check_capacity(tokenizer, __func__, ids, capacity, out.count);
}

/* The frame of one text, or of a pair. */
static weft__frame frame_of(const weft_tokenizer *t, bool pair) {
    static weft__frame_item plain[2] = {{WEFT__TEXT_PLACE, 0}, {WEFT__OTHER_PLACE, 1}};
    const weft__frame *frame = !t->pipeline ? NULL
                               : pair       ? &t->pipeline->frame.pair
                                            : &t->pipeline->frame.single;
    return frame && frame->count ? *frame : (weft__frame){.items = plain, .count = pair ? 2 : 1};
}

/* The ids of the two texts of a row, of which the first counts[] are kept. */
typedef struct row_parts {
    int32_t *ids[2];
    size_t counts[2];
} row_parts;

/* Drops ids at the ends, one after the other from the text that has more, until `most` are left: as
 * "longest_first" of the library tokenizers does. */
static bool cut_parts(row_parts *r, size_t most) {
    size_t *a = &r->counts[0], *b = &r->counts[1];
    if (*a + *b <= most) return true;
    size_t *less = *a <= *b ? a : b, *more = *a <= *b ? b : a;
    if (*less > most / 2) *less = most / 2;
    *more = most - *less;
    return false;
}

/* Writes the ids of a row. */
static void put_row(const weft__frame *frame, const row_parts *r, int32_t *ids, int32_t *types,
                    int64_t *count) {
    int64_t at = 0;
    for (size_t i = 0; i < frame->count; i++) {
        const weft__frame_item item = frame->items[i];
        const bool second = item.id == WEFT__OTHER_PLACE;
        const size_t n = item.id >= 0 ? 1 : r->counts[second];
        for (size_t k = 0; k < n; k++) {
            ids[at] = item.id >= 0 ? item.id : r->ids[second][k];
            types[at++] = item.type;
        }
    }
    *count = at;
}

weft_status weft_tokenizer_encode_row(const weft_tokenizer *tokenizer, const char *text, const char *other,
                                      int64_t most, int32_t *ids, int32_t *types, int64_t *count,
                                      bool *whole) {
    WEFT_NEED(NULL, tokenizer);
    weft_context *ctx = tokenizer->ctx;
    WEFT_NEED(ctx, text);
    WEFT_NEED(ctx, count);
    WEFT_NEED(ctx, whole);
    WEFT_NEED_ARRAY(ctx, ids, most);
    WEFT_NEED_ARRAY(ctx, types, most);
    const weft__frame frame = frame_of(tokenizer, other != NULL);
    const weft__span spans[2] = {{"text", text, strlen(text)}, {"other", other, other ? strlen(other) : 0}};
    int64_t room = most;
    row_parts r = {{NULL, NULL}, {0, 0}};
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < frame.count; i++) room -= frame.items[i].id >= 0;
    if (room < 1 + (other != NULL))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_tokenizer_encode_row: %lld ids have no room for a token besides the special "
                          "ones",
                          (long long)most);
    for (int i = 0; i < (other ? 2 : 1) && status == WEFT_OK; i++)
        status = weft__tokenizer_encode_all(tokenizer, ctx, &spans[i], false, &r.ids[i], &r.counts[i]);
    if (status == WEFT_OK) {
        *whole = cut_parts(&r, (size_t)room);
        put_row(&frame, &r, ids, types, count);
    }
    weft__free(ctx, r.ids[0]);
    weft__free(ctx, r.ids[1]);
    return status;
}

/* ---- special tokens ---- */

int32_t weft_tokenizer_special(const weft_tokenizer *tokenizer, weft_special role) {
    if (!tokenizer || (unsigned)role >= WEFT_SPECIAL_COUNT) return -1;
    if (tokenizer->pipeline) return tokenizer->pipeline->roles[role];
    if (!tokenizer->bpe || (role != WEFT_SPECIAL_BOS && role != WEFT_SPECIAL_EOS)) return -1;
    return tokenizer->slots[weft__tokenizer_slot(tokenizer, "<|endoftext|>", 13)]; /* GPT-2 */
}

bool weft_tokenizer_is_special(const weft_tokenizer *tokenizer, int32_t id) {
    if (!tokenizer || id < 0 || (size_t)id >= tokenizer->count) return false;
    for (size_t i = 0; tokenizer->bpe && i < tokenizer->bpe->special_count; i++)
        if (tokenizer->bpe->specials[i] == id) return true;
    if (!tokenizer->pipeline) return false;
    uint32_t added = tokenizer->pipeline->added.of[id];
    return added && tokenizer->pipeline->added.list[added - 1].special;
}

int32_t weft_tokenizer_id(const weft_tokenizer *tokenizer, const char *token, size_t bytes) {
    if (!tokenizer || !token || !bytes) return -1;
    const weft__pipeline *p = tokenizer->pipeline;
    for (size_t id = p ? p->model_count : 0; id < tokenizer->count; id++) {
        size_t n;
        const char *other = weft__token(tokenizer, id, &n);
        if (n == bytes && memcmp(other, token, n) == 0) return (int32_t)id;
    }
    return p ? weft__model_id(tokenizer, token, bytes) : -1;
}

/* ---- decoding ---- */

weft_status weft__tokenizer_next(const weft_tokenizer *t, weft__decoding *d, int32_t id, const char **text,
                                 size_t *bytes, bool *spaced) {
    *text = weft_tokenizer_token(t, id, bytes);
    if (!*text)
        return weft__fail(t->ctx, WEFT_ERR_INDEX,
                          "tokenizer: id %" PRId32 " at position %zu: the vocabulary has only %zu tokens", id,
                          d->count, t->count);
    bool word = t->spaced && id != t->newline;
    *spaced = word && d->spaced;
    if (t->pipeline) WEFT_TRY(weft__pipeline_decode((weft_tokenizer *)t, d, id, text, bytes));
    d->count++;
    d->spaced = word;
    return WEFT_OK;
}

weft_status weft_tokenizer_decode(const weft_tokenizer *tokenizer, const int32_t *ids, size_t count,
                                  char *out, size_t capacity, size_t *bytes) {
    size_t used = 0;
    weft__decoding decoding = {0};
    WEFT_NEED(NULL, tokenizer);
    WEFT_NEED(tokenizer->ctx, bytes);
    WEFT_NEED_ARRAY(tokenizer->ctx, ids, count);
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const char *text;
        bool spaced;
        WEFT_TRY(weft__tokenizer_next(tokenizer, &decoding, ids[i], &text, &n, &spaced));
        if (spaced && out && used < capacity) out[used] = ' ';
        used += spaced;
        if (out && used <= capacity && n <= capacity - used) memcpy(out + used, text, n);
        used += n;
    }
    *bytes = used;
    if (!out || used <= capacity) return WEFT_OK;
    return weft__fail(tokenizer->ctx, WEFT_ERR_ARGUMENT,
                      "weft_tokenizer_decode: %zu bytes do not fit, there is room for %zu", used, capacity);
}
