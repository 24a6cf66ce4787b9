/* The models WordPiece and WordLevel. WordPiece takes the longest token with which a word begins, then the
 * longest token with the prefix ## that follows, and so on (Wu et al., "Google's neural machine translation
 * system", 2016). A word that tokens cannot spell is the unknown token. WordLevel looks a word up. Must not
 * know: files, how texts are cut. Read next: model_unigram.c. */
#include <string.h>

#include "base/utf8.h"
#include "text/pipeline/pipeline.h"

static weft_status wordpiece_read(weft__reader *r, const json_t *json) {
    weft__pipeline *p = r->t->pipeline;
    weft__buffer_set(&p->prefix, "##", 2);
    p->wordpiece.longest = 100;
    WEFT_TRY(weft__read_text(r, json, "continuing_subword_prefix", &p->prefix));
    WEFT_TRY(weft__read_size(r, json, "max_input_chars_per_word", &p->wordpiece.longest));
    for (size_t id = 0; id < r->t->count; id++) {
        size_t bytes;
        const char *token = weft__token(r->t, id, &bytes);
        if (bytes) WEFT_TRY(weft__trie_add(r->t->ctx, &p->trie, token, bytes, (int32_t)id));
    }
    for (size_t i = 0; i < p->prefix.bytes; i++) {
        uint32_t child = weft__trie_child(&p->trie, p->wordpiece.inner, (unsigned char)p->prefix.text[i]);
        if (!child) {
            p->wordpiece.inner = UINT32_MAX; /* no token has the prefix */
            break;
        }
        p->wordpiece.inner = child;
    }
    return WEFT_OK;
}

static weft_status put_unknown_word(weft__encoding *e) {
    if (e->t->pipeline->unknown < 0)
        return weft__fail(e->t->ctx, WEFT_ERR_INDEX,
                          "%s: a word is unknown, and the vocabulary has no unknown token", e->name);
    weft__put_id(e->out, e->t->pipeline->unknown);
    return WEFT_OK;
}

/* Returns the length of the longest token at a node with which the text begins, or 0. */
static size_t longest_token(weft__pipeline *p, uint32_t node, const char *text, size_t bytes, int32_t *id) {
    size_t longest = 0;
    for (size_t i = 0; i < bytes && node != UINT32_MAX && weft__spend(&p->left.steps, 1); i++) {
        node = weft__trie_child(&p->trie, node, (unsigned char)text[i]);
        if (!node) break;
        if (p->trie.values[node] < 0) continue;
        *id = p->trie.values[node];
        longest = i + 1;
    }
    return longest;
}

static weft_status wordpiece_encode(weft__encoding *e, const char *word, size_t bytes) {
    weft__pipeline *p = e->t->pipeline;
    size_t characters = 0, at = 0, before = e->out->count;
    for (size_t i = 0; i < bytes; i++) characters += ((unsigned char)word[i] & 0xc0) != 0x80;
    while (at < bytes && characters <= p->wordpiece.longest) {
        int32_t id = -1;
        size_t n = longest_token(p, at ? p->wordpiece.inner : 0, word + at, bytes - at, &id);
        if (!n) break;
        weft__put_id(e->out, id);
        at += n;
    }
    WEFT_TRY(weft__pipeline_work(e->t, 1)); /* longest_token ends early when no step is left */
    if (at == bytes) return WEFT_OK;
    e->out->count = before;
    return put_unknown_word(e);
}

static weft_status wordlevel_read(weft__reader *r, const json_t *json) {
    (void)r, (void)json; /* it has only its vocabulary and its unknown token */
    return WEFT_OK;
}

static weft_status wordlevel_encode(weft__encoding *e, const char *word, size_t bytes) {
    int32_t id = weft__model_id(e->t, word, bytes);
    if (id < 0) return put_unknown_word(e);
    weft__put_id(e->out, id);
    return WEFT_OK;
}

const weft__model_type weft__model_wordpiece = {
    .name = "WordPiece", .read = wordpiece_read, .encode = wordpiece_encode};
const weft__model_type weft__model_wordlevel = {
    .name = "WordLevel", .read = wordlevel_read, .encode = wordlevel_encode};
