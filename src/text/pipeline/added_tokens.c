/* Added tokens: texts such as <|endoftext|> that become one id wherever a text spells them. A token that is
 * normalized is found in the normalized text, others in the text as it is. At each place the longest token
 * counts. Must not know: the model. Read next: normalizers.c. */
#include <string.h>

#include "text/pipeline/pipeline.h"

/* ---- reading ---- */

static weft_status read_added_token(weft__reader *r, const json_t *json, weft__added_token *token) {
    const json_t *id = json_object_get(json, "id");
    token->content.ctx = r->t->ctx;
    token->normalized = true;
    if (!json_is_object(json)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "each must be an object");
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= INT32_MAX)
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "id must be a number from 0 on");
    token->id = (int32_t)json_integer_value(id);
    r->t->pipeline->sentencepiece |= json_is_true(json_object_get(json, "weft_sentencepiece"));
    WEFT_TRY(weft__read_text(r, json, "content", &token->content));
    WEFT_TRY(weft__read_bool(r, json, "special", &token->special));
    WEFT_TRY(weft__read_bool(r, json, "single_word", &token->single_word));
    WEFT_TRY(weft__read_bool(r, json, "lstrip", &token->left));
    WEFT_TRY(weft__read_bool(r, json, "rstrip", &token->right));
    return weft__read_bool(r, json, "normalized", &token->normalized);
}

weft_status weft__added_tokens_read(weft__reader *r, const json_t *list) {
    weft__pipeline *p = r->t->pipeline;
    if (!list || json_is_null(list)) return WEFT_OK;
    if (!json_is_array(list)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "must be a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!weft__grow(r->t->ctx, &p->added.list, &p->added.capacity, p->added.count, sizeof *p->added.list))
            return weft__fail_oom(r->t->ctx, p->added.count * sizeof *p->added.list, "added tokens");
        weft__added_token *token = &p->added.list[p->added.count++];
        *token = (weft__added_token){0};
        WEFT_TRY(read_added_token(r, json_array_get(list, i), token));
    }
    return WEFT_OK;
}

weft_status weft__added_tokens_index(weft__reader *r) {
    weft__pipeline *p = r->t->pipeline;
    for (size_t i = 0; i < p->added.count; i++) {
        weft__added_token *token = &p->added.list[i];
        weft__piece piece = {token->content.text, token->content.bytes, true};
        weft__added_set *set = &p->added.sets[token->normalized];
        if (!piece.bytes) continue;
        if (token->normalized) {
            weft__pipeline_begin(r->t, piece.bytes);
            WEFT_TRY(weft__normalize(r->t, &piece));
            if (!piece.bytes) continue;
            if (piece.text != token->content.text) weft__buffer_set(&token->content, piece.text, piece.bytes);
            WEFT_TRY(weft__buffer_check(&token->content));
        }
        set->trie.key = r->t->key;
        WEFT_TRY(
            weft__trie_add(r->t->ctx, &set->trie, token->content.text, token->content.bytes, (int32_t)i));
        set->starts[(unsigned char)token->content.text[0]] = true;
        set->count++;
    }
    return WEFT_OK;
}

/* ---- cutting ---- */

/* Finds the first place at or after `at` where a token is spelled. */
static bool find_added(weft__pipeline *p, const weft__added_set *set, const weft__piece *piece, size_t at,
                       size_t *begin, size_t *end, size_t *index) {
    for (; at < piece->bytes; at++) {
        uint32_t node = 0;
        bool found = false;
        if (!set->starts[(unsigned char)piece->text[at]]) continue;
        for (size_t i = at; i < piece->bytes && weft__spend(&p->left.steps, 1); i++) {
            node = weft__trie_child(&set->trie, node, (unsigned char)piece->text[i]);
            if (!node) break;
            if (set->trie.values[node] < 0) continue;
            *index = (size_t)set->trie.values[node];
            *end = i + 1;
            found = true;
        }
        *begin = at;
        if (found) return true;
    }
    return false;
}

/* Returns where the character before `at` > 0 begins. */
static size_t character_before(const char *text, size_t at) {
    do at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

/* Whether a token at this place would be a part of a word. */
static bool is_within_word(const weft__piece *piece, size_t begin, size_t end) {
    uint32_t point;
    if (begin > 0) {
        weft__read_point(piece->text, piece->bytes, character_before(piece->text, begin), &point);
        if (weft__is_word(point)) return true;
    }
    if (end == piece->bytes) return false;
    weft__read_point(piece->text, piece->bytes, end, &point);
    return weft__is_word(point);
}

/* Takes the white space around a token with it, but not what is `done`. */
static void widen(const weft__added_token *token, const weft__piece *piece, size_t done, size_t *begin,
                  size_t *end) {
    uint32_t point;
    while (token->left && *begin > done) {
        size_t before = character_before(piece->text, *begin);
        weft__read_point(piece->text, piece->bytes, before, &point);
        if (!weft__is_space(point)) break;
        *begin = before;
    }
    while (token->right && *end < piece->bytes) {
        size_t n = weft__read_point(piece->text, piece->bytes, *end, &point);
        if (!weft__is_space(point)) break;
        *end += n;
    }
}

weft_status weft__added_tokens_cut(weft__encoding *e, int set, const weft__piece *piece,
                                   weft_status (*next)(weft__encoding *e, const weft__piece *piece)) {
    weft__pipeline *p = e->t->pipeline;
    size_t at = 0, done = 0, begin, end, index;
    if (!p->added.sets[set].count) return next(e, piece);
    while (find_added(p, &p->added.sets[set], piece, at, &begin, &end, &index)) {
        const weft__added_token *token = &p->added.list[index];
        at = end;
        if (token->single_word && is_within_word(piece, begin, end)) continue;
        widen(token, piece, done, &begin, &end);
        if (begin > done) {
            const weft__piece between = {piece->text + done, begin - done, piece->first && done == 0};
            WEFT_TRY(next(e, &between));
        }
        weft__put_id(e->out, token->id);
        done = end;
    }
    WEFT_TRY(weft__pipeline_work(e->t, 1)); /* find_added ends early when no step is left */
    if (done >= piece->bytes) return WEFT_OK;
    const weft__piece rest = {piece->text + done, piece->bytes - done, piece->first && done == 0};
    return next(e, &rest);
}
