/* What the GPU backends share besides the templates (heavy/heavy.h): the whole kernel source of a launch,
 * commands as launches, and the fault record.
 * Must not know: OpenCL, CUDA. Read next: backend/command.c. */
#ifndef WEFT_DEVICE_GPU_GPU_H
#define WEFT_DEVICE_GPU_GPU_H

#include "device/device.h"
#include "device/gpu/prelude/faults_params.h"
#include "kernel/source.h"

/* ---- backend/kernel_source.c ---- */

/* Lists the parts that stand before a kernel source, in order. Returns their number, at most
 * WEFT_GPU_PRELUDE_MOST. */
enum { WEFT_GPU_PRELUDE_MOST = 29 };
int weft__gpu_prelude_parts(weft_dialect dialect, unsigned prelude, const char *parts[WEFT_GPU_PRELUDE_MOST]);

/* ---- backend/command.c ---- */

/* Returns whether a template runs the operation. */
bool weft__gpu_takes(const weft_target *target, const weft_heavy *heavy);
/* Adds the launches of the next command. If one launch runs several of the next `count` commands, *taken is
 * their number. */
weft_status weft__gpu_command(weft_launches *launches, const weft_command *commands, int count, int *taken);
/* Returns the path of a command's layer, or "". */
const char *weft__gpu_path(const weft_command *command);

/* ---- heavy/move.c: copies and zeros, as kernels, so that a fault can prevent them ---- */

weft_status weft__gpu_copy(weft_launches *launches, const weft_command *command);
/* Adds one launch for *taken of the `count` commands; the first is ZERO. The gaps of a block are separate
 * commands. */
weft_status weft__gpu_zero(weft_launches *launches, const weft_command *commands, int count, int *taken);

/* ---- backend/fault.c ---- */

/* The layers' paths that fault records refer to. A launch gets the number of its path as `command`. */
typedef struct weft_gpu_paths {
    const char **list; /* interned */
    size_t count, capacity;
} weft_gpu_paths;

/* Returns the number of a path, and adds it to the table at its first use. Returns -1 when memory is
 * short. */
int weft__gpu_path_number(weft_context *ctx, weft_gpu_paths *paths, const char *path);
weft_fault weft__gpu_fault(const w_faults *record, const weft_gpu_paths *paths);

#endif
