/* Turns commands into launches. Kernels are rendered; heavy operations have templates.
 * Must not know: how launches run. Read next: kernel/source.h, gpu/heavy/heavy.h. */
#include "device/gpu/card/facts.h"
#include "device/gpu/gpu.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"

#define TAKES(KIND, member)                                                                                  \
    static bool takes_##member(const weft_target *target, const weft_heavy *heavy) {                         \
        return weft__gpu_##member##_takes(target, &heavy->as.member);                                        \
    }
WEFT_GPU_HEAVY(TAKES)

static const struct {
    bool (*takes)(const weft_target *target, const weft_heavy *heavy);
    weft_status (*launch)(weft_launches *launches, const weft_heavy *heavy, bool sink);
} table[WEFT_HEAVY_KINDS] = {
#define ROW(KIND, member) [WEFT_HEAVY_##KIND] = {takes_##member, weft__gpu_##member},
    WEFT_GPU_HEAVY(ROW)};

bool weft__gpu_takes(const weft_target *target, const weft_heavy *heavy) {
    return table[heavy->kind].takes && table[heavy->kind].takes(target, heavy);
}

static weft_status launch_kernel(weft_launches *launches, const weft_kernel *kernel, bool sink) {
    int l = launches->count;
    WEFT_TRY(weft__render(launches, kernel, sink));
    for (; l < launches->count; l++) {
        launches->list[l].shares = true;
        launches->list[l].may_fuse = launches->list[l].shared_bytes == 0;
    }
    return WEFT_OK;
}

static weft_status launch_any(weft_launches *launches, const weft_command *commands, int count, int *taken) {
    const weft_command *command = commands;
    *taken = 1;
    switch (command->kind) {
    case WEFT_COMMAND_KERNEL: return launch_kernel(launches, command->kernel, command->sink);
    case WEFT_COMMAND_HEAVY:
        return table[command->heavy.kind].launch(launches, &command->heavy, command->sink);
    case WEFT_COMMAND_COPY: return weft__gpu_copy(launches, command);
    case WEFT_COMMAND_ZERO: return weft__gpu_zero(launches, commands, count, taken);
    case WEFT_COMMAND_WAIT: return WEFT_OK; /* as weft__gpu_exchange */
    }
    return weft__fail(launches->ctx, WEFT_ERR_INTERNAL, "gpu: a command of an unknown kind");
}

weft_status weft__gpu_command(weft_launches *launches, const weft_command *commands, int count, int *taken) {
    const int from = launches->count;
    WEFT_TRY(launch_any(launches, commands, count, taken));
    weft__gpu_facts(commands, *taken, launches, from);
    return WEFT_OK;
}

const char *weft__gpu_path(const weft_command *command) {
    const char *path = command->kind == WEFT_COMMAND_KERNEL  ? command->kernel->path
                       : command->kind == WEFT_COMMAND_HEAVY ? command->heavy.path
                                                             : NULL;
    return path ? path : "";
}
