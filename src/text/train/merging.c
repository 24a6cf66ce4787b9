/* Learns the merges of a byte-level BPE. Each step merges the pair of neighbours that occurs most often; of
 * equal pairs, the one with the least ids. Counts of pairs change only where a merge happens: each pair knows
 * its words. The result equals that of the class BpeTrainer of Hugging Face's library `tokenizers`. Must not
 * know: files. Read next: train.c. */
#include <string.h>

#include "text/train/train.h"

/* A pair that waits in the heap, with the words in which it occurs. */
typedef struct candidate {
    uint64_t pair; /* left << 32 | right */
    int64_t count; /* when it was put into the heap; it may have changed since */
    uint32_t *words;
    size_t word_count;
} candidate;

/* The count of a pair, and words in which the current step made it. */
typedef struct pair_count {
    uint64_t pair; /* UINT64_MAX: a free slot */
    int64_t count;
    uint32_t *words;
    size_t word_count, word_capacity;
} pair_count;

typedef struct merging {
    weft_context *ctx;
    weft__learned *learned;
    const weft__words *words;
    uint32_t *symbols; /* ids of all words, one after the other */
    size_t *begins;    /* [count of words] */
    uint32_t *lengths; /* [count of words] */
    pair_count *pairs; /* open-addressing table */
    size_t pair_slots, pair_used;
    candidate *heap; /* [heap_count], the best first */
    size_t heap_count, heap_capacity;
    uint64_t *made; /* [made_count] pairs that the current step made */
    size_t made_count, made_capacity;
    uint64_t key;
} merging;

/* ---- counts of pairs ---- */

static pair_count *find_pair(const merging *m, uint64_t pair) {
    size_t slot = weft__mix64(pair ^ m->key) & (m->pair_slots - 1);
    while (m->pairs[slot].pair != UINT64_MAX && m->pairs[slot].pair != pair)
        slot = (slot + 1) & (m->pair_slots - 1);
    return &m->pairs[slot];
}

static weft_status grow_pairs(merging *m) {
    pair_count *old = m->pairs;
    size_t count = m->pair_slots;
    m->pair_slots = count ? 2 * count : 1 << 16;
    m->pairs = weft__array(m->ctx, m->pair_slots, sizeof *m->pairs);
    if (!m->pairs) {
        m->pairs = old;
        m->pair_slots = count;
        return weft__fail_oom(m->ctx, 2 * count * sizeof *m->pairs, "the pairs of a text");
    }
    for (size_t i = 0; i < m->pair_slots; i++) m->pairs[i].pair = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (old[i].pair != UINT64_MAX) *find_pair(m, old[i].pair) = old[i];
    weft__free(m->ctx, old);
    return WEFT_OK;
}

/* Adds to the count of a pair. If the word has it newly, the pair notes the word. */
static weft_status count_pair(merging *m, uint32_t left, uint32_t right, int64_t change, uint32_t word) {
    if (2 * (m->pair_used + 1) > m->pair_slots) WEFT_TRY(grow_pairs(m));
    uint64_t pair = (uint64_t)left << 32 | right;
    pair_count *p = find_pair(m, pair);
    if (p->pair == UINT64_MAX) {
        *p = (pair_count){.pair = pair};
        m->pair_used++;
    }
    p->count += change;
    if (change < 0 || (p->word_count && p->words[p->word_count - 1] == word)) return WEFT_OK;
    if (!p->word_count && !weft__grow(m->ctx, &m->made, &m->made_capacity, m->made_count, sizeof *m->made))
        return weft__fail_oom(m->ctx, m->made_count * sizeof *m->made, "the pairs of a text");
    if (!p->word_count) m->made[m->made_count++] = pair;
    if (!weft__grow(m->ctx, &p->words, &p->word_capacity, p->word_count, sizeof *p->words))
        return weft__fail_oom(m->ctx, p->word_count * sizeof *p->words, "the pairs of a text");
    p->words[p->word_count++] = word;
    return WEFT_OK;
}

/* ---- the heap ---- */

