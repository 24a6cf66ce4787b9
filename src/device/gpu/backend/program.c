/* Turns all commands of a program into launches, in order. Each launch has its slots, and one struct with its
 * numbers.
 * Must not know: how launches are compiled and run. Read next: command.c, fused_launch.c. */
#include <string.h>

#include "device/gpu/backend/executable.h"

/* ---- the numbers of a launch ---- */

enum { NUMBERS_MOST = 1024 }; /* what OpenCL guarantees for all arguments together */

/* Bytes laid out like the members of a C struct. */
typedef struct packed {
    size_t length;
    union {
        char bytes[NUMBERS_MOST];
        int64_t aligned;
    } as;
} packed;

static bool pack(packed *to, const void *value, size_t bytes, size_t alignment) {
    const size_t at = (to->length + alignment - 1) / alignment * alignment;
    if (at + bytes > NUMBERS_MOST) return false;
    memcpy(to->as.bytes + at, value, bytes);
    to->length = at + bytes;
    return true;
}

/* Packs the number of an argument, if it has one. */
static bool pack_number(packed *to, const weft_argument *a) {
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_OPERAND:
        return pack(to, &(int64_t){a->i / (int64_t)weft_dtype_size((weft_dtype)a->dtype)}, 8, 8);
    case WEFT_ARGUMENT_FAULT:
    case WEFT_ARGUMENT_I32: return pack(to, &(int32_t){(int32_t)a->i}, 4, 4);
    case WEFT_ARGUMENT_I64: return pack(to, &a->i, 8, 8);
    case WEFT_ARGUMENT_F32: return pack(to, &(float){(float)a->f}, 4, 4);
    case WEFT_ARGUMENT_F64: return pack(to, &a->f, 8, 8);
    case WEFT_ARGUMENT_STRUCT: return pack(to, a->numbers, (size_t)a->i, 8);
    default: return true;
    }
}

/* ---- a launch of a program ---- */

/* Replaces operands and scratch memory by slots and byte offsets, and the path of a fault by its number. */
static weft_status settle_argument(weft_gpu_program *p, const weft_command *command,
                                   const weft_gpu_request *request, bool beside, weft_argument *a) {
    weft_context *ctx = p->launches.ctx;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_OPERAND:
        a->i += command->operands[a->index].offset + request->guard;
        a->index = command->operands[a->index].slot;
        break;
    case WEFT_ARGUMENT_SCRATCH:
        a->i += request->guard;
        a->index = p->scratch_slot + beside;
        a->kind = WEFT_ARGUMENT_OPERAND;
        break;
    case WEFT_ARGUMENT_FAULT:
        a->i = weft__gpu_path_number(ctx, request->paths, weft__gpu_path(command));
        if (a->i < 0) return weft__fail_oom(ctx, sizeof a->i, "the layers of a program");
        break;
    default: break;
    }
    return WEFT_OK;
}

static weft_status settle(weft_gpu_program *p, const weft_command *command, const weft_gpu_request *request,
                          weft_launch *launch) {
    packed numbers = {.length = 0};
    bool fits = true;
    int n = 0;
    for (int i = 0; i < launch->n_arguments; i++) {
        weft_argument *a = &launch->arguments[i];
        WEFT_TRY(settle_argument(p, command, request, launch->beside, a));
        fits = fits && pack_number(&numbers, a);
        if (a->kind == WEFT_ARGUMENT_OPERAND || a->kind == WEFT_ARGUMENT_FAULT) {
            a->kind = a->kind == WEFT_ARGUMENT_FAULT ? WEFT_ARGUMENT_FAULTS : WEFT_ARGUMENT_BUFFER;
            launch->arguments[n++] = *a;
        }
    }
    fits = fits && pack(&numbers, "", 0, 8);
    void *kept = weft__arena_alloc(p->launches.arena, numbers.length);
    weft_argument *arguments =
        weft__arena_alloc(p->launches.arena, (size_t)(n + 1) * sizeof *launch->arguments);
    if (!fits) return weft__fail(p->launches.ctx, WEFT_ERR_INTERNAL, "%s: too many parameters", launch->name);
    if (!kept || !arguments) return weft__fail_oom(p->launches.ctx, numbers.length, "a launch");
    memcpy(arguments, launch->arguments, (size_t)n * sizeof *arguments);
    arguments[n] = (weft_argument){.kind = WEFT_ARGUMENT_NUMBERS,
                                   .i = (int64_t)numbers.length,
                                   .numbers = memcpy(kept, numbers.as.bytes, numbers.length)};
    launch->arguments = arguments;
    launch->n_arguments = n + 1;
    return WEFT_OK;
}

