/* COPY and ZERO as launches of move.cl: in words of 8 bytes where places and size allow it, else byte by
 * byte. Read next: move.cl. */
#include "device/gpu/gpu.h"
#include "device/gpu/text.h"

enum { BYTES_OF_GROUP = 1 << 14 }; /* below it a group costs more than it moves */

static weft_status move(weft_launches *launches, const weft_command *command, const char *wide,
                        const char *narrow) {
    const weft_target *target = launches->target;
    const int items = weft__target_items(target);
    int64_t together = command->bytes, groups = command->bytes / BYTES_OF_GROUP + 1;
    weft_argument arguments[6];
    int n = 0;
    for (int i = 0; i < command->n_operands; i++) together |= command->operands[i].offset;
    const bool words = together % 8 == 0;
    for (int i = 0; i < command->n_operands; i++)
        arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                         .dtype = words ? WEFT_U64 : WEFT_U8,
                                         .written = i + 1 == command->n_operands,
                                         .index = i};
    arguments[n++] =
        (weft_argument){.kind = WEFT_ARGUMENT_I64, .i = words ? command->bytes / 8 : command->bytes};
    arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_I32, .i = items};
    arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_I32, .i = command->sink};
    arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_FAULT};
    if (groups > 8 * (int64_t)target->units) groups = 8 * (int64_t)target->units;
    return weft__launch(launches, &(weft_launch){.name = words ? wide : narrow,
                                                 .text = weft__text_move,
                                                 .n_arguments = n,
                                                 .arguments = arguments,
                                                 .groups = {groups, 1, 1},
                                                 .items = {items, 1, 1}});
}

weft_status weft__gpu_copy(weft_launches *launches, const weft_command *command) {
    return move(launches, command, "copy_w_u64", "copy_w_u8");
}

weft_status weft__gpu_zero(weft_launches *launches, const weft_command *command) {
    return move(launches, command, "zero_w_u64", "zero_w_u8");
}
