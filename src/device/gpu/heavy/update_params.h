/* What update.c tells update.cl.
 * Must not know: how launches run. Read next: update.c, update.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_UPDATE_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_UPDATE_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Rows [offset, offset + extent) of (outer, total, inner) become those of a value (outer, extent, inner). */
typedef struct w_update {
    w_i64 outer, total, extent, inner;
    w_i64 block;    /* rows of a work-group */
    w_i32 in_place; /* only the rows of the value are written */
    w_i32 width;    /* work-items that share a row */
    w_i32 sink, unused;
} w_update;

#endif
