/* A trie of tokens: finds the tokens with which a text begins. The children of all nodes are in one hash
 * table. Must not know: what tokens are. Read next: added_tokens.c. */
#include "text/pipeline/pipeline.h"

/* Returns the slot of a child, or the free slot where it belongs. */
static size_t trie_slot(const weft__trie *trie, uint64_t key) {
    size_t slot = weft__mix64(key ^ trie->key) & (trie->slots - 1);
    while (trie->keys[slot] && trie->keys[slot] != key) slot = (slot + 1) & (trie->slots - 1);
    return slot;
}

static uint64_t child_key(uint32_t node, unsigned char byte) { return ((uint64_t)node + 1) << 8 | byte; }

uint32_t weft__trie_child(const weft__trie *trie, uint32_t node, unsigned char byte) {
    if (!trie->slots) return 0;
    size_t slot = trie_slot(trie, child_key(node, byte));
    return trie->keys[slot] ? trie->childs[slot] : 0;
}

/* Doubles the table. It stays at most half full. */
static weft_status trie_grow(weft_context *ctx, weft__trie *trie) {
    weft__trie old = *trie;
    trie->slots = old.slots ? 2 * old.slots : 256;
    trie->keys = weft__array(ctx, trie->slots, sizeof *trie->keys);
    trie->childs = weft__array(ctx, trie->slots, sizeof *trie->childs);
    if (!trie->keys || !trie->childs) {
        weft__free(ctx, trie->keys);
        weft__free(ctx, trie->childs);
        *trie = old;
        return weft__fail_oom(ctx, 2 * old.slots * sizeof *trie->keys, "a trie of tokens");
    }
    for (size_t i = 0; i < old.slots; i++) {
        if (!old.keys[i]) continue;
        size_t slot = trie_slot(trie, old.keys[i]);
        trie->keys[slot] = old.keys[i];
        trie->childs[slot] = old.childs[i];
    }
    weft__free(ctx, old.keys);
    weft__free(ctx, old.childs);
    return WEFT_OK;
}

static weft_status trie_node(weft_context *ctx, weft__trie *trie) {
    if (!weft__grow(ctx, &trie->values, &trie->capacity, trie->count, sizeof *trie->values))
        return weft__fail_oom(ctx, trie->count * sizeof *trie->values, "a trie of tokens");
    trie->values[trie->count++] = -1;
    return WEFT_OK;
}

weft_status weft__trie_add(weft_context *ctx, weft__trie *trie, const char *token, size_t bytes, int32_t id) {
    uint32_t node = 0;
    if (!trie->count) WEFT_TRY(trie_node(ctx, trie));
    for (size_t i = 0; i < bytes; i++) {
        if (2 * (trie->count + 1) > trie->slots) WEFT_TRY(trie_grow(ctx, trie));
        uint64_t key = child_key(node, (unsigned char)token[i]);
        size_t slot = trie_slot(trie, key);
        if (!trie->keys[slot]) {
            if (trie->count >= UINT32_MAX)
                return weft__fail(ctx, WEFT_ERR_FORMAT, "tokenizer: its tokens are too long");
            WEFT_TRY(trie_node(ctx, trie));
            trie->keys[slot] = key;
            trie->childs[slot] = (uint32_t)(trie->count - 1);
        }
        node = trie->childs[slot];
    }
    trie->values[node] = id;
    return WEFT_OK;
}

void weft__trie_free(weft_context *ctx, weft__trie *trie) {
    weft__free(ctx, trie->keys);
    weft__free(ctx, trie->childs);
    weft__free(ctx, trie->values);
}
