/* The record of the first bad value that kernels met. The host reads it (backend/fault.c).
 * Must not know: what kernels compute. Read next: common.cl. */
#ifndef WEFT_DEVICE_GPU_PRELUDE_FAULTS_PARAMS_H
#define WEFT_DEVICE_GPU_PRELUDE_FAULTS_PARAMS_H

#include "device/gpu/backend/kernel_types.h"

/* Values of `what`, the same as weft_fault_kind in device/device.h. */
#define W_FAULT_GATHER  1 /* an index that is not in 0..bound-1 */
#define W_FAULT_DIVIDE  2 /* an integer divided by 0: value and bound are 0 */
#define W_FAULT_SCATTER 3
#define W_FAULT_UPDATE  4 /* the offset of an update */

/* The kernel that changes `set` from 0 fills in the rest. `command` tells the host the layer. */
typedef struct w_faults {
    w_i32 set, command, what, unused;
    w_i64 value, bound, element;
} w_faults;

#endif
