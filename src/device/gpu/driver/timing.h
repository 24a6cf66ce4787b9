/* Timing of library calls, to choose among the algorithms that a library proposes. The calls work on memory
 * of their own. Must not know: what the calls compute. Read next: timing.c, blas/blas_time.c,
 * dnn/dnn_choice.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_TIMING_H
#define WEFT_DEVICE_GPU_DRIVER_TIMING_H

#include "device/gpu/driver/driver.h"

/* Part of the time of the first proposal that another one must stay below. */
#define WEFT_TIMING_BETTER 0.97F

/* Returns whether so much memory may be allocated for timing. */
bool weft__timing_fits(const weft__cuda *d, size_t bytes);
/* Fills memory with numbers between 1/2 and 2, of 2, 4 or 8 bytes. f16: those of 2 bytes are f16, not bf16.
 */
CUresult weft__timing_fill(weft__cuda *d, CUdeviceptr to, size_t bytes, size_t size, bool f16);

/* Submits the call once to the main stream. Returns false after an error. */
typedef bool (*weft__timing_run)(weft__cuda *d, const void *call);
/* Returns the milliseconds of a call, the minimum of several after a first one, which may load a kernel. If
 * the first measured call is far slower than `best`, it is the only one. Returns a negative number after an
 * error. */
float weft__timing_of(weft__cuda *d, weft__timing_run run, const void *call, const CUevent events[2],
                      float best);

#endif
