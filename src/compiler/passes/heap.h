/* A heap of ranked numbers in an array of the caller's, the lowest on top. */
#ifndef WEFT_COMPILER_PASSES_HEAP_H
#define WEFT_COMPILER_PASSES_HEAP_H

#include "base/ranked.h"

/* Onto `count` numbers; there is room for one more. */
static inline void weft__heap_push(int64_t *heap, int count, int64_t number) {
    int at = count;
    for (; at > 0 && number < heap[(at - 1) / 2]; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = number;
}

/* The lowest of `count` numbers, of which one less is left. */
static inline int64_t weft__heap_pop(int64_t *heap, int count) {
    const int64_t lowest = heap[0], last = heap[count - 1];
    int at = 0;
    for (int child; (child = 2 * at + 1) < count - 1; at = child) {
        if (child + 1 < count - 1 && heap[child + 1] < heap[child]) child++;
        if (last <= heap[child]) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return lowest;
}

#endif
