/* Byte pair encoding of one word: Sennrich et al., "Neural machine translation of rare words with subword
 * units", 2016. A word begins as a row of ids. Then the neighbours with the best merge become one id, again
 * and again, until no merge applies. A cache remembers short words. Must not know: what ids stand for, files.
 * Read next: merges.c. */
#ifndef WEFT_SRC_TEXT_MERGES_H
#define WEFT_SRC_TEXT_MERGES_H

#include "text/tokenizer.h"

#define WEFT__NO_RANK UINT32_MAX

typedef struct weft__merge {
    int32_t left, right, made; /* ids */
    uint32_t order;            /* the least goes first; of equal ones, the leftmost */
} weft__merge;

typedef struct weft__merges {
    weft__merge
        *list; /* [count], the best first; the index is the rank. weft__merges_tabulate sets the order */
    size_t count, capacity;
    uint32_t *ranks;   /* open-addressing table of ranks; WEFT__NO_RANK is a free slot */
    size_t rank_slots; /* a power of two */
    uint64_t key;      /* key of the hashes, so that no file can choose collisions */
} weft__merges;

/* Builds the table of ranks from the list. A repeated pair is WEFT_ERR_FORMAT, or its last merge counts. With
 * `by_token`, merges that follow each other and make the same token have one order. */
weft_status weft__merges_tabulate(weft_context *ctx, weft__merges *m, const char *name, bool may_repeat,
                                  bool by_token);
void weft__merges_free(weft_context *ctx, weft__merges *m);

/* An id of the current word. Neighbours are indices in the array of symbols. */
typedef struct weft__symbol {
    int32_t id;
    uint32_t before, after; /* `after` of the last symbol is the count */
    uint32_t rank;          /* rank of the merge with the next symbol, or WEFT__NO_RANK */
} weft__symbol;

/* Work memory of one word. */
typedef struct weft__merging {
    weft__symbol *symbols; /* [room] */
    /* [2 * room], a min-heap of order << 32 | index: the candidate merges, some of them outdated */
    uint64_t *heap;
    size_t room, heap_count;
} weft__merging;

/* Makes room for a word of `count` symbols. `name` is the text's, for messages. */
weft_status weft__merging_reserve(weft_context *ctx, weft__merging *w, const char *name, size_t count);
/* Merges the ids of symbols 0 to count-1. The first id that is left is at index 0, and `after` is the index
 * of the next one. Of merges with equal rank, the leftmost goes first. */
void weft__merging_run(const weft__merges *m, weft__merging *w, uint32_t count);
void weft__merging_free(weft_context *ctx, weft__merging *w);

/* ---- the cache of encoded words, found by their bytes. It holds only short words with few ids. ---- */

#define WEFT__CACHED_BYTES 16
#define WEFT__CACHED_IDS   4

typedef struct weft__cached {
    uint64_t key[WEFT__CACHED_BYTES / 8];
    int32_t ids[WEFT__CACHED_IDS];
    uint8_t bytes, count; /* bytes 0: a free entry */
} weft__cached;

typedef struct weft__word_cache {
    weft__cached *entries; /* NULL: not made yet */
    uint64_t key;
} weft__word_cache;

weft_status weft__word_cache_make(weft_context *ctx, weft__word_cache *cache, uint64_t key);
/* Puts the ids of a word out and returns true. Otherwise *entry is where the word belongs; NULL if it is too
 * long. */
bool weft__word_cache_find(const weft__word_cache *cache, const char *word, size_t bytes, weft__ids *out,
                           weft__cached **entry);
/* Stores the ids of the word that was not found. entry may be NULL. */
void weft__word_cache_store(weft__cached *entry, const char *word, size_t bytes, const weft__merging *w,
                            uint32_t count);

#endif
