/* Commands as launches: kernels are rendered, heavy operations are templates. Must not know: how launches are
 * run. Read next: kernel/source.h, heavy.h. */
#include "device/gpu/gpu.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"

bool weft__gpu_takes(const weft_target *target, const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return weft__gpu_matmul_takes(target, &heavy->as.matmul);
    case WEFT_HEAVY_SCATTER: return weft__gpu_scatter_takes(target, &heavy->as.scatter);
    case WEFT_HEAVY_ATTENTION: return weft__gpu_attention_takes(target, &heavy->as.attention);
    case WEFT_HEAVY_UPDATE: return weft__gpu_update_takes(target, &heavy->as.update);
    case WEFT_HEAVY_CONV: return weft__gpu_conv_takes(target, &heavy->as.conv);
    case WEFT_HEAVY_SCAN: return weft__gpu_knows(target, (weft_dtype)heavy->as.scan.dtype);
    case WEFT_HEAVY_ORDER: return true;
    case WEFT_HEAVY_SOURCE: return weft__gpu_source_takes(target, &heavy->as.source);
    case WEFT_HEAVY_RECURRENT: return weft__gpu_recurrent_takes(target, &heavy->as.recurrent);
    }
    return false;
}

static weft_status launch_heavy(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return weft__gpu_matmul(launches, heavy, sink);
    case WEFT_HEAVY_SCATTER: return weft__gpu_scatter(launches, heavy, sink);
    case WEFT_HEAVY_ATTENTION: return weft__gpu_attention(launches, heavy, sink);
    case WEFT_HEAVY_UPDATE: return weft__gpu_update(launches, heavy, sink);
    case WEFT_HEAVY_CONV: return weft__gpu_conv(launches, heavy, sink);
    case WEFT_HEAVY_SCAN: return weft__gpu_scan(launches, heavy, sink);
    case WEFT_HEAVY_ORDER: return weft__gpu_order(launches, heavy, sink);
    case WEFT_HEAVY_SOURCE: return weft__gpu_source(launches, heavy, sink);
    case WEFT_HEAVY_RECURRENT: return weft__gpu_recurrent(launches, heavy, sink);
    }
    return weft__fail(launches->ctx, WEFT_ERR_INTERNAL, "gpu: a heavy operation of an unknown kind");
}

static weft_status launch_kernel(weft_launches *launches, const weft_kernel *kernel, bool sink) {
    int l = launches->count;
    WEFT_TRY(weft__render(launches, kernel, sink));
    for (; l < launches->count; l++) launches->list[l].shares = launches->list[l].links = true;
    return WEFT_OK;
}

weft_status weft__gpu_command(weft_launches *launches, const weft_command *commands, int count, int *taken) {
    const weft_command *command = commands;
    *taken = 1;
    switch (command->kind) {
    case WEFT_COMMAND_KERNEL: return launch_kernel(launches, command->kernel, command->sink);
    case WEFT_COMMAND_HEAVY: return launch_heavy(launches, &command->heavy, command->sink);
    case WEFT_COMMAND_COPY: return weft__gpu_copy(launches, command);
    case WEFT_COMMAND_ZERO: return weft__gpu_zero(launches, commands, count, taken);
    }
    return weft__fail(launches->ctx, WEFT_ERR_INTERNAL, "gpu: a command of an unknown kind");
}

const char *weft__gpu_path(const weft_command *command) {
    const char *path = command->kind == WEFT_COMMAND_KERNEL  ? command->kernel->path
                       : command->kind == WEFT_COMMAND_HEAVY ? command->heavy.path
                                                             : NULL;
    return path ? path : "";
}
