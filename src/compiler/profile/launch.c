/* WEFT_DEBUG=launch: logs each command of each run with its layer, shape, bytes and device time. Must not
 * know: devices' insides. Read next: profile.c, which uses the same timings. */
#include <stdio.h>
#include "compiler/profile/profile.h"

/* Writes extents such as "[32 784 | 10]": parallel, then reduction extents. */
static void say_extents(const weft_kernel *kernel, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, " [");
    const int rank = kernel->n_parallel + kernel->n_reduce;
    for (int d = 0; d < rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 d == 0                    ? ""
                                 : d == kernel->n_parallel ? " | "
                                                           : " ",
                                 (long long)kernel->extent[d]);
    if (used < size) snprintf(text + used, size - used, "]");
}

static void say_command(const weft_program *program, int i, const weft_timing *timing) {
    const weft_command *command = &program->commands.list[i];
    char name[WEFT_COMMAND_TEXT], extents[160] = "", taken[32] = "not timed";
    const char *path;
    double flops, bytes;
    weft__command_text(command, name, &path);
    weft__command_work(command, &flops, &bytes);
    if (command->kernel) say_extents(command->kernel, extents, sizeof extents);
    if (timing) snprintf(taken, sizeof taken, "%.1f us", 1e-3 * (timing->end_ns - timing->start_ns));
    weft__log(program->ctx, WEFT_LOG_DEBUG, "launch %d: %s%s%s%s, %.0f flops, %.0f bytes, %s", i, name,
              extents, *path ? "  # " : "", path, flops, bytes, taken);
}

void weft__program_say(const weft_program *program, const weft_timing *timings) {
    for (int i = 0; i < program->commands.count; i++) say_command(program, i, timings ? &timings[i] : NULL);
}

weft_status weft__program_run_aloud(weft_program *program) {
    weft_device *device = program->ctx->device;
    const weft_device_ops *ops = device->ops;
    weft__device_set_timing(device, true);
    weft_status status = ops->run(device, program->executable, program->slots, 1);
    if (status == WEFT_OK) status = ops->synchronize(device);
    if (status == WEFT_OK) weft__program_say(program, weft__device_timings(device, program->executable));
    weft__device_set_timing(device, false);
    return status;
}
