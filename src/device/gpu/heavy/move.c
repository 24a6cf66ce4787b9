/* COPY and ZERO as launches of move.cl. They move words of 8 or 4 bytes if offsets and size allow it,
 * otherwise bytes. Must not know: how launches run. Read next: move.cl. */
#include "device/gpu/gpu.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"
#include "device/gpu/heavy/move_params.h"

enum {
    BYTES_OF_GROUP = 1 << 14, /* for less, a work-group costs more than it moves */
    STRETCH_BYTES = 1024      /* of a block of zeros that shares a launch, at most */
};

_Static_assert(sizeof(w_copy) == 8 + 2 * 4 && sizeof(w_stretches) == STRETCHES * 16 + 2 * 4, "no padding");

/* Returns the type of the words that are moved. `places`: all offsets and sizes, joined by or. */
static weft_dtype word_of(int64_t places) {
    return places % 8 == 0 ? WEFT_U64 : places % 4 == 0 ? WEFT_U32 : WEFT_U8;
}

/* Adds a launch that moves `bytes` bytes in words. */
static weft_status move(weft_launches *launches, const char *name, int64_t bytes, weft_dtype word,
                        weft_argument *arguments, int n) {
    const int items = launches->target->lanes;
    const int64_t groups = weft__smaller(bytes / BYTES_OF_GROUP + 1, 8 * launches->target->units);
    const char *source = weft__gpu_template_source(launches, word, "", weft__source_move);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a copy");
    return weft__launch(launches, &(weft_launch){.name = name,
                                                 .source = source,
                                                 .may_fuse = true,
                                                 .n_arguments = n,
                                                 .arguments = arguments,
                                                 .groups = {groups, 1, 1},
                                                 .items = {items, 1, 1}});
}

weft_status weft__gpu_copy(weft_launches *launches, const weft_command *command) {
    const int64_t bytes = command->bytes;
    const weft_dtype word = word_of(bytes | command->operands[0].offset | command->operands[1].offset);
    const w_copy of = {.count = bytes / (int64_t)weft_dtype_size(word), .sink = command->sink};
    weft_argument arguments[] = {READS(0, word), WRITES(1, word), STRUCT(of), FAULT};
    return move(launches, "copy", bytes, word, arguments, 4);
}

/* Returns whether one launch can do both commands. */
static bool go_together(const weft_command *a, const weft_command *b) {
    return b->kind == WEFT_COMMAND_ZERO && weft__larger(a->bytes, b->bytes) <= STRETCH_BYTES &&
           a->sink == b->sink && a->operands->slot == b->operands->slot;
}

weft_status weft__gpu_zero(weft_launches *launches, const weft_command *commands, int count, int *taken) {
    w_stretches to = {.sink = commands->sink};
    int64_t together = 0;
    int n = 1;
    while (n < count && n < STRETCHES && go_together(commands, &commands[n])) n++;
    for (int i = 0; i < n; i++) together |= commands[i].bytes | commands[i].operands->offset;
    const weft_dtype word = word_of(together);
    const int64_t size = (int64_t)weft_dtype_size(word);
    for (int i = 0; i < n; i++) {
        to.at[i] = (commands[i].operands->offset - commands->operands->offset) / size;
        to.count[i] = commands[i].bytes / size;
    }
    to.n = n;
    weft_argument arguments[] = {WRITES(0, word), STRUCT(to), FAULT};
    *taken = n;
    return move(launches, "zero", commands->bytes, word, arguments, 3);
}
