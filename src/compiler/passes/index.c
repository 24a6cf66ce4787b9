/* Adds entries to a hash index with linear probing. Must not know: what the entries are. Read next:
 * index.h. */
#include "compiler/passes/index.h"

static void index_put(ir_index_slot *slots, size_t capacity, ir_index_slot slot) {
    size_t at = slot.hash & (capacity - 1);
    while (slots[at].entry) at = (at + 1) & (capacity - 1);
    slots[at] = slot;
}

bool weft__index_add(weft_context *ctx, ir_index *index, uint64_t hash, int entry) {
    if (2 * (index->count + 1) > index->capacity) {
        const size_t capacity = index->capacity ? 2 * index->capacity : 16;
        ir_index_slot *slots = weft__array(ctx, capacity, sizeof *slots);
        if (!slots) return false;
        for (size_t i = 0; i < index->capacity; i++)
            if (index->slots[i].entry) index_put(slots, capacity, index->slots[i]);
        weft__free(ctx, index->slots);
        index->slots = slots;
        index->capacity = capacity;
    }
    index_put(index->slots, index->capacity, (ir_index_slot){hash, entry + 1});
    index->count++;
    return true;
}
