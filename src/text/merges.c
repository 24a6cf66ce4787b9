/* Merging the ids of a word, and the cache of encoded words. Must not know: what ids stand for. Read next:
 * tokenizer_bpe.c. */
#include <string.h>

#include "text/merges.h"

#define CACHED_WORDS ((size_t)1 << 16)

/* ---- the ranks of pairs ---- */

/* Returns the slot of a pair's rank, or the free slot where the rank belongs. */
static size_t rank_slot(const weft__merges *m, int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (size_t slot = weft__mix64(pair ^ m->key) & (m->rank_slots - 1);;
         slot = (slot + 1) & (m->rank_slots - 1)) {
        uint32_t rank = m->ranks[slot];
        if (rank == WEFT__NO_RANK || (m->list[rank].left == left && m->list[rank].right == right))
            return slot;
    }
}

weft_status weft__merges_tabulate(weft_context *ctx, weft__merges *m, const char *name, bool may_repeat,
                                  bool by_token) {
    if (m->count >= WEFT__NO_RANK) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: too many merges", name);
    m->rank_slots = 256;
    while (m->rank_slots <= 2 * m->count) m->rank_slots *= 2;
    m->ranks = weft__array(ctx, m->rank_slots, sizeof *m->ranks);
    if (!m->ranks) return weft__fail_oom(ctx, m->rank_slots * sizeof *m->ranks, "merges");
    memset(m->ranks, 0xff, m->rank_slots * sizeof *m->ranks); /* all WEFT__NO_RANK */
    for (size_t rank = 0; rank < m->count; rank++) {
        size_t slot = rank_slot(m, m->list[rank].left, m->list[rank].right);
        if (!may_repeat && m->ranks[slot] != WEFT__NO_RANK)
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: merge %zu repeats merge %u", name, rank + 1,
                              (unsigned)m->ranks[slot] + 1);
        m->ranks[slot] = (uint32_t)rank;
        bool same = by_token && rank && m->list[rank].made == m->list[rank - 1].made;
        m->list[rank].order = same ? m->list[rank - 1].order : (uint32_t)rank;
    }
    return WEFT_OK;
}

void weft__merges_free(weft_context *ctx, weft__merges *m) {
    weft__free(ctx, m->list);
    weft__free(ctx, m->ranks);
}

/* ---- the heap of candidates ---- */

static void heap_push(weft__merging *w, uint64_t value) {
    size_t at = w->heap_count++;
    for (; at > 0 && w->heap[(at - 1) / 2] > value; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = value;
}

static uint64_t heap_pop(weft__merging *w) {
    uint64_t least = w->heap[0], value = w->heap[--w->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->heap_count) break;
        if (child + 1 < w->heap_count && w->heap[child + 1] < w->heap[child]) child++;
        if (w->heap[child] >= value) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = value;
    return least;
}

/* ---- merging ---- */

weft_status weft__merging_reserve(weft_context *ctx, weft__merging *w, const char *name, size_t count) {
    if (count <= w->room) return WEFT_OK;
    if (count > UINT32_MAX / 2)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "%s: a word of %zu bytes is too long", name, count);
    size_t wanted = count + count / 2 + 64;
    weft__merging_free(ctx, w);
    w->symbols = weft__array(ctx, wanted, sizeof *w->symbols);
    w->heap = weft__array(ctx, 2 * wanted, sizeof *w->heap);
    if (!w->symbols || !w->heap) return weft__fail_oom(ctx, wanted * sizeof *w->symbols, "a long word");
    w->room = wanted;
    return WEFT_OK;
}

void weft__merging_free(weft_context *ctx, weft__merging *w) {
    weft__free(ctx, w->symbols);
    weft__free(ctx, w->heap);
    *w = (weft__merging){0};
}

/* Finds the merge of a symbol with its right neighbour, and puts it on the heap. */
static void consider(const weft__merges *m, weft__merging *w, uint32_t at, uint32_t count) {
    weft__symbol *s = &w->symbols[at];
    s->rank = WEFT__NO_RANK;
    if (s->after < count) s->rank = m->ranks[rank_slot(m, s->id, w->symbols[s->after].id)];
    if (s->rank != WEFT__NO_RANK) heap_push(w, (uint64_t)m->list[s->rank].order << 32 | at);
}

/* Each merge removes one entry from the heap and adds at most two, so 2 n entries are enough for n symbols.
 */
void weft__merging_run(const weft__merges *m, weft__merging *w, uint32_t count) {
    weft__symbol *s = w->symbols;
    w->heap_count = 0;
    for (uint32_t i = 0; i < count; i++) s[i] = (weft__symbol){s[i].id, i - 1, i + 1, WEFT__NO_RANK};
    for (uint32_t i = 0; i + 1 < count; i++) consider(m, w, i, count);
    while (w->heap_count) {
        uint64_t least = heap_pop(w);
        uint32_t at = (uint32_t)least, rank = s[at].rank;
        if (rank == WEFT__NO_RANK || m->list[rank].order != (uint32_t)(least >> 32))
            continue; /* one of the two was merged in the meantime */
        uint32_t gone = s[at].after;
        s[at].id = m->list[rank].made;
        s[at].after = s[gone].after;
        s[gone].rank = WEFT__NO_RANK;
        if (s[gone].after < count) s[s[gone].after].before = at;
        consider(m, w, at, count);
        if (at > 0) consider(m, w, s[at].before, count);
    }
}

/* ---- the cache ---- */

weft_status weft__word_cache_make(weft_context *ctx, weft__word_cache *cache, uint64_t key) {
    cache->key = key;
    cache->entries = weft__array(ctx, CACHED_WORDS, sizeof *cache->entries);
    return cache->entries ? WEFT_OK
                          : weft__fail_oom(ctx, CACHED_WORDS * sizeof *cache->entries, "a tokenizer");
}

bool weft__word_cache_find(const weft__word_cache *cache, const char *word, size_t bytes, weft__ids *out,
                           weft__cached **entry) {
    uint64_t key[WEFT__CACHED_BYTES / 8] = {0};
    *entry = NULL;
    if (bytes > WEFT__CACHED_BYTES) return false;
    memcpy(key, word, bytes);
    weft__cached *c =
        &cache->entries[weft__mix64(key[0] ^ weft__mix64(key[1] + bytes + cache->key)) & (CACHED_WORDS - 1)];
    *entry = c;
    if (c->bytes != bytes || c->key[0] != key[0] || c->key[1] != key[1]) return false;
    for (int i = 0; i < c->count; i++) weft__put_id(out, c->ids[i]);
    return true;
}

void weft__word_cache_store(weft__cached *entry, const char *word, size_t bytes, const weft__merging *w,
                            uint32_t count) {
    size_t ids = 0;
    if (!entry) return;
    for (uint32_t i = 0; i < count && ids <= WEFT__CACHED_IDS; i = w->symbols[i].after) ids++;
    if (ids > WEFT__CACHED_IDS) return;
    *entry = (weft__cached){.bytes = (uint8_t)bytes};
    memcpy(entry->key, word, bytes);
    for (uint32_t i = 0; i < count; i = w->symbols[i].after) entry->ids[entry->count++] = w->symbols[i].id;
}
