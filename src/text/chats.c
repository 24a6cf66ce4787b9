/* Conversations as tokens, see chats.h. Must not know: rows of loaders. Read next: chat_line.c,
 * chats_pack.c. */
#include <string.h>

#include "text/chats.h"
#include "text/json_lines.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

typedef struct adding {
    weft_chats *chats;
    const weft_tokenizer *tokenizer;
    const weft_chat_template *template;
    weft__line_fn read;
    int each;             /* texts of a line */
    bool plain;           /* of the text, see weft__chat_line */
    int32_t *ids, *begin; /* of the text, and of a begin of it */
    size_t ids_room, begin_room;
} adding;

/* Encodes a text into *ids, which grows. */
static weft_status encode_text(const adding *a, const char *text, size_t bytes, int32_t **ids, size_t *room,
                               size_t *count) {
    weft_context *ctx = a->chats->ctx;
    weft_status (*const encode)(const weft_tokenizer *, const char *, size_t, int32_t *, size_t, size_t *) =
        a->plain ? weft_tokenizer_encode_special : weft_tokenizer_encode;
    weft_status status = encode(a->tokenizer, text, bytes, *ids, *room, count);
    if (status == WEFT_OK && *ids) return WEFT_OK; /* without ids they are only counted */
    if (status != WEFT_OK && (status != WEFT_ERR_ARGUMENT || *count <= *room)) return status;
    weft__free(ctx, *ids);
    *room = *count * 2 + 64;
    *ids = weft__array(ctx, *room, sizeof **ids);
    if (!*ids) {
        *room = 0;
        return weft__fail_oom(ctx, *count * sizeof **ids, "the tokens of a conversation");
    }
    return encode(a->tokenizer, text, bytes, *ids, *room, count);
}

/* Finds the token that holds byte `at` of the text: how many tokens of the text are also those of its first
 * `at` bytes. */
static weft_status token_at(adding *a, const weft_chat_text *text, size_t at, size_t count, size_t *token) {
    size_t n;
    *token = count;
    if (at >= text->bytes) return WEFT_OK;
    WEFT_TRY(encode_text(a, text->text, at, &a->begin, &a->begin_room, &n));
    for (*token = 0; *token < n && *token < count && a->begin[*token] == a->ids[*token];) ++*token;
    return WEFT_OK;
}

static weft_status chats_push(weft_chats *c, int32_t token, bool learned) {
    if (!weft__grow(c->ctx, &c->tokens, &c->token_room, c->count, sizeof *c->tokens) ||
        !weft__grow(c->ctx, &c->learned, &c->learned_room, c->count, sizeof *c->learned))
        return weft__fail_oom(c->ctx, c->count * sizeof *c->tokens, "the tokens of conversations");
    c->tokens[c->count] = token;
    c->learned[c->count++] = learned;
    return WEFT_OK;
}

/* Adds a conversation. */
static weft_status add_line(adding *a, const weft__chat_line *line) {
    weft_chats *c = a->chats;
    const weft_chat_text *text = &line->text;
    const size_t first = c->count;
    size_t count, begin, end;
    a->plain = line->plain;
    WEFT_TRY(encode_text(a, text->text, text->bytes, &a->ids, &a->ids_room, &count));
    for (size_t i = 0; i < count; i++) WEFT_TRY(chats_push(c, a->ids[i], false));
    for (size_t k = 0; k < text->answer_count; k++) {
        WEFT_TRY(token_at(a, text, text->answers[k].begin, count, &begin));
        WEFT_TRY(token_at(a, text, text->answers[k].end, count, &end));
        for (size_t i = begin; i < end; i++) c->learned[first + i] = true;
    }
    const int32_t eos = weft_tokenizer_special(a->tokenizer, WEFT_SPECIAL_EOS);
    if (line->plain && eos >= 0 && (count == 0 || a->ids[count - 1] != eos))
        WEFT_TRY(chats_push(c, eos, true));
    if (!weft__grow(c->ctx, &c->ends, &c->end_room, c->n, sizeof *c->ends))
        return weft__fail_oom(c->ctx, c->n * sizeof *c->ends, "the ends of conversations");
    c->ends[c->n++] = c->count;
    return WEFT_OK;
}

