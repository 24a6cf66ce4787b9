/* The least operations and bytes of a command. The bound of a profile divides them by the peak rates. Must
 * not know: runs. Read next: peaks.c, which measures these rates. */
#include "compiler/profile/profile.h"

void weft__command_work(const weft_command *command, double *flops, double *bytes) {
    *flops = *bytes = 0;
    switch (command->kind) {
    case WEFT_COMMAND_KERNEL: weft__kernel_cost(command->kernel, flops, bytes); break;
    case WEFT_COMMAND_HEAVY: weft__heavy_class(&command->heavy)->cost(&command->heavy, flops, bytes); break;
    case WEFT_COMMAND_COPY: *bytes = 2 * (double)command->bytes; break;
    case WEFT_COMMAND_ZERO: *bytes = (double)command->bytes; break;
    case WEFT_COMMAND_WAIT: break;
    }
}

weft_dtype weft__command_dtype(const weft_command *command) {
    return command->kind == WEFT_COMMAND_HEAVY ? weft__heavy_dtype(&command->heavy) : WEFT_F32;
}

weft_work weft__command_kind(const weft_command *command) {
    const bool heavy = command->kind == WEFT_COMMAND_HEAVY || command->kind == WEFT_COMMAND_WAIT;
    return heavy ? weft__heavy_class(&command->heavy)->work : WEFT_WORK_OTHER;
}

weft_program_work weft__program_work(const weft_program *program) {
    weft_program_work work = {0};
    work.launches = (uint64_t)weft__device_launches_of(program->ctx->device, program->executable);
    for (int i = 0; i < program->commands.count; i++) {
        double flops, bytes;
        const weft_work kind = weft__command_kind(&program->commands.list[i]);
        weft__command_work(&program->commands.list[i], &flops, &bytes);
        work.commands[kind]++;
        work.flops[kind] += flops;
        work.bytes[kind] += bytes;
    }
    return work;
}
