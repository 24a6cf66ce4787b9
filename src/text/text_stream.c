/* The tokens of texts in files: an index of blocks, and a cache of the blocks that were read last. Must not
 * know: batches, splits. Read next: corpus.c. */
#include "text/text_stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static weft__place end_of(const weft__text_stream *s) { return (weft__place){s->documents.count, 0}; }

/* Makes a failure of the calling thread one of the stream's context. */
static weft_status own_failure(const weft__text_stream *s, weft_status status) {
    /* a file that changes meanwhile is no error of the program */
    const weft_status own = status == WEFT_ERR_STATE ? WEFT_ERR_FORMAT : status;
    return status == WEFT_OK ? WEFT_OK : weft__fail(s->ctx, own, "%s", weft_last_error(NULL));
}

/* ---- opening ---- */

weft_status weft__text_stream_open(weft_context *ctx, const char *path, const weft__text_files *files,
                                   bool unpack, weft__text_stream **out) {
    weft__text_stream *s = *out = weft__zalloc(ctx, sizeof *s);
    if (!s) return weft__fail_oom(ctx, sizeof *s, "texts in files");
    s->ctx = ctx;
    s->passages = (weft__passages){.documents = &s->documents, .utf8 = true};
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        weft__free(ctx, s);
        *out = NULL;
        return weft__fail_oom(ctx, 0, "texts in files");
    }
    const weft_status status = weft__documents_list(ctx, path, files, unpack, &s->documents);
    if (status != WEFT_OK) {
        weft__text_stream_free(s);
        *out = NULL;
    }
    return status == WEFT_ERR_STATE ? weft__fail(ctx, WEFT_ERR_FORMAT, "%s", weft_last_error(ctx)) : status;
}

void weft__text_stream_free(weft__text_stream *s) {
    if (!s) return;
    weft_context *ctx = s->ctx;
    weft_tokens_free(s->tokens);
    for (size_t i = 0; i < WEFT__STREAM_CACHE; i++) weft__free(NULL, s->cache[i].ids.ids);
    weft_tokenizer_free(s->tokenizer);
    weft__passages_free(&s->passages);
    weft__documents_free(&s->documents);
    weft__buffer_free(&s->room);
    weft__free(ctx, s->blocks);
    weft__free(ctx, s->marks);
    pthread_mutex_destroy(&s->lock);
    weft__free(ctx, s);
}

/* ---- the whole text ---- */

weft_status weft__text_stream_characters(weft__text_stream *s, uint8_t *seen, weft__buffer *characters) {
    weft_status status = WEFT_OK;
    s->passages.utf8 = true;
    for (weft__place at = {0}; status == WEFT_OK && !weft__place_is(at, end_of(s));) {
        bool whole;
        uint32_t point;
        weft__buffer_set(&s->room, "", 0);
        status = weft__passages_next(&s->passages, &at, end_of(s), &s->room, &whole);
        for (size_t i = 0; status == WEFT_OK && i < s->room.bytes;) {
            const int n = weft__utf8_read(s->room.text + i, s->room.bytes - i, &point);
            if (n <= 0) break; /* not after the check */
            if (!(seen[point / 8] >> point % 8 & 1))
                weft__buffer_put(characters, s->room.text + i, (size_t)n);
            seen[point / 8] |= (uint8_t)(1 << point % 8);
            i += (size_t)n;
        }
    }
    return status == WEFT_OK ? weft__buffer_check(characters) : own_failure(s, status);
}

weft_status weft__text_stream_read(weft__text_stream *s, bool utf8, weft_bytes *out) {
    weft__buffer text = {0};
    weft_status status = WEFT_OK;
    *out = (weft_bytes){0};
    s->passages.utf8 = utf8;
    for (weft__place at = {0}; status == WEFT_OK && !weft__place_is(at, end_of(s));) {
        bool whole;
        status = weft__passages_next(&s->passages, &at, end_of(s), &text, &whole);
    }
    status = own_failure(s, status);
    if (status == WEFT_OK && !(out->data = weft__alloc_aligned(s->ctx, text.bytes + 1)))
        status = weft__fail_oom(s->ctx, text.bytes, "the texts");
    if (status == WEFT_OK) {
        if (text.bytes) memcpy(out->data, text.text, text.bytes);
        out->data[text.bytes] = 0;
        out->size = text.bytes;
    }
    weft__buffer_free(&text);
    return status;
}

/* ---- blocks ---- */

/* A text may be cut at white space, so no special token may hold any. */
static weft_status check_specials(const weft_tokenizer *t) {
    for (size_t id = 0; t->bpe && id < t->count; id++) {
        size_t bytes;
        const char *token = weft__token(t, id, &bytes);
        if (!weft_tokenizer_is_special(t, (int32_t)id)) continue;
        for (size_t i = 0; i < bytes; i++)
            if ((unsigned char)token[i] <= ' ')
                return weft__fail(
                    NULL, WEFT_ERR_UNSUPPORTED,
                    "the special token '%.*s' holds white space, so a text with it cannot stay in "
                    "its files: set data.in_files: false",
                    (int)bytes, token);
    }
    return WEFT_OK;
}

