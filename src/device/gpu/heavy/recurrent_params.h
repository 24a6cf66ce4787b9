/* What recurrent.c tells recurrent.cl.
 * Must not know: how launches run. Read next: recurrent.c, recurrent.cl. */
#ifndef WEFT_DEVICE_GPU_HEAVY_RECURRENT_PARAMS_H
#define WEFT_DEVICE_GPU_HEAVY_RECURRENT_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Values of `start`; 0 is a time step.
 * FIRST: forward, the first state is written to `states`; backward, the first time step of the walk.
 * AFTER: after the last time step of the walk backward, the gradients of the first states are written. */
#define STEP_FIRST 1
#define STEP_AFTER 2

/* One time step. Rows of states, gates and cells count from the start of their buffer, in elements; -1: there
 * is no such row. */
typedef struct w_step {
    w_i64 x_row, state, last, gate, cell, before, end;
    w_i64 t;                   /* the time step */
    w_i64 batch, width, gates; /* of the layer */
    w_i32 masked, start, sink, unused;
} w_step;

#endif
