/* What scatter.c tells scatter.cl.
 * Must not know: how launches run. Read next: scatter.c, scatter.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_SCATTER_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_SCATTER_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Values of `start`: what the source is added to. */
#define START_ZERO 0
#define START_BASE 1
#define START_OUT  2 /* what out already holds */

/* out (outer, rows, inner) and a source (outer, count, inner). */
typedef struct w_scatter {
    w_i64 outer, count, rows, inner;
    w_i64 tile, width; /* rows and columns of a worker */
    w_i32 start, sink;
} w_scatter;

#endif
