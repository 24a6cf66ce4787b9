/* Ranked numbers: a rank in the high half of a word and a number in the low half. Such words can be compared
 * and sorted by rank.
 * Must not know: what is ranked. Read next: compiler/passes/heap.h. */
#ifndef WEFT_BASE_RANKED_H
#define WEFT_BASE_RANKED_H

#include <stdint.h>

static inline int64_t weft__ranked(int rank, int value) { return (int64_t)rank << 32 | (uint32_t)value; }
static inline int weft__ranked_value(int64_t ranked) { return (int)(uint32_t)ranked; }

/* For qsort: compares by rank, then by number. */
static inline int weft__by_rank(const void *x, const void *y) {
    const int64_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

#endif