static weft_status take_tokenizer(weft__text_stream *s, const weft_tokenizer *tokenizer) {
    const weft_tokenizer_kind kind = tokenizer->kind;
    if (s->tokenizer) return WEFT_OK;
    WEFT_TRY(check_specials(tokenizer));
    WEFT_TRY(weft__tokenizer_copy(tokenizer, NULL, &s->tokenizer));
    s->passages.cutting = kind == WEFT_TOKENIZER_BYTE        ? WEFT__CUT_BYTES
                          : kind == WEFT_TOKENIZER_CHARACTER ? WEFT__CUT_CHARACTERS
                          : kind == WEFT_TOKENIZER_PIPELINE  ? WEFT__CUT_TEXTS
                                                             : WEFT__CUT_WORDS;
    s->passages.utf8 =
        kind == WEFT_TOKENIZER_CHARACTER || (kind != WEFT_TOKENIZER_BYTE && s->documents.closed);
    return WEFT_OK;
}

static weft_status encode_room(weft__text_stream *s, weft__place begin, weft__ids *ids) {
    char name[4500];
    weft__span span = {"a text", s->room.text ? s->room.text : "", s->room.bytes};
    weft_status status = weft__tokenizer_encode_text(s->tokenizer, &span, ids);
    if (status != WEFT_OK) { /* once more, with the name */
        weft__documents_name(&s->documents, (size_t)begin.document, name, sizeof name - 64);
        const size_t end = strlen(name);
        snprintf(name + end, sizeof name - end, ": from %s %" PRIu64 " on",
                 weft__place_unit(&s->documents, begin), begin.at);
        span.name = name;
        status = weft__tokenizer_encode_text(s->tokenizer, &span, ids);
    }
    if (status == WEFT_OK && ids->failed)
        status = weft__fail_oom(NULL, ids->count * sizeof *ids->ids, "tokens");
    weft__buffer_set(&s->room, "", 0);
    return status;
}

/* Encodes the text between two places. A pipeline encodes each text by itself. */
static weft_status encode_block(weft__text_stream *s, weft__place begin, weft__place end, weft__ids *ids) {
    ids->count = 0;
    ids->grows = true;
    weft__buffer_set(&s->room, "", 0);
    for (weft__place at = begin; !weft__place_is(at, end);) {
        bool whole;
        WEFT_TRY(weft__passages_next(&s->passages, &at, end, &s->room, &whole));
        if (s->passages.cutting == WEFT__CUT_TEXTS && whole) WEFT_TRY(encode_room(s, begin, ids));
    }
    return s->room.bytes ? encode_room(s, begin, ids) : WEFT_OK;
}

weft_status weft__text_stream_encode(weft__text_stream *s, const weft_tokenizer *tokenizer,
                                     weft__take_ids *take, void *user) {
    weft__ids ids = {0};
    weft__place next, at = {0};
    weft_status status = take_tokenizer(s, tokenizer);
    while (status == WEFT_OK && !weft__place_is(at, end_of(s))) {
        status = weft__passages_cut(&s->passages, at, end_of(s), &s->room, &next);
        if (status == WEFT_OK) status = encode_block(s, at, next, &ids);
        if (status == WEFT_OK) status = take(user, ids.ids, ids.count);
        at = next;
    }
    weft__free(NULL, ids.ids);
    return status;
}

/* ---- reading ---- */

/* Gives the tokens of a block, from the cache or encoded again. */
static weft_status block_ids(weft__text_stream *s, size_t block, const weft__ids **out) {
    weft__cached_block *oldest = &s->cache[0];
    for (size_t i = 0; i < WEFT__STREAM_CACHE; i++) {
        weft__cached_block *c = &s->cache[i];
        if (c->used && c->block == block) {
            c->used = ++s->reads;
            *out = &c->ids;
            return WEFT_OK;
        }
        if (c->used < oldest->used) oldest = c;
    }
    const weft__block *b = &s->blocks[block];
    oldest->used = 0;
    WEFT_TRY(encode_block(s, b->begin, b[1].begin, &oldest->ids));
    if ((int64_t)oldest->ids.count != b[1].first - b->first) {
        char name[4500];
        weft__documents_name(&s->documents, (size_t)b->begin.document, name, sizeof name);
        return weft__fail(NULL, WEFT_ERR_STATE, "%s: the text has changed since it was opened: restore it",
                          name);
    }
    oldest->block = block;
    oldest->used = ++s->reads;
    *out = &oldest->ids;
    return WEFT_OK;
}

