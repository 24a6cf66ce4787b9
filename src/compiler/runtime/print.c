/* Prints a graph and its program as text, for WEFT_DEBUG and the tests of plans. Must not know: devices. Read
 * next: program.h, kernel/print.c. */
#include <stdio.h>
#include "base/text.h"
#include "compiler/program.h"
#include "ops/ops.h"

void weft__node_say(const weft_tensor *t) {
    char line[512], type[WEFT_SHAPE_TEXT];
    weft_text out = weft__text(line, sizeof line);
    const bool composite = t->op == WEFT_OP_COMPOSITE;
    weft__put(&out, "node %4llu %s %s", (unsigned long long)t->serial,
              composite ? weft__composite_of(t)->name : weft__op_name(t->op), weft__tensor_text(t, type));
    if (t->op == WEFT_OP_CONST) {
        const weft_attr_const *value = t->attr;
        if (weft_dtype_is_float((weft_dtype)t->dtype))
            weft__put(&out, " %.9g", value->f);
        else
            weft__put(&out, " %lld", (long long)value->i);
    }
    for (int i = 0; i < (t->leaf ? 0 : t->n_in); i++)
        weft__put(&out, "%s%llu", i ? ", " : "  (", (unsigned long long)t->in[i]->serial);
    weft__put(&out, "%s", t->n_in && !t->leaf ? ")" : "");
    if (t->name) weft__put(&out, " '%s'", t->name);
    if (t->path && *t->path) weft__put(&out, "  # %s", t->path);
    weft__log(t->ctx, WEFT_LOG_DEBUG, "%s", line);
}

const weft_kernel *weft__command_kernel(const weft_command *command) {
    return command->kind == WEFT_COMMAND_HEAVY ? weft__heavy_epilogue(&command->heavy) : command->kernel;
}

const char *weft__command_text(const weft_command *command, char name[WEFT_COMMAND_TEXT], const char **path) {
    *path = "";
    switch (command->kind) {
    case WEFT_COMMAND_KERNEL:
        if (command->kernel->path) *path = command->kernel->path;
        snprintf(name, WEFT_COMMAND_TEXT, "%s", command->kernel->name);
        break;
    case WEFT_COMMAND_HEAVY:
        if (command->heavy.path) *path = command->heavy.path;
        weft__heavy_class(&command->heavy)->describe(&command->heavy, name, WEFT_COMMAND_TEXT);
        break;
    case WEFT_COMMAND_COPY: snprintf(name, WEFT_COMMAND_TEXT, "copy to variable"); break;
    case WEFT_COMMAND_ZERO: snprintf(name, WEFT_COMMAND_TEXT, "zero"); break;
    case WEFT_COMMAND_WAIT:
        snprintf(name, WEFT_COMMAND_TEXT, "wait for exchange %d", command->heavy.as.exchange.number + 1);
        break;
    }
    return name;
}

static void say_command(weft_text *t, const weft_command *command, int i) {
    char name[WEFT_COMMAND_TEXT];
    const char *path, *what = weft__command_text(command, name, &path);
    weft__put(t, "%s%4d %s%s", command->after ? "--\n" : "", i, what, command->sink ? " (in place)" : "");
    for (int k = 0; k < command->n_operands; k++)
        weft__put(t, "%s%d:%lld", k ? ", " : "  (", command->operands[k].slot,
                  (long long)command->operands[k].offset);
    weft__put(t, "%s%s%s\n", command->n_operands ? ")" : "", *path ? "  # " : "", path);
}

size_t weft__program_print(const weft_program *program, int what, char *buffer, size_t size) {
    weft_text t = weft__text(buffer, size);
    weft__put(
        &t,
        "program: %zu nodes, %d commands, %zu kernels, %zu copies, arena %lld bytes, %d leaves, %zu outputs, "
        "%zu assignments\n",
        program->n_nodes, program->commands.count, program->n_kernels, program->n_copies,
        (long long)program->arena_bytes, program->leaves.count, program->outputs.count, program->n_sinks);
    for (int i = 0; (what & DEBUG_PLAN) && i < program->commands.count; i++)
        say_command(&t, &program->commands.list[i], i);
    for (int i = 0; (what & DEBUG_KERNELS) && i < program->commands.count; i++) {
        const weft_kernel *kernel = weft__command_kernel(&program->commands.list[i]);
        size_t room = t.length < t.size ? t.size - t.length : 0;
        if (kernel) t.length += weft__kernel_print(kernel, room ? buffer + t.length : NULL, room);
    }
    return t.length;
}
