/* The largest results of a program's arena, by the layer that makes them: what there is to say when the
 * device has no room for it. Must not know: devices. Read next: program.c. */
#include "base/text.h"
#include "compiler/program.h"

enum { LARGEST = 3 };

typedef struct result {
    int64_t bytes, offset;
    const weft_command *command;
} result;

/* The first operand that a heavy operation writes: the last of them, but attention writes several. */
static int heavy_written(const weft_command *c) {
    if (c->heavy.kind == WEFT_HEAVY_ATTENTION) return c->heavy.as.attention.backward ? 7 : 4;
    return c->n_operands - 1;
}

/* Elements of that operand. */
static int64_t heavy_elements(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: {
        int64_t n = heavy->as.matmul.m * heavy->as.matmul.n;
        for (int i = 0; i < heavy->as.matmul.batch_rank; i++) n *= heavy->as.matmul.batch[i];
        return n;
    }
    case WEFT_HEAVY_SCATTER:
        return heavy->as.scatter.outer * heavy->as.scatter.rows * heavy->as.scatter.inner;
    case WEFT_HEAVY_ATTENTION:
        return heavy->as.attention.batch * heavy->as.attention.heads * heavy->as.attention.t_q *
               heavy->as.attention.d;
    default: return heavy->as.update.outer * heavy->as.update.total * heavy->as.update.inner;
    }
}

static uint8_t heavy_dtype(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return heavy->as.matmul.out_dtype;
    case WEFT_HEAVY_SCATTER: return heavy->as.scatter.dtype;
    case WEFT_HEAVY_ATTENTION: return heavy->as.attention.dtype;
    default: return heavy->as.update.dtype;
    }
}

static void offer(result largest[LARGEST], result r) {
    for (int i = 0; i < LARGEST; i++) {
        if (largest[i].bytes >= r.bytes) continue;
        const result smaller = largest[i];
        largest[i] = r;
        r = smaller;
    }
}

static void offer_command(result largest[LARGEST], const weft_command *c) {
    if (c->kind == WEFT_COMMAND_HEAVY) {
        const weft_operand *to = &c->operands[heavy_written(c)];
        const int64_t bytes =
            heavy_elements(&c->heavy) * (int64_t)weft_dtype_size((weft_dtype)heavy_dtype(&c->heavy));
        if (to->slot == SLOT_ARENA) offer(largest, (result){bytes, to->offset, c});
    }
    for (int k = 0; c->kind == WEFT_COMMAND_KERNEL && k < c->n_operands; k++)
        if (c->kernel->args[k].written && !c->kernel->args[k].read && c->operands[k].slot == SLOT_ARENA)
            offer(largest, (result){c->kernel->args[k].elements *
                                        (int64_t)weft_dtype_size((weft_dtype)c->kernel->args[k].dtype),
                                    c->operands[k].offset, c});
}

const char *weft__program_largest(const weft_program *program, char *text, size_t size) {
    result largest[LARGEST] = {{0}};
    weft_text t = weft__text(text, size);
    for (int i = 0; i < program->commands.count; i++) offer_command(largest, &program->commands.list[i]);
    for (int i = 0; i < LARGEST && largest[i].bytes; i++) {
        char name[WEFT_COMMAND_TEXT];
        const char *path;
        weft__command_text(largest[i].command, name, &path);
        weft__put(&t, "%s%.1f MiB of %s%s%s", i ? ", " : "", (double)largest[i].bytes / 0x1p20,
                  *path ? path : name, *path ? ": " : "", *path ? name : "");
    }
    return text;
}
