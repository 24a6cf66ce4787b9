/* What move.c tells move.cl.
 * Must not know: commands. Read next: move.c, move.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MOVE_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_MOVE_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

#define STRETCHES 8 /* blocks of zeros in one launch, at most */

typedef struct w_copy {
    w_i64 count; /* elements */
    w_i32 sink, unused;
} w_copy;

/* Blocks of count[i] zeros, at[i] elements after the start of the first one. */
typedef struct w_stretches {
    w_i64 at[STRETCHES], count[STRETCHES];
    w_i32 n, sink;
} w_stretches;

#endif
