/* Initial values of parameters. The host draws them, whatever the device. The numbers are those of
 * weft__random_normal and weft__unit_float, computed many at a time.
 * Must not know: parameters. Read next: random_fill.c. */
#ifndef WEFT_SRC_BASE_RANDOM_FILL_H
#define WEFT_SRC_BASE_RANDOM_FILL_H

#include "base/base.h"

typedef enum weft_random_kind {
    WEFT_RANDOM_NORMAL, /* element i: scale * weft__random_normal(seed, stream, 0, i) */
    WEFT_RANDOM_UNIFORM /* element i: scale * (2 u - 1), where u is the unit float of word i */
} weft_random_kind;

/* Writes elements 0..n-1 of step 0 of a stream to out, with `threads` threads. */
void weft__random_fill(weft_random_kind kind, uint64_t seed, uint64_t stream, double scale, int64_t n,
                       float *out, int threads);

/* random_fill_tile.c, one function for each instruction set: writes elements first..first+n-1. first is a
 * multiple of 4. */
typedef void weft_random_fill_fn(weft_random_kind kind, const uint32_t key[2], double scale, int64_t first,
                                 int64_t n, float *out);
weft_random_fill_fn weft__random_fill_baseline, weft__random_fill_avx2, weft__random_fill_avx512;

#endif
