/* The byte-pair tokenizer. GPT-2's pattern splits a text into words, and merges turn the bytes of a word into
 * tokens.
 *
 * All bytes can be encoded; a sequence of bytes that are not UTF-8 is a word of its own. Tokens that no merge
 * makes are special: if the text contains the spelling of such a token, it is encoded as that token.
 *
 * White space is the property of Unicode. Letters and numbers are those of the Unicode version of the
 * installed PCRE2.
 *
 * Must not know: files. Read next: bpe_alphabet.c. */
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/bpe.h"
#include "base/utf8.h"

/* \s of PCRE2 also has U+180E, which is no longer white space in Unicode */
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define PATTERN                                                                                              \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^" SPACE "\\p{L}\\p{N}]++|[" SPACE "]+(?![^" SPACE        \
    "])|[" SPACE "]+"

#define SPECIALS_MAX 256 /* a text is searched for each special token */

/* The cache of encoded words, found by their bytes. It holds only short words with few tokens. */
#define CACHED_BYTES 16
#define CACHED_IDS   4
#define CACHED_WORDS ((size_t)1 << 16)
typedef struct cached {
    uint64_t key[CACHED_BYTES / 8];
    int32_t ids[CACHED_IDS];
    uint8_t bytes, count; /* bytes 0: a free entry */
} cached;

#define NO_RANK UINT32_MAX

/* A token of the current word. Neighbours are indices in the array of symbols. */
typedef struct symbol {
    int32_t id;
    uint32_t before, after; /* `after` of the last symbol is the count */
    uint32_t rank;          /* rank of the merge with the next symbol, or NO_RANK */
} symbol;

struct weft__bpe_work {
    pcre2_general_context *memory;
    pcre2_code *pattern;
    pcre2_match_data *match;
    cached *cache;   /* [CACHED_WORDS] */
    symbol *symbols; /* [room] */
    /* [2 * room], a min-heap of rank << 32 | index: the candidate merges, some of them outdated */
    uint64_t *heap;
    size_t room, heap_count;
};

/* ---- making ---- */

static void *tokenizer_bpe_take(PCRE2_SIZE bytes, void *ctx) { return weft__alloc(ctx, bytes); }
static void give(void *p, void *ctx) { weft__free(ctx, p); }

static weft_status compile_pattern(weft_context *ctx, weft__bpe_work *w) {
    int code = 0;
    PCRE2_SIZE at;
    w->memory = pcre2_general_context_create(tokenizer_bpe_take, give, ctx);
    pcre2_compile_context *compiling = w->memory ? pcre2_compile_context_create(w->memory) : NULL;
    if (compiling)
        w->pattern = pcre2_compile((PCRE2_SPTR)PATTERN, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, compiling);
    pcre2_compile_context_free(compiling);
    if (!w->pattern && (!compiling || code == PCRE2_ERROR_NOMEMORY || code == 121))
        return weft__fail_oom(ctx, 0, "the pattern of a tokenizer");
    if (!w->pattern) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(code, text, sizeof text);
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "tokenizer: PCRE2 does not accept its pattern: %s",
                          (const char *)text);
    }
    (void)pcre2_jit_compile(w->pattern, PCRE2_JIT_COMPLETE); /* without JIT, matching is slower */
    w->match = pcre2_match_data_create(1, w->memory);
    return w->match ? WEFT_OK : weft__fail_oom(ctx, 0, "the pattern of a tokenizer");
}

void weft__bpe_free(weft_tokenizer *t) {
    weft__bpe *b = t->bpe;
    if (!b) return;
    if (b->work) {
        pcre2_match_data_free(b->work->match);
        pcre2_code_free(b->work->pattern);
        pcre2_general_context_free(b->work->memory);
        weft__free(t->ctx, b->work->cache);
        weft__free(t->ctx, b->work->symbols);
        weft__free(t->ctx, b->work->heap);
    }
    weft__free(t->ctx, b->work);
    weft__free(t->ctx, b->merges);
    weft__free(t->ctx, b->ranks);
    weft__free(t->ctx, b->specials);
    weft__free(t->ctx, b);
    t->bpe = NULL;
}

