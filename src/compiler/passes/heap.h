/* A binary heap of ranked numbers (base/ranked.h) in an array of the caller, the lowest number on top. Must
 * not know: what is ranked. Read next: order.c. */
#ifndef WEFT_COMPILER_PASSES_HEAP_H
#define WEFT_COMPILER_PASSES_HEAP_H

#include "base/ranked.h"

/* Adds a number to a heap of `count` numbers. The array must have room for one more. */
static inline void weft__heap_push(int64_t *heap, int count, int64_t number) {
    int at = count;
    for (; at > 0 && number < heap[(at - 1) / 2]; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = number;
}

/* Removes and returns the lowest of `count` numbers. The caller lowers its count. */
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
