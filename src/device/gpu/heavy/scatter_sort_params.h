/* What scatter_sort.c tells scatter_sort.cl.
 * Must not know: how launches run. Read next: scatter_sort.c, scatter_sort.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_SCATTER_SORT_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_SCATTER_SORT_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

#define DIGIT_BITS 8 /* of a key; a pass of the sort orders the keys by one digit */
#define DIGITS     (1 << DIGIT_BITS)
#define SPAN       32 /* chunks of columns that a work-group adds at a time: one warp for each row */

/* out (outer, rows, inner) and a source (outer, count, inner). */
typedef struct w_scatter_sort {
    w_i64 outer, count, rows, inner;
    w_i32 tile, tiles;  /* keys that a work-group sorts; number of work-groups */
    w_i32 shift, first; /* of a pass: the first bit of its digit; is it the first pass? */
    w_i32 based, sink;
} w_scatter_sort;

#endif
