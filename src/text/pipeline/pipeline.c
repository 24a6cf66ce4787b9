/* Runs the stages of a pipeline. Must not know: files, what single parts do. Read next: read.c, then
 * added_tokens.c. */
#include <string.h>

#include "base/utf8.h"
#include "text/pipeline/pipeline.h"

int32_t weft__model_id(const weft_tokenizer *t, const char *token, size_t bytes) {
    return t->slot_count ? t->slots[weft__tokenizer_slot(t, token, bytes)] : -1;
}

/* ---- budgets ---- */

void weft__pipeline_begin(weft_tokenizer *t, size_t bytes) {
    weft__pipeline *p = t->pipeline;
    p->left.text = p->left.most = (uint64_t)bytes * WEFT__GROWTH_RATIO + WEFT__GROWTH_FREE;
    p->left.steps = (uint64_t)bytes * WEFT__WORK_RATIO + WEFT__WORK_FREE;
}

weft_status weft__pipeline_work(weft_tokenizer *t, uint64_t steps) {
    if (weft__spend(&t->pipeline->left.steps, steps)) return WEFT_OK;
    return weft__fail(
        t->ctx, WEFT_ERR_UNSUPPORTED,
        "the tokenizer takes more than %d steps for each byte of a text: use the tokenizer.json "
        "that the model's authors published",
        WEFT__WORK_RATIO);
}

static weft_status fail_growth(const weft_tokenizer *t) {
    return weft__fail(t->ctx, WEFT_ERR_UNSUPPORTED,
                      "the tokenizer makes more than %d bytes of each byte of a text: use the tokenizer.json "
                      "that the model's authors published",
                      WEFT__GROWTH_RATIO);
}

weft_status weft__pipeline_grow(weft_tokenizer *t, uint64_t bytes) {
    return weft__spend(&t->pipeline->left.text, bytes) ? weft__pipeline_work(t, bytes) : fail_growth(t);
}

void weft__room_begin(const weft_tokenizer *t, weft__buffer *room) {
    weft__buffer_set(room, NULL, 0);
    room->most = t->pipeline->left.most;
}

weft_status weft__room_check(weft_tokenizer *t, const weft__buffer *room) {
    if (room->full) return fail_growth(t);
    WEFT_TRY(weft__pipeline_work(t, room->bytes));
    return weft__buffer_check(room);
}

/* ---- normalization ---- */

weft_status weft__normalize(weft_tokenizer *t, weft__piece *piece) {
    weft__pipeline *p = t->pipeline;
    for (size_t i = 0; i < p->normalizers.count; i++) {
        weft__part *part = &p->normalizers.list[i];
        weft__buffer *room = &p->work.rooms[1 + i % 2];
        weft__room_begin(t, room);
        WEFT_TRY(weft__pipeline_work(t, piece->bytes));
        WEFT_TRY(part->type->normalize(part, piece->text, piece->bytes, room));
        WEFT_TRY(weft__room_check(t, room));
        piece->text = room->text ? room->text : "";
        piece->bytes = room->bytes;
    }
    return WEFT_OK;
}

/* ---- encoding ---- */

static weft_status encode_words(weft__encoding *e, const weft__piece *piece) {
    return weft__pre_tokenize(e, 0, piece);
}

static weft_status encode_raw(weft__encoding *e, const weft__piece *piece) {
    weft__piece normal = *piece;
    WEFT_TRY(weft__normalize(e->t, &normal));
    return weft__added_tokens_cut(e, 1, &normal, encode_words);
}

/* Returns the first byte from `at` on that is not UTF-8, or the end. */
static size_t find_bad_byte(const weft__span *span, size_t at) {
    uint32_t point;
    while (at < span->bytes) {
        uint64_t eight;
        if (span->bytes - at >= sizeof eight) {
            memcpy(&eight, span->text + at, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                at += sizeof eight;
                continue;
            }
        }
        bool ascii = (unsigned char)span->text[at] < 0x80;
        int n = ascii ? 1 : weft__utf8_read(span->text + at, span->bytes - at, &point);
        if (n <= 0) break;
        at += (size_t)n;
    }
    return at;
}

