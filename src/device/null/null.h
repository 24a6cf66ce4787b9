/* The null device: plans and logs, computes nothing.
 *
 *     null:cuda, null:opencl   plan for a large card of that kind
 *     null:as:DEVICE           plans for a device of this machine, or for a common card if CUDA has none
 *     null:card:NAME           plans for a described card, or a file that describes one (gpu/card/card.h),
 * and prices its launches
 *
 * It takes the heavy operations that the other device would take, and counts the launches that a card would
 * get. Tests read the counts.
 * Must not know: drivers of cards. Read next: null.c. */
#ifndef WEFT_DEVICE_NULL_NULL_H
#define WEFT_DEVICE_NULL_NULL_H

#include "device/device.h"

/* Counts of what was submitted since the device was opened. A run that is repeated n times counts n times. */
typedef struct weft_null_counts {
    uint64_t builds, runs;
    uint64_t commands; /* kernels + heavy + copies + zeros */
    uint64_t kernels, heavy, copies, zeros;
    uint64_t bytes; /* that kernels, copies and zeros would read and write */
    /* For the program that was built last, for a card: */
    int launches, fused; /* launches at first, and after they are fused (gpu/backend/fused_launch.c) */
    bool repeats;        /* in that form, one launch does several runs */
} weft_null_counts;

/* For tests: called with the launches of each program that is built for a card, plain and fused. */
struct weft_gpu_program;
extern void (*weft__null_watch)(const struct weft_gpu_program *program, const weft_commands *commands);

/* Returns the counts, or NULL for another device. */
const weft_null_counts *weft__null_counts(const weft_device *device);

/* The predicted time of a launch. */
typedef struct weft_null_price {
    double seconds, bytes;
    int64_t blocks;
    bool library;       /* a library computes it */
    const char *reason; /* what it waits for longest */
    char path[96], what[128];
} weft_null_price;

/* Returns the launches, in order, of the program that was built last. NULL: there are none, or no card. They
 * are valid until the next program is built. */
const weft_null_price *weft__null_prices(const weft_device *device, int *count);
/* Returns the least seconds from one submission of the host to the next. */
double weft__null_submit(const weft_device *device);

/* Returns the device that "null:as:DEVICE" or "null:card:NAME" plans for, or NULL if there is none. */
const weft_device_outline *weft__null_outline(const weft_device *device);

#endif
