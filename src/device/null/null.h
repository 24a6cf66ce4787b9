/* The null device: plans and logs, computes nothing. "null:cuda" and "null:opencl" plan for a large card of
 * that kind: they take the heavy operations that it would take, and tell the launches that it would be given.
 * "null:as:DEVICE" does so for a device of this machine, as anything else names it; where there is no card of
 * CUDA's, for a usual one. What was counted, for tests. */
#ifndef WEFT_DEVICE_NULL_NULL_H
#define WEFT_DEVICE_NULL_NULL_H

#include "device/device.h"

/* What was submitted since the device was opened; runs repeated n times count n times. */
typedef struct weft_null_counts {
    uint64_t builds, runs;
    uint64_t commands; /* kernels + heavy + copies + zeros */
    uint64_t kernels, heavy, copies, zeros;
    uint64_t bytes; /* that kernels, copies and zeros would have read and written */
    /* of the program that was built last, for a card: */
    int launches, chained; /* at first, and once they are chained (gpu/backend/chain.c) */
    bool repeats;          /* then one launch does several runs */
} weft_null_counts;

/* NULL for another device. */
const weft_null_counts *weft__null_counts(const weft_device *device);

/* What "null:as:DEVICE" makes plans for; NULL: none. */
const weft_device_outline *weft__null_outline(const weft_device *device);

#endif
