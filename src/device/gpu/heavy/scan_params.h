/* What scan.c tells scan.cl.
 * Must not know: how launches run. Read next: scan.c, scan.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_SCAN_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_SCAN_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Sums, or products, along the middle of (outer, extent, inner). */
typedef struct w_scan {
    w_i64 outer, extent, inner;
    w_i64 length, segments; /* elements of a segment; segments of a row */
    w_i32 product, reverse; /* products, not sums; from the last element to the first */
    w_i32 sink, unused;
} w_scan;

#endif