static size_t find_block(const weft__text_stream *s, int64_t first) {
    size_t low = 0, high = s->count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (s->blocks[middle].first <= first)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static weft_status copy_ids(weft__text_stream *s, int64_t first, size_t count, int32_t *ids) {
    const weft__ids *of = NULL;
    size_t done = 0;
    for (size_t block = find_block(s, first); block < s->count && done < count; block++) {
        if (s->blocks[block + 1].first <= first + (int64_t)done) continue; /* it has no tokens */
        WEFT_TRY(block_ids(s, block, &of));
        const size_t from = (size_t)(first + (int64_t)done - s->blocks[block].first), left = of->count - from,
                     some = left < count - done ? left : count - done;
        memcpy(ids + done, of->ids + from, some * sizeof *ids);
        done += some;
    }
    return WEFT_OK;
}

static weft_status stream_tokens(void *user, int64_t first, size_t count, int32_t *ids) {
    weft__text_stream *s = user;
    pthread_mutex_lock(&s->lock);
    const weft_status status = copy_ids(s, first, count, ids);
    pthread_mutex_unlock(&s->lock);
    /* a file that changes meanwhile is no error of the program */
    return status == WEFT_ERR_STATE ? weft__fail(NULL, WEFT_ERR_FORMAT, "%s", weft_last_error(NULL)) : status;
}

/* ---- the index ---- */

typedef struct indexing {
    weft__text_stream *s;
    weft__hash_stream hash;
    weft_hash state; /* of `hash` */
    bool marks;
    size_t mark_capacity;
    weft_hash *states;
    size_t state_capacity;
} indexing;

static weft_status add_block(weft__text_stream *s, weft__place begin, int64_t first) {
    if (!weft__grow(s->ctx, &s->blocks, &s->capacity, s->count, sizeof *s->blocks))
        return weft__fail_oom(NULL, (s->count + 1) * sizeof *s->blocks, "the blocks of texts");
    s->blocks[s->count++] = (weft__block){begin, first};
    return WEFT_OK;
}

/* Notes the hash of the tokens before the block that comes next. */
static weft_status add_mark(indexing *x, size_t block) {
    weft__text_stream *s = x->s;
    if (!weft__grow(s->ctx, &s->marks, &x->mark_capacity, block, sizeof *s->marks) ||
        !weft__grow(s->ctx, &x->states, &x->state_capacity, block, sizeof *x->states))
        return weft__fail_oom(NULL, block * sizeof *s->marks, "the blocks of texts");
    s->marks[block] = x->hash;
    x->states[block] = x->state;
    return WEFT_OK;
}

static weft_status index_blocks(indexing *x) {
    weft__text_stream *s = x->s;
    weft__ids ids = {0};
    weft__place next, at = {0};
    int64_t first = 0;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && !weft__place_is(at, end_of(s))) {
        if (x->marks) status = add_mark(x, s->count);
        if (status == WEFT_OK) status = add_block(s, at, first);
        if (status == WEFT_OK) status = weft__passages_cut(&s->passages, at, end_of(s), &s->room, &next);
        if (status == WEFT_OK) status = encode_block(s, at, next, &ids);
        for (size_t i = 0; status == WEFT_OK && i < ids.count; i++)
            if (ids.ids[i] > s->largest) s->largest = ids.ids[i];
        if (status == WEFT_OK && ids.count) weft__hash_piece(&x->hash, ids.ids, ids.count * sizeof *ids.ids);
        first += (int64_t)ids.count;
        at = next;
    }
    weft__free(NULL, ids.ids);
    if (status == WEFT_OK) status = add_block(s, end_of(s), first);
    if (status == WEFT_OK) s->count--; /* the end is no block */
    return status;
}

/* Hashes the tokens before `kept` and those from there on as two texts. */
static weft_status hash_parts(indexing *x, int64_t kept) {
    weft__text_stream *s = x->s;
    const size_t block = find_block(s, kept);
    const weft__ids *of = NULL;
    x->state = x->states[block];
    x->hash = s->marks[block];
    x->hash.hash = &x->state;
    for (size_t b = block; b < s->count; b++) {
        size_t before = 0;
        WEFT_TRY(block_ids(s, b, &of));
        if (b == block) {
            before = (size_t)(kept - s->blocks[b].first);
            if (before) weft__hash_piece(&x->hash, of->ids, before * sizeof *of->ids);
            weft__hash_end(&x->hash);
            x->hash = (weft__hash_stream){.hash = &x->state};
        }
        if (of->count > before)
            weft__hash_piece(&x->hash, of->ids + before, (of->count - before) * sizeof *of->ids);
    }
    return WEFT_OK;
}

weft_status weft__text_stream_index(weft__text_stream *s, const weft_tokenizer *tokenizer, double share,
                                    weft_hash *hash, int64_t *kept) {
    indexing x = {.s = s, .state = *hash, .marks = share > 0};
    x.hash.hash = &x.state;
    weft_status status = take_tokenizer(s, tokenizer);
    if (status == WEFT_OK) status = index_blocks(&x);
    const int64_t count = status == WEFT_OK ? s->blocks[s->count].first : 0;
    *kept = share > 0 ? (int64_t)floor((double)count * (1.0 - share)) : count;
    if (status == WEFT_OK && share > 0) status = hash_parts(&x, *kept);
    weft__hash_end(&x.hash);
    *hash = x.state;
    weft__free(s->ctx, x.states);
    weft__free(s->ctx, s->marks);
    s->marks = NULL;
    status = own_failure(s, status);
    if (status != WEFT_OK) return status;
    const weft__tokens_facts facts = {.count = count, .largest = s->largest};
    return weft__tokens_from(s->ctx, &facts, stream_tokens, s, &s->tokens);
}
