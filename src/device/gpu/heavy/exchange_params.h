/* What exchange.c tells exchange.cl.
 * Must not know: processes. Read next: exchange.c, exchange.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_EXCHANGE_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_EXCHANGE_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* out[i] = the sum of element i of ROWS rows, for i < count; 0 for the other elements below `all`. */
typedef struct w_add_rows {
    w_i64 count, all;
    w_i64 apart; /* elements from a row to the next one */
} w_add_rows;

#endif
