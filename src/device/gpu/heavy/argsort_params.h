/* What argsort.c tells argsort.cl.
 * Must not know: how launches run. Read next: argsort.c, argsort.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_ARGSORT_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_ARGSORT_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

#define RUN   16 /* elements of a run that one work-item sorts in registers */
#define PIECE 64 /* elements of a merged run that one work-item writes */

/* The first `count` positions that sort rows of `extent` elements. Each row has `runs` runs, of `span`
 * elements of the row. Of each run, `room` elements are kept. */
typedef struct w_order {
    w_i64 rows, extent, count, runs, span, room;
    w_i64 wide, pieces;         /* of a merge: elements of a merged run that are kept, pieces of it */
    w_i32 is_float, descending; /* of the keys */
    w_i32 last, sink;           /* positions go to the result, since one run is left */
} w_order;

#endif