weft_status weft__replace_bad_bytes(const weft__span *span, weft__buffer *room) {
    uint32_t point;
    weft__buffer_set(room, NULL, 0);
    for (size_t at = 0; at < span->bytes;) {
        size_t bad = find_bad_byte(span, at);
        weft__buffer_put(room, span->text + at, bad - at);
        at = bad;
        if (at == span->bytes) break;
        int n = weft__utf8_read(span->text + at, span->bytes - at, &point);
        at = n < 0 ? at + (size_t)-n : span->bytes;
        weft__buffer_put_point(room, 0xfffd);
    }
    return weft__buffer_check(room);
}

static weft_status pipeline_encode(const weft_tokenizer *tokenizer, const weft__span *span, weft__ids *out) {
    weft_tokenizer *t =
        (weft_tokenizer *)tokenizer; /* only the work memory changes; text.h explains threads */
    weft__buffer *room = &t->pipeline->work.rooms[0];
    weft__encoding e = {t, span->name, out};
    weft__piece piece = {span->text, span->bytes, true};
    if (!span->bytes) return WEFT_OK;
    weft__pipeline_begin(t, span->bytes);
    if (find_bad_byte(span, 0) < span->bytes) {
        WEFT_TRY(weft__replace_bad_bytes(span, room));
        piece.text = room->text;
        piece.bytes = room->bytes;
    }
    return weft__added_tokens_cut(&e, 0, &piece, encode_raw);
}

/* ---- decoding ---- */

weft_status weft__pipeline_decode(weft_tokenizer *t, weft__decoding *d, int32_t id, const char **text,
                                  size_t *bytes) {
    weft__pipeline *p = t->pipeline;
    *text = weft__token(t, (size_t)id, bytes);
    uint32_t added = p->added.of[id];
    if (added && p->added.list[added - 1].content.bytes) {
        *text = p->added.list[added - 1].content.text;
        *bytes = p->added.list[added - 1].content.bytes;
    }
    weft__pipeline_begin(t, *bytes);
    for (size_t i = 0; i < p->decoders.count; i++) {
        weft__part *part = &p->decoders.list[i];
        weft__buffer *room = &p->work.words[i % 2];
        weft__room_begin(t, room);
        WEFT_TRY(weft__pipeline_work(t, *bytes));
        WEFT_TRY(part->type->decode(part, d, *text, *bytes, room));
        WEFT_TRY(weft__room_check(t, room));
        *text = room->text ? room->text : "";
        *bytes = room->bytes;
    }
    return WEFT_OK;
}

/* ---- memory ---- */

void weft__parts_free(weft_context *ctx, weft__parts *parts) {
    for (size_t i = 0; i < parts->count; i++) {
        weft__part *part = &parts->list[i];
        weft__buffer_free(&part->text);
        weft__buffer_free(&part->room);
        weft__buffer_free(&part->points);
        weft__regex_free(part->regex);
        weft__charsmap_free(ctx, part->charsmap);
    }
    weft__free(ctx, parts->list);
}

void weft__pipeline_free(weft_tokenizer *t) {
    weft__pipeline *p = t->pipeline;
    weft_context *ctx = t->ctx;
    if (!p) return;
    weft__parts_free(ctx, &p->normalizers);
    weft__parts_free(ctx, &p->pre_tokenizers);
    weft__parts_free(ctx, &p->decoders);
    for (size_t i = 0; i < p->added.count; i++) weft__buffer_free(&p->added.list[i].content);
    weft__free(ctx, p->added.list);
    weft__free(ctx, p->added.of);
    weft__free(ctx, p->frame.single.items);
    weft__free(ctx, p->frame.pair.items);
    for (int i = 0; i < 2; i++) weft__trie_free(ctx, &p->added.sets[i].trie);
    for (int i = 0; i < 3; i++) weft__buffer_free(&p->work.rooms[i]);
    for (int i = 0; i < 2; i++) weft__buffer_free(&p->work.words[i]);
    weft__buffer_free(&p->source);
    weft__buffer_free(&p->prefix);
    weft__buffer_free(&p->suffix);
    weft__merges_free(ctx, &p->merges);
    weft__merging_free(ctx, &p->merging);
    weft__free(ctx, p->cache.entries);
    weft__trie_free(ctx, &p->trie);
    weft__free(ctx, p->unigram.scores);
    weft__free(ctx, p->unigram.path);
    weft__free(ctx, p);
    t->pipeline = NULL;
}

const weft__tokenizer_type weft__tokenizer_pipeline = {.name = "pipeline", .encode = pipeline_encode};