/* Returns the slot of a pair's rank, or the free slot where the rank belongs. */
static size_t rank_slot(const weft_tokenizer *t, int32_t left, int32_t right) {
    const weft__bpe *b = t->bpe;
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (size_t slot = weft__mix64(pair ^ t->key) & (b->rank_slots - 1);;
         slot = (slot + 1) & (b->rank_slots - 1)) {
        uint32_t rank = b->ranks[slot];
        if (rank == NO_RANK || (b->merges[rank].left == left && b->merges[rank].right == right)) return slot;
    }
}

static weft_status tabulate_ranks(weft_tokenizer *t, const char *name) {
    weft__bpe *b = t->bpe;
    if (b->merge_count >= NO_RANK) return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: too many merges", name);
    b->rank_slots = 256;
    while (b->rank_slots <= 2 * b->merge_count) b->rank_slots *= 2;
    b->ranks = weft__array(t->ctx, b->rank_slots, sizeof *b->ranks);
    if (!b->ranks) return weft__fail_oom(t->ctx, b->rank_slots * sizeof *b->ranks, "merges");
    memset(b->ranks, 0xff, b->rank_slots * sizeof *b->ranks); /* all NO_RANK */
    for (size_t rank = 0; rank < b->merge_count; rank++) {
        size_t slot = rank_slot(t, b->merges[rank].left, b->merges[rank].right);
        if (b->ranks[slot] != NO_RANK)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: merge %zu repeats merge %u", name, rank + 1,
                              (unsigned)b->ranks[slot] + 1);
        b->ranks[slot] = (uint32_t)rank;
    }
    return WEFT_OK;
}

/* Finds the id of each byte, and the special tokens. Each byte must be a token. All other tokens are made by
 * merges or are special. */
static weft_status sort_out(weft_tokenizer *t, const char *name) {
    weft__bpe *b = t->bpe;
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)(unsigned char)i;
        b->bytes[i] = t->slots[weft__tokenizer_slot(t, &byte, 1)];
        if (b->bytes[i] < 0)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: byte 0x%02x has no id", name, i);
    }
    uint8_t *made = weft__zalloc(t->ctx, t->count + 1);
    b->specials = weft__array(t->ctx, SPECIALS_MAX, sizeof *b->specials);
    if (!made || !b->specials) {
        weft__free(t->ctx, made);
        return weft__fail_oom(t->ctx, t->count, "a vocabulary");
    }
    for (unsigned i = 0; i < 256; i++) made[b->bytes[i]] = 1;
    for (size_t i = 0; i < b->merge_count; i++) made[b->merges[i].made] = 1;
    size_t specials = 0;
    for (size_t id = 0; id < t->count; id++) {
        if (made[id]) continue;
        if (specials < SPECIALS_MAX) b->specials[specials] = (int32_t)id;
        specials++;
    }
    weft__free(t->ctx, made);
    b->special_count = specials;
    if (specials <= SPECIALS_MAX) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: no merge makes %zu of the tokens: merges are missing",
                      name, specials);
}

static weft_status make_index(weft_tokenizer *t, const char *name) {
    if (!t->bpe || t->bpe->merge_count == 0)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: there are no merges", name);
    WEFT_TRY(tabulate_ranks(t, name));
    WEFT_TRY(sort_out(t, name));
    weft__bpe_work *w = t->bpe->work = weft__zalloc(t->ctx, sizeof *w);
    if (!w) return weft__fail_oom(t->ctx, sizeof *w, "a tokenizer");
    w->cache = weft__array(t->ctx, CACHED_WORDS, sizeof *w->cache);
    if (!w->cache) return weft__fail_oom(t->ctx, CACHED_WORDS * sizeof *w->cache, "a tokenizer");
    return compile_pattern(t->ctx, w);
}

/* ---- the tokens of a word ---- */

