/* What GPU backends share besides the templates (heavy.h): the whole text of a launch, commands as launches,
 * and the record of bad values. Must not know: OpenCL, CUDA. Read next: command.c. */
#ifndef WEFT_DEVICE_GPU_GPU_H
#define WEFT_DEVICE_GPU_GPU_H

#include "device/device.h"
#include "kernel/source.h"

/* ---- text.c ---- */

/* What stands before a text, in order: returns how many, at most WEFT_GPU_PARTS. */
enum { WEFT_GPU_PARTS = 27 };
int weft__gpu_parts(weft_dialect dialect, unsigned prelude, const char *parts[WEFT_GPU_PARTS]);

/* ---- command.c ---- */

/* Whether a template runs it. */
bool weft__gpu_takes(const weft_target *target, const weft_heavy *heavy);
/* Adds the launches of the next command, or of *taken of the next `count`, which one launch does at once. */
weft_status weft__gpu_command(weft_launches *launches, const weft_command *commands, int count, int *taken);
/* Layer of a command, "" where it has none. */
const char *weft__gpu_path(const weft_command *command);

/* ---- move.c: copies and zeros, as kernels, so that they can be kept from happening after a fault ---- */

weft_status weft__gpu_copy(weft_launches *launches, const weft_command *command);
/* *taken of the `count` commands, the first of which is ZERO: the gaps of a block are commands of their own.
 */
weft_status weft__gpu_zero(weft_launches *launches, const weft_command *commands, int count, int *taken);

/* ---- fault.c ---- */

/* w_faults of the prelude, as the host reads it. */
typedef struct weft_gpu_faults {
    int32_t set, command, what, unused;
    int64_t value, bound, element;
} weft_gpu_faults;

/* The layers that records lead back to. The number of one is what a launch gets as its command. */
typedef struct weft_gpu_paths {
    const char **list; /* interned */
    size_t count, capacity;
} weft_gpu_paths;

/* The number of a path, which is new to the table at its first use; -1 when memory is gone. */
int weft__gpu_path_number(weft_context *ctx, weft_gpu_paths *paths, const char *path);
weft_fault weft__gpu_fault(const weft_gpu_faults *record, const weft_gpu_paths *paths);

#endif
