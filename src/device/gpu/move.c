/* COPY and ZERO as launches of move.cl: in words of 8 bytes where places and size allow it, else byte by
 * byte. Read next: move.cl. */
#include "device/gpu/gpu.h"
#include "device/gpu/template.h"
#include "device/gpu/text.h"

enum { BYTES_OF_GROUP = 1 << 14 }; /* below it a group costs more than it moves */

static weft_status move(weft_launches *launches, const weft_command *command, const char *name) {
    const int items = weft__target_items(launches->target);
    const int64_t groups = weft__smaller(command->bytes / BYTES_OF_GROUP + 1, 8 * launches->target->units);
    int64_t together = command->bytes;
    weft_argument arguments[5];
    int n = 0;
    for (int i = 0; i < command->n_operands; i++) together |= command->operands[i].offset;
    const bool words = together % 8 == 0;
    const weft_dtype dtype = words ? WEFT_U64 : WEFT_U8;
    const char *text = weft__gpu_text(launches, dtype, "", weft__text_move);
    if (!text) return weft__fail_oom(launches->ctx, 0, "the text of a copy");
    for (int i = 0; i < command->n_operands; i++)
        arguments[n++] = (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                         .dtype = (uint8_t)dtype,
                                         .written = i + 1 == command->n_operands,
                                         .index = i};
    arguments[n++] = (weft_argument)I64(words ? command->bytes / 8 : command->bytes);
    arguments[n++] = (weft_argument)I32(command->sink);
    arguments[n++] = (weft_argument)FAULT;
    return weft__launch(launches, &(weft_launch){.name = name,
                                                 .text = text,
                                                 .links = true,
                                                 .n_arguments = n,
                                                 .arguments = arguments,
                                                 .groups = {groups, 1, 1},
                                                 .items = {items, 1, 1}});
}

weft_status weft__gpu_copy(weft_launches *launches, const weft_command *command) {
    return move(launches, command, "copy");
}

weft_status weft__gpu_zero(weft_launches *launches, const weft_command *command) {
    return move(launches, command, "zero");
}
