/* First values of parameters, which the host draws whatever the device: the numbers that weft__random_normal
 * and weft__unit_float define, many at a time. */
#ifndef WEFT_DEVICE_CPU_TILE_DRAW_H
#define WEFT_DEVICE_CPU_TILE_DRAW_H

#include "base/base.h"

typedef enum weft_draw_kind {
    WEFT_DRAW_NORMAL, /* element i: scale * weft__random_normal(seed, stream, 0, i) */
    WEFT_DRAW_UNIFORM /* scale * (2 u - 1) of the unit float u of word i */
} weft_draw_kind;

/* Elements 0..n-1 of step 0 of a stream, by as many threads. */
void weft__draw(weft_draw_kind kind, uint64_t seed, uint64_t stream, double scale, int64_t n, float *out,
                int threads);

/* draw_tile.c, once for each instruction set: elements first..first+n-1; first is a multiple of 4. */
typedef void weft_draw_fn(weft_draw_kind kind, const uint32_t key[2], double scale, int64_t first, int64_t n,
                          float *out);
weft_draw_fn weft__draw_baseline, weft__draw_avx2, weft__draw_avx512;

#endif
