/* Launches of all commands of a program, in order, with operands as places in slots. Must not know: how they
 * are compiled and run. Read next: command.c, chain.c. */
#include "device/gpu/program.h"

static weft_status settle_argument(weft_gpu_program *p, const weft_command *command,
                                   const weft_gpu_wish *wish, weft_argument *a) {
    weft_context *ctx = p->launches.ctx;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_OPERAND:
        a->i = command->operands[a->index].offset + wish->guard;
        a->index = command->operands[a->index].slot;
        break;
    case WEFT_ARGUMENT_SCRATCH:
        a->i += wish->guard;
        a->index = p->scratch_slot;
        a->kind = WEFT_ARGUMENT_OPERAND;
        break;
    case WEFT_ARGUMENT_FAULT:
        a->i = weft__gpu_path_number(ctx, wish->paths, weft__gpu_path(command));
        if (a->i < 0) return weft__fail_oom(ctx, sizeof a->i, "the layers of a program");
        break;
    default: break;
    }
    return WEFT_OK;
}

static bool has_groups(const weft_launch *l) {
    return l->groups[0] > 0 && l->groups[1] > 0 && l->groups[2] > 0;
}

static weft_status add_command(weft_gpu_program *p, const weft_command *command, int number, size_t *capacity,
                               const weft_gpu_wish *wish) {
    weft_launches *launches = &p->launches;
    int kept = launches->count, l = kept;
    launches->scratch_bytes = 0;
    WEFT_TRY(weft__gpu_command(launches, command));
    p->scratch_bytes = weft__larger(p->scratch_bytes, launches->scratch_bytes);
    for (; l < launches->count; l++) {
        const weft_launch *launch = &launches->list[l];
        if (!has_groups(launch)) continue;
        if (!weft__grow(launches->ctx, &p->commands, capacity, (size_t)kept, sizeof *p->commands))
            return weft__fail_oom(launches->ctx, sizeof *p->commands, "a program");
        for (int a = 0; a < launch->n_arguments; a++)
            WEFT_TRY(settle_argument(p, command, wish, &launch->arguments[a]));
        launches->list[kept] = *launch;
        p->commands[kept++] = number;
    }
    launches->count = kept;
    return WEFT_OK;
}

weft_status weft__gpu_program(weft_gpu_program *p, const weft_commands *commands, const weft_gpu_wish *wish) {
    size_t capacity = 0;
    bool changes = false;
    p->scratch_slot = commands->n_slots;
    for (int i = 0; i < commands->count; i++) {
        WEFT_TRY(add_command(p, &commands->list[i], i, &capacity, wish));
        changes = changes || commands->list[i].sink;
    }
    return wish->chain && changes ? weft__gpu_chain(p) : WEFT_OK;
}

void weft__gpu_program_free(weft_gpu_program *p) {
    weft__free(p->launches.ctx, p->commands);
    weft__free(p->launches.ctx, p->launches.list);
    weft__free(p->launches.ctx, p->words);
}