/* Does the same for a call of a library: its arguments are the addresses of operands and scratch memory, in
 * order. */
static weft_status settle_call(weft_gpu_program *p, const weft_command *command,
                               const weft_gpu_request *request, weft_launch *launch) {
    for (int i = 0; i < launch->n_arguments; i++) {
        WEFT_TRY(settle_argument(p, command, request, launch->beside, &launch->arguments[i]));
        launch->arguments[i].kind = WEFT_ARGUMENT_BUFFER;
    }
    return WEFT_OK;
}

/* May a library compute the command? Those that must be skipped after a fault always use Weft's kernels,
 * since only these check the fault record. An exchange is never skipped: the other processes take part in it.
 */
static bool may_offer(const weft_command *command) {
    return !command->sink || command->kind == WEFT_COMMAND_WAIT ||
           (command->kind == WEFT_COMMAND_HEAVY && command->heavy.kind == WEFT_HEAVY_EXCHANGE);
}

/* Adds the launch of a library if the device has one for the command, otherwise launches of templates. */
static weft_status launch_command(weft_gpu_program *p, const weft_commands *commands, int number, int *taken,
                                  const weft_gpu_request *request) {
    const weft_command *command = &commands->list[number];
    const int before = p->launches.count;
    if (request->device && request->device->backend->offer && may_offer(command)) {
        WEFT_TRY(request->device->backend->offer(request->device, &p->launches, command));
        *taken = 1;
        if (p->launches.count > before) return WEFT_OK;
    }
    if (request->outline && request->outline->offer && may_offer(command)) {
        WEFT_TRY(request->outline->offer(request->outline, &p->launches, command));
        *taken = 1;
        if (p->launches.count > before) return WEFT_OK;
    }
    return weft__gpu_command(&p->launches, command, commands->count - number, taken);
}

static bool has_groups(const weft_launch *l) {
    return l->groups[0] > 0 && l->groups[1] > 0 && l->groups[2] > 0;
}

/* Buffers begin at multiples of at least 16 bytes, on all devices. */
static weft_status find_aligned(weft_launches *launches, const weft_command *command, int64_t guard) {
    enum { MOST = 16 };
    const size_t n = (size_t)command->n_operands;
    uint8_t *aligned = weft__arena_alloc(launches->arena, n);
    if (!aligned) return weft__fail_oom(launches->ctx, n, "a program");
    for (size_t i = 0; i < n; i++) {
        aligned[i] = MOST;
        while ((command->operands[i].offset + guard) % aligned[i]) aligned[i] /= 2;
    }
    launches->aligned = aligned;
    return WEFT_OK;
}

static weft_status add_command(weft_gpu_program *p, const weft_commands *commands, int number, int *taken,
                               size_t *capacity, const weft_gpu_request *request) {
    const weft_command *command = &commands->list[number];
    weft_launches *launches = &p->launches;
    int kept = launches->count, l = kept;
    launches->scratch_bytes = launches->beside_bytes = 0;
    WEFT_TRY(find_aligned(launches, command, request->guard));
    WEFT_TRY(launch_command(p, commands, number, taken, request));
    p->scratch_bytes[0] = weft__larger(p->scratch_bytes[0], launches->scratch_bytes);
    p->scratch_bytes[1] = weft__larger(p->scratch_bytes[1], launches->beside_bytes);
    for (; l < launches->count; l++) {
        weft_launch *launch = &launches->list[l];
        if (!has_groups(launch)) continue;
        if (!weft__grow(launches->ctx, &p->commands, capacity, (size_t)kept, sizeof *p->commands))
            return weft__fail_oom(launches->ctx, sizeof *p->commands, "a program");
        WEFT_TRY(launch->call ? settle_call(p, command, request, launch)
                              : settle(p, command, request, launch));
        launches->list[kept] = *launch;
        p->commands[kept++] = number;
    }
    launches->count = kept;
    return WEFT_OK;
}

weft_status weft__gpu_program(weft_gpu_program *p, const weft_commands *commands,
                              const weft_gpu_request *request) {
    size_t capacity = 0;
    bool changes = false;
    p->scratch_slot = commands->n_slots;
    for (int i = 0, taken; i < commands->count; i += taken) {
        WEFT_TRY(add_command(p, commands, i, &taken, &capacity, request));
        changes = changes || commands->list[i].sink;
    }
    return request->fused && changes ? weft__gpu_fuse_launches(p, commands, request->guard) : WEFT_OK;
}

void weft__gpu_program_free(weft_gpu_program *p) {
    weft__free(p->launches.ctx, p->commands);
    weft__free(p->launches.ctx, p->launches.list);
    weft__free(p->launches.ctx, p->parameters);
}
