/* What packed.c tells packed.cl.
 * Must not know: how launches run. Read next: packed.c, packed.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_PACKED_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_PACKED_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* out (ROWS, n) = x (ROWS, k) w^T, with w (n, row_bytes) packed. */
typedef struct w_packed {
    w_i64 n, k, row_bytes;
    w_i32 sink, unused;
} w_packed;

#endif
