/* A hash index over an array that only grows. It finds entries in constant time, so passes over large graphs
 * stay linear. Must not know: what the entries are; the caller compares them. Read next: lower.c, ir.c. */
#ifndef WEFT_COMPILER_PASSES_INDEX_H
#define WEFT_COMPILER_PASSES_INDEX_H

#include "base/base.h"

typedef struct ir_index_slot {
    uint64_t hash;
    int entry; /* number of the entry + 1; 0: the slot is free */
} ir_index_slot;

/* An empty index is all zeros. */
typedef struct ir_index {
    ir_index_slot *slots;
    size_t count, capacity; /* a power of two */
} ir_index;

/* Returns the next entry with this hash, -1 after the last one. *probe is 0 before the first call. */
static inline int weft__index_next(const ir_index *index, uint64_t hash, size_t *probe) {
    while (index->capacity) {
        const ir_index_slot *slot = &index->slots[(hash + (*probe)++) & (index->capacity - 1)];
        if (!slot->entry) return -1;
        if (slot->hash == hash) return slot->entry - 1;
    }
    return -1;
}

/* Adds an entry. False if memory is gone. */
bool weft__index_add(weft_context *ctx, ir_index *index, uint64_t hash, int entry);
static inline void weft__index_free(weft_context *ctx, ir_index *index) { weft__free(ctx, index->slots); }

static inline uint64_t weft__index_hash(int a, int b, int c, int d) {
    const uint64_t low = (uint64_t)(uint32_t)a << 32 | (uint32_t)b,
                   high = (uint64_t)(uint32_t)c << 32 | (uint32_t)d;
    return weft__mix64(weft__mix64(low) ^ high);
}

#endif