/* Reads a line of a file, or a row. */
static weft_status read_line(void *user, const weft__json_line *line) {
    adding *a = user;
    char where[4200];
    weft__chat_line lines[WEFT__LINE_TEXTS] = {0};
    weft_context *ctx = a->chats->ctx;
    weft__json_line_where(line, where, sizeof where);
    if (line->bytes > LINE_MAX_BYTES)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu bytes, more than %zu", where, line->bytes,
                          LINE_MAX_BYTES);
    weft_status status = a->read(ctx, where, line->text, line->bytes, a->template, lines);
    for (int i = 0; i < a->each && status == WEFT_OK; i++) {
        status = add_line(a, &lines[i]);
        if (status != WEFT_OK && status != WEFT_ERR_OOM)
            status = weft__fail(ctx, status, "%s: %s", where, weft_last_error(ctx));
    }
    for (int i = 0; i < a->each; i++) weft_chat_text_free(&lines[i].text);
    return status;
}

weft_status weft__chats_read(weft_context *ctx, const char *path, const weft_tokenizer *tokenizer,
                             const weft_chat_template *chat, weft__line_fn read, int each, weft_chats **out) {
    adding a = {.chats = weft__zalloc(ctx, sizeof *a.chats),
                .tokenizer = tokenizer,
                .template = chat,
                .read = read,
                .each = each};
    weft_status status = a.chats ? WEFT_OK : weft__fail_oom(ctx, sizeof *a.chats, "conversations");
    if (status == WEFT_OK) {
        a.chats->ctx = ctx;
        status = weft__json_lines(ctx, path, read_line, &a);
        if (status == WEFT_OK && a.chats->n == 0)
            status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file has no conversations", path);
    }
    weft__free(ctx, a.ids);
    weft__free(ctx, a.begin);
    if (status == WEFT_OK)
        *out = a.chats;
    else
        weft_chats_free(a.chats);
    return status;
}

weft_status weft_chats_read(weft_context *ctx, const char *path, const weft_tokenizer *tokenizer,
                            const weft_chat_template *chat, weft_chats **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, tokenizer);
    return weft__chats_read(ctx, path, tokenizer, chat, weft__chat_line_read, 1, out);
}

void weft_chats_free(weft_chats *chats) {
    if (!chats) return;
    weft__free(chats->ctx, chats->tokens);
    weft__free(chats->ctx, chats->learned);
    weft__free(chats->ctx, chats->ends);
    weft__free(chats->ctx, chats);
}

int64_t weft_chats_count(const weft_chats *chats) { return chats ? (int64_t)chats->n : 0; }

const int32_t *weft_chats_tokens(const weft_chats *chats, int64_t i, const bool **learned, size_t *count) {
    const bool there = chats && i >= 0 && (size_t)i < chats->n;
    const size_t first = there && i > 0 ? chats->ends[i - 1] : 0;
    if (count) *count = there ? chats->ends[i] - first : 0;
    if (learned) *learned = there ? chats->learned + first : NULL;
    return there ? chats->tokens + first : NULL;
}

uint64_t weft_chats_hash(const weft_chats *chats) {
    weft_hash hash;
    if (!chats) return 0;
    weft__hash_init(&hash);
    weft__hash_bytes(&hash, chats->tokens, chats->count * sizeof *chats->tokens);
    weft__hash_bytes(&hash, chats->learned, chats->count * sizeof *chats->learned);
    weft__hash_bytes(&hash, chats->ends, chats->n * sizeof *chats->ends);
    return hash.a ^ weft__mix64(hash.b);
}
