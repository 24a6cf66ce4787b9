/* Builds the tree of the tokens. Must not know: grammars. Read next: constraint.c. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/grammar/token_tree.h"

/* A token with its bytes. */
typedef struct token {
    const unsigned char *bytes;
    uint32_t count;
    int32_t id;
} token;

static int token_order(const void *a, const void *b) {
    const token *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->count < y->count ? x->count : y->count);
    if (order) return order;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* ---- the bytes of tokens ---- */

/* Writes the bytes that a token adds after other tokens, or sets *count to 0 if it is left out. A token of
 * SentencePiece may lose spaces at the begin of a text. Texts of grammars do not begin with a space, so only
 * tokens that begin with another byte matter there. */
static weft_status token_bytes(const weft_tokenizer *t, int32_t id, unsigned char out[WEFT__TOKEN_BYTES],
                               size_t *count) {
    weft__decoding within = {.count = 1, .spaced = true, .stripping_ended = true}, begin = {0};
    const char *text;
    size_t bytes;
    bool spaced;
    *count = 0;
    if (weft_tokenizer_is_special(t, id)) return WEFT_OK;
    WEFT_TRY(weft__tokenizer_next(t, &within, id, &text, &bytes, &spaced));
    const size_t all = bytes + (spaced ? 1 : 0);
    if (all == 0 || all > WEFT__TOKEN_BYTES || within.space) return WEFT_OK;
    if (spaced) out[0] = ' ';
    memcpy(out + all - bytes, text, bytes);
    if (out[0] != ' ') {
        WEFT_TRY(weft__tokenizer_next(t, &begin, id, &text, &bytes, &spaced));
        if (spaced || bytes != all || memcmp(out, text, all) != 0) return WEFT_OK;
    }
    *count = all;
    return WEFT_OK;
}

/* Fills tokens with those that are not left out. Their bytes lie in the arena. */
static weft_status collect(const weft_tokenizer *t, weft_arena *arena, token *tokens, size_t *count) {
    unsigned char bytes[WEFT__TOKEN_BYTES];
    const size_t all = weft_tokenizer_vocabulary(t);
    *count = 0;
    for (size_t id = 0; id < all; id++) {
        size_t n;
        WEFT_TRY(token_bytes(t, (int32_t)id, bytes, &n));
        if (n == 0) continue;
        unsigned char *copy = weft__arena_alloc(arena, n);
        if (!copy) return weft__fail_oom(arena->ctx, n, "a vocabulary");
        memcpy(copy, bytes, n);
        tokens[(*count)++] = (token){copy, (uint32_t)n, (int32_t)id};
    }
    return WEFT_OK;
}

/* ---- the tree ---- */

/* Tells of each suffix of a token whether it is plain, or may become so with more bytes. The empty one is. */
static void find_plain(const token *t, bool plain[WEFT__TOKEN_BYTES + 1]) {
    uint32_t point;
    plain[t->count] = true;
    for (uint32_t i = t->count; i-- > 0;) {
        const unsigned char c = t->bytes[i];
        const int n = weft__utf8_read((const char *)t->bytes + i, t->count - i, &point);
        plain[i] = c >= 0x20 && c != '"' && c != '\\' && (n == 0 || (n > 0 && plain[i + (uint32_t)n]));
    }
}

/* Adds token i to the tree. path: the branch of each prefix of the token before. */
static weft_status add_token(weft__token_tree *v, const token *tokens, uint32_t i, uint32_t path[]) {
    const token *t = &tokens[i];
    bool plain[WEFT__TOKEN_BYTES + 1];
    uint32_t shared = 0;
    while (i > 0 && shared < t->count && shared < tokens[i - 1].count &&
           t->bytes[shared] == tokens[i - 1].bytes[shared])
        shared++;
    find_plain(t, plain);
    for (uint32_t d = shared; d < t->count; d++) {
        if (!weft__grow(v->ctx, &v->branches, &v->room, v->branch_count, sizeof *v->branches))
            return weft__fail_oom(v->ctx, sizeof *v->branches, "a vocabulary");
        path[d] = (uint32_t)v->branch_count;
        v->branches[v->branch_count++] = (weft__branch){
            .byte = t->bytes[d], .plain = true, .depth = (uint16_t)(d + 1), .first = i, .own = i};
    }
    for (uint32_t d = 0; d < t->count; d++) {
        weft__branch *b = &v->branches[path[d]];
        b->plain = b->plain && plain[d + 1];
        b->last = i + 1;
        if (t->count - d - 1 > b->height) b->height = (uint16_t)(t->count - d - 1);
        if (d + 1 == t->count) b->own = i + 1;
        b->skip = (uint32_t)v->branch_count;
    }
    return WEFT_OK;
}

static weft_status grow_tree(weft__token_tree *v, token *tokens, size_t count) {
    uint32_t path[WEFT__TOKEN_BYTES];
    qsort(tokens, count, sizeof *tokens, token_order);
    for (size_t i = 0; i < count; i++) WEFT_TRY(add_token(v, tokens, (uint32_t)i, path));
    for (size_t i = 0; i < count; i++) v->ids[i] = tokens[i].id;
    v->count = count;
    return WEFT_OK;
}

/* Fills an empty tree. */
static weft_status fill_tree(const weft_tokenizer *t, weft__token_tree *tree) {
    const size_t all = weft_tokenizer_vocabulary(t);
    weft_arena arena;
    size_t count = 0;
    weft__arena_init(&arena, t->ctx);
    token *tokens = weft__array(t->ctx, all + 1, sizeof *tokens);
    tree->ids = weft__array(t->ctx, all + 1, sizeof *tree->ids);
    weft_status status =
        tokens && tree->ids ? WEFT_OK : weft__fail_oom(t->ctx, all * sizeof *tokens, "a vocabulary");
    if (status == WEFT_OK) status = collect(t, &arena, tokens, &count);
    if (status == WEFT_OK) status = grow_tree(tree, tokens, count);
    weft__arena_free(&arena);
    weft__free(t->ctx, tokens);
    return status;
}

weft_status weft__token_tree_of(const weft_tokenizer *tokenizer, const weft__token_tree **out) {
    weft_tokenizer *t = (weft_tokenizer *)(uintptr_t)tokenizer; /* the tree changes nothing that users see */
    if (!t->tree) {
        weft__token_tree *tree = weft__zalloc(t->ctx, sizeof *tree);
        if (!tree) return weft__fail_oom(t->ctx, sizeof *tree, "a vocabulary");
        tree->ctx = t->ctx;
        const weft_status status = fill_tree(t, tree);
        if (status != WEFT_OK) {
            weft__token_tree_free(tree);
            return status;
        }
        t->tree = tree;
    }
    *out = t->tree;
    return WEFT_OK;
}

void weft__token_tree_free(weft__token_tree *tree) {
    if (!tree) return;
    weft__free(tree->ctx, tree->ids);
    weft__free(tree->ctx, tree->branches);
    weft__free(tree->ctx, tree);
}