static void heap_push(weft__bpe_work *w, uint64_t value) {
    size_t at = w->heap_count++;
    for (; at > 0 && w->heap[(at - 1) / 2] > value; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = value;
}

static uint64_t heap_pop(weft__bpe_work *w) {
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

/* Makes room for the symbols of a word of `bytes` bytes. */
static weft_status make_room(weft_tokenizer *t, const weft__span *span, size_t bytes) {
    weft__bpe_work *w = t->bpe->work;
    if (bytes <= w->room) return WEFT_OK;
    if (bytes > UINT32_MAX / 2)
        return weft__fail(t->ctx, WEFT_ERR_UNSUPPORTED, "%s: a word of %zu bytes is too long", span->name,
                          bytes);
    size_t wanted = bytes + bytes / 2 + 64;
    weft__free(t->ctx, w->symbols);
    weft__free(t->ctx, w->heap);
    w->room = 0;
    w->symbols = weft__array(t->ctx, wanted, sizeof *w->symbols);
    w->heap = weft__array(t->ctx, 2 * wanted, sizeof *w->heap);
    if (!w->symbols || !w->heap) return weft__fail_oom(t->ctx, wanted * sizeof *w->symbols, "a long word");
    w->room = wanted;
    return WEFT_OK;
}

/* Finds the merge of a symbol with its right neighbour, and puts it on the heap. */
static void consider(const weft_tokenizer *t, uint32_t at, uint32_t count) {
    weft__bpe_work *w = t->bpe->work;
    symbol *s = &w->symbols[at];
    s->rank = NO_RANK;
    if (s->after < count) s->rank = t->bpe->ranks[rank_slot(t, s->id, w->symbols[s->after].id)];
    if (s->rank != NO_RANK) heap_push(w, (uint64_t)s->rank << 32 | at);
}

/* Merges the bytes of a word into tokens. The tokens remain in `symbols`: the first one is at index 0, and
 * `after` is the index of the next. Of merges with equal rank, the leftmost goes first. Each merge removes
 * one entry from the heap and adds at most two, so 2 n entries are enough for n bytes. */
static void merge_word(const weft_tokenizer *t, const char *word, uint32_t count) {
    const weft__bpe *b = t->bpe;
    weft__bpe_work *w = b->work;
    symbol *s = w->symbols;
    w->heap_count = 0;
    for (uint32_t i = 0; i < count; i++)
        s[i] = (symbol){b->bytes[(unsigned char)word[i]], i - 1, i + 1, NO_RANK};
    for (uint32_t i = 0; i + 1 < count; i++) consider(t, i, count);
    while (w->heap_count) {
        uint64_t least = heap_pop(w);
        uint32_t at = (uint32_t)least, rank = (uint32_t)(least >> 32);
        if (s[at].rank != rank) continue; /* one of the two was merged in the meantime */
        uint32_t gone = s[at].after;
        s[at].id = b->merges[rank].made;
        s[at].after = s[gone].after;
        s[gone].rank = NO_RANK;
        if (s[gone].after < count) s[s[gone].after].before = at;
        consider(t, at, count);
        if (at > 0) consider(t, s[at].before, count);
    }
}

static weft_status encode_word(weft_tokenizer *t, const weft__span *span, const char *word, size_t bytes,
                               weft__ids *out) {
    weft__bpe_work *w = t->bpe->work;
    cached *c = NULL;
    uint64_t key[CACHED_BYTES / 8] = {0};
    if (bytes <= CACHED_BYTES) {
        memcpy(key, word, bytes);
        c = &w->cache[weft__mix64(key[0] ^ weft__mix64(key[1] + bytes + t->key)) & (CACHED_WORDS - 1)];
        if (c->bytes == bytes && c->key[0] == key[0] && c->key[1] == key[1]) {
            for (int i = 0; i < c->count; i++) weft__put_id(out, c->ids[i]);
            return WEFT_OK;
        }
    }
    WEFT_TRY(make_room(t, span, bytes));
    merge_word(t, word, (uint32_t)bytes);
    size_t before = out->count;
    for (uint32_t i = 0; i < bytes; i = w->symbols[i].after) weft__put_id(out, w->symbols[i].id);
    if (!c || out->count - before > CACHED_IDS) return WEFT_OK;
    *c = (cached){.key = {key[0], key[1]}, .bytes = (uint8_t)bytes};
    for (uint32_t i = 0; i < bytes; i = w->symbols[i].after) c->ids[c->count++] = w->symbols[i].id;
    return WEFT_OK;
}

/* ---- the words of a text ---- */

/* Encodes text that is all UTF-8. The pattern matches at any character. It looks ahead, but never back. */
static weft_status encode_valid(weft_tokenizer *t, const weft__span *span, size_t at, size_t end,
                                weft__ids *out) {
    weft__bpe_work *w = t->bpe->work;
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->match);
    while (at < end) {
        int code = pcre2_match(w->pattern, (PCRE2_SPTR)span->text + at, end - at, 0, PCRE2_NO_UTF_CHECK,
                               w->match, NULL);
        if (code == PCRE2_ERROR_NOMEMORY) return weft__fail_oom(t->ctx, end - at, "matching a pattern");
        if (code < 1 || found[1] == 0 || found[1] > end - at)
            return weft__fail(t->ctx, WEFT_ERR_INTERNAL,
                              "%s: byte %zu: the tokenizer's pattern failed with %d", span->name, at, code);
        WEFT_TRY(encode_word(t, span, span->text + at, found[1], out));
        at += found[1];
    }
    return WEFT_OK;
}

/* Returns the end of a run of bytes from `at` on. With `valid` the run is UTF-8, otherwise it is not. */
static size_t run_of(const weft__span *span, size_t at, size_t end, bool valid) {
    while (at < end) {
        uint32_t point;
        bool ascii = (unsigned char)span->text[at] < 0x80;
        int n = ascii ? 1 : weft__utf8_read(span->text + at, end - at, &point);
        if ((n > 0) != valid) break;
        at += n > 0 ? (size_t)n : n < 0 ? (size_t)-n : end - at;
    }
    return at;
}

static weft_status encode_ordinary(weft_tokenizer *t, const weft__span *span, size_t at, size_t end,
                                   weft__ids *out) {
    while (at < end) {
        size_t valid = run_of(span, at, end, true), invalid = run_of(span, valid, end, false);
        WEFT_TRY(encode_valid(t, span, at, valid, out));
        if (invalid > valid) WEFT_TRY(encode_word(t, span, span->text + valid, invalid - valid, out));
        at = invalid;
    }
    return WEFT_OK;
}

/* Returns the next place of a token in the text, or span->bytes if there is none. */
static size_t find_token(const weft__span *span, size_t at, const char *token, size_t bytes) {
    while (at + bytes <= span->bytes) {
        const char *first = memchr(span->text + at, token[0], span->bytes - bytes + 1 - at);
        if (!first) break;
        at = (size_t)(first - span->text);
        if (memcmp(first, token, bytes) == 0) return at;
        at++;
    }
    return span->bytes;
}

static weft_status encode(const weft_tokenizer *tokenizer, const weft__span *span, weft__ids *out) {
    weft_tokenizer *t =
        (weft_tokenizer *)tokenizer; /* only the work memory changes; text.h explains threads */
    const weft__bpe *b = t->bpe;
    size_t next[SPECIALS_MAX], at = 0; /* next place of each special token, searched only when passed */
    for (size_t i = 0; i < b->special_count; i++) next[i] = 0;
    for (;;) {
        size_t end = span->bytes, special = 0, bytes = 0;
        for (size_t i = 0; i < b->special_count; i++) {
            size_t size;
            const char *token = weft__token(t, (size_t)b->specials[i], &size);
            if (at == 0 || next[i] < at) next[i] = find_token(span, at, token, size);
            if (next[i] < end || (next[i] == end && end < span->bytes && size > bytes)) {
                end = next[i]; /* of two tokens at one place, take the longer */
                special = i;
                bytes = size;
            }
        }
        WEFT_TRY(encode_ordinary(t, span, at, end, out));
        if (end == span->bytes) return WEFT_OK;
        weft__put_id(out, b->specials[special]);
        at = end + bytes;
    }
}

const weft__tokenizer_type weft__tokenizer_bpe = {
    .name = "bpe", .listed = true, .merged = true, .index = make_index, .encode = encode};