static bool is_better(const candidate *a, const candidate *b) {
    return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static weft_status heap_push(merging *m, candidate c) {
    if (!weft__grow(m->ctx, &m->heap, &m->heap_capacity, m->heap_count, sizeof *m->heap)) {
        weft__free(m->ctx, c.words);
        return weft__fail_oom(m->ctx, m->heap_count * sizeof *m->heap, "the pairs of a text");
    }
    size_t at = m->heap_count++;
    for (; at > 0 && is_better(&c, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = c;
    return WEFT_OK;
}

static candidate heap_pop(merging *m) {
    candidate best = m->heap[0], last = m->heap[--m->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->heap_count) break;
        if (child + 1 < m->heap_count && is_better(&m->heap[child + 1], &m->heap[child])) child++;
        if (!is_better(&m->heap[child], &last)) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    if (m->heap_count) m->heap[at] = last;
    return best;
}

/* Puts the pairs that the current step made into the heap, with their words. */
static weft_status push_made(merging *m) {
    for (size_t i = 0; i < m->made_count; i++) {
        pair_count *p = find_pair(m, m->made[i]);
        candidate c = {p->pair, p->count, p->words, p->word_count};
        p->words = NULL;
        p->word_count = p->word_capacity = 0;
        if (c.count > 0)
            WEFT_TRY(heap_push(m, c));
        else
            weft__free(m->ctx, c.words);
    }
    m->made_count = 0;
    return WEFT_OK;
}

/* ---- tokens ---- */

weft_status weft__learned_add(weft__learned *l, const char *token, size_t bytes) {
    if (!weft__grow(l->ctx, &l->ends, &l->capacity, l->count, sizeof *l->ends))
        return weft__fail_oom(l->ctx, l->count * sizeof *l->ends, "a vocabulary");
    WEFT_TRY(weft__trie_add(l->ctx, &l->trie, token, bytes, (int32_t)l->count));
    weft__buffer_put(&l->text, token, bytes);
    l->ends[l->count++] = l->text.bytes;
    return weft__buffer_check(&l->text);
}

void weft__learned_free(weft__learned *l) {
    weft__buffer_free(&l->text);
    weft__free(l->ctx, l->ends);
    weft__trie_free(l->ctx, &l->trie);
    weft__free(l->ctx, l->merges);
}

/* Returns the id of the token that a pair makes; it may exist already. */
static weft_status make_token(weft__learned *l, uint32_t left, uint32_t right, uint32_t *made) {
    const size_t begins[2] = {left ? l->ends[left - 1] : 0, right ? l->ends[right - 1] : 0};
    const size_t first = l->ends[left] - begins[0], second = l->ends[right] - begins[1];
    uint32_t node = 0;
    char *token = weft__alloc(l->ctx, first + second);
    if (!token) return weft__fail_oom(l->ctx, first + second, "a token");
    memcpy(token, l->text.text + begins[0], first);
    memcpy(token + first, l->text.text + begins[1], second);
    for (size_t i = 0; i < first + second && (node || !i); i++)
        node = weft__trie_child(&l->trie, node, (unsigned char)token[i]);
    weft_status status = WEFT_OK;
    if (node && l->trie.values[node] >= 0) {
        *made = (uint32_t)l->trie.values[node];
    } else {
        *made = (uint32_t)l->count;
        status = weft__learned_add(l, token, first + second);
    }
    weft__free(l->ctx, token);
    return status;
}

/* ---- merging ---- */

/* Splits all words into bytes, and counts the pairs. */
static weft_status begin_words(merging *m) {
    const weft__words *w = m->words;
    uint32_t bytes[256];
    for (unsigned i = 0; i < 256; i++)
        bytes[i] =
            (uint32_t)m->learned->trie.values[weft__trie_child(&m->learned->trie, 0, (unsigned char)i)];
    m->symbols = weft__array(m->ctx, w->text.bytes + 1, sizeof *m->symbols);
    m->begins = weft__array(m->ctx, w->count + 1, sizeof *m->begins);
    m->lengths = weft__array(m->ctx, w->count + 1, sizeof *m->lengths);
    if (!m->symbols || !m->begins || !m->lengths)
        return weft__fail_oom(m->ctx, w->text.bytes * sizeof *m->symbols, "the words of a text");
    for (size_t i = 0; i < w->text.bytes; i++) m->symbols[i] = bytes[(unsigned char)w->text.text[i]];
    for (size_t i = 0; i < w->count; i++) {
        const uint32_t *s = m->symbols + w->list[i].at;
        m->begins[i] = w->list[i].at;
        m->lengths[i] = w->list[i].bytes;
        for (uint32_t k = 0; k + 1 < w->list[i].bytes; k++)
            WEFT_TRY(count_pair(m, s[k], s[k + 1], (int64_t)w->list[i].count, (uint32_t)i));
    }
    return push_made(m);
}

/* Merges a pair in a word, from left to right, and counts the pairs that go and come. */
static weft_status merge_in_word(merging *m, uint32_t word, uint32_t left, uint32_t right, uint32_t made) {
    uint32_t *s = m->symbols + m->begins[word], length = m->lengths[word], used = 0;
    const int64_t count = (int64_t)m->words->list[word].count;
    for (uint32_t i = 0; i < length; i++) {
        if (s[i] != left || i + 1 >= length || s[i + 1] != right) {
            s[used++] = s[i];
            continue;
        }
        if (used > 0) {
            WEFT_TRY(count_pair(m, s[used - 1], left, -count, word));
            WEFT_TRY(count_pair(m, s[used - 1], made, count, word));
        }
        if (i + 2 < length) {
            WEFT_TRY(count_pair(m, right, s[i + 2], -count, word));
            WEFT_TRY(count_pair(m, made, s[i + 2], count, word));
        }
        s[used++] = made;
        i++;
    }
    m->lengths[word] = used;
    return WEFT_OK;
}

/* Merges the best pair. *done: no pair is left that occurs often enough. */
static weft_status merge_best(merging *m, uint64_t least, bool *done) {
    weft__learned *l = m->learned;
    *done = !m->heap_count;
    if (*done) return WEFT_OK;
    candidate best = heap_pop(m);
    int64_t count = find_pair(m, best.pair)->count;
    if (best.count != count) {
        best.count = count;
        return heap_push(m, best);
    }
    *done = count < 1 || (uint64_t)count < least;
    uint32_t left = (uint32_t)(best.pair >> 32), right = (uint32_t)best.pair, made = 0;
    weft_status status = *done ? WEFT_OK : make_token(l, left, right, &made);
    if (!*done && status == WEFT_OK) {
        if (weft__grow(l->ctx, &l->merges, &l->merge_capacity, l->merge_count, sizeof *l->merges))
            l->merges[l->merge_count++] = (weft__merge){(int32_t)left, (int32_t)right, (int32_t)made, 0};
        else
            status = weft__fail_oom(l->ctx, l->merge_count * sizeof *l->merges, "merges");
    }
    for (size_t i = 0; !*done && status == WEFT_OK && i < best.word_count; i++)
        status = merge_in_word(m, best.words[i], left, right, made);
    weft__free(m->ctx, best.words);
    return status == WEFT_OK ? push_made(m) : status;
}

weft_status weft__learn_merges(weft__learned *learned, const weft__words *words, size_t vocabulary,
                               uint64_t least) {
    merging m = {.ctx = learned->ctx, .learned = learned, .words = words};
    bool done = false;
    m.key = weft__mix64((uint64_t)(uintptr_t)&m ^ (uint64_t)(uintptr_t)learned << 20);
    weft_status status = grow_pairs(&m);
    if (status == WEFT_OK) status = begin_words(&m);
    while (status == WEFT_OK && !done && learned->count < vocabulary) {
        if (learned->ctx) status = weft__go_on(learned->ctx);
        if (status == WEFT_OK) status = merge_best(&m, least, &done);
    }
    for (size_t i = 0; i < m.heap_count; i++) weft__free(m.ctx, m.heap[i].words);
    for (size_t i = 0; i < m.pair_slots; i++) weft__free(m.ctx, m.pairs[i].words);
    weft__free(m.ctx, m.symbols);
    weft__free(m.ctx, m.begins);
    weft__free(m.ctx, m.lengths);
    weft__free(m.ctx, m.pairs);
    weft__free(m.ctx, m.heap);
    weft__free(m.ctx, m.made);
    return status;
}
