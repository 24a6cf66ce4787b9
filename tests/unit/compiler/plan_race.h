/* Checks a plan: commands between two barriers may run at the same time, so no command may touch memory that
 * another one writes. */
#ifndef WEFT_TESTS_PLAN_RACE_H
#define WEFT_TESTS_PLAN_RACE_H

#include <stdlib.h>
#include "compiler/program.h"

typedef struct span {
    int slot, command;
    int64_t begin, end;
    bool written;
} span;

/* Does some operand have no elements? Its address then means nothing. */
static inline bool heavy_is_empty(const weft_heavy *heavy) {
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    const weft_heavy_scatter *sc = &heavy->as.scatter;
    const weft_heavy_update *up = &heavy->as.update;
    const weft_heavy_attention *at = &heavy->as.attention;
    const weft_heavy_conv *cv = &heavy->as.conv;
    int64_t batch = 1;
    switch (heavy->kind) {
    case WEFT_HEAVY_SCATTER: return sc->outer * sc->count * sc->rows * sc->inner == 0;
    case WEFT_HEAVY_UPDATE: return up->outer * up->extent * up->total * up->inner == 0;
    case WEFT_HEAVY_ATTENTION: return at->batch * at->heads * at->t_q * at->t_k * at->d == 0;
    case WEFT_HEAVY_CONV: return cv->n * cv->groups * cv->in * cv->out * cv->y[0] * cv->y[1] == 0;
    default: break;
    }
    for (int i = 0; i < mm->batch_rank; i++) batch *= mm->batch[i];
    return batch * mm->m * mm->n * mm->k == 0;
}

/* The memory that command i reads and writes. For operands that a heavy operation reads, only the first
 * byte. */
static inline int plan_spans(const weft_program *program, int i, span *out) {
    const weft_command *c = &program->commands.list[i];
    const weft_kernel *kernel = weft__command_kernel(c);
    const int first = kernel ? c->n_operands - kernel->n_args : 0;
    for (int k = 0; k < c->n_operands; k++) {
        int64_t bytes = c->kind != WEFT_COMMAND_HEAVY ? c->bytes : !heavy_is_empty(&c->heavy);
        bool written = k == c->n_operands - 1;
        if (kernel && k >= first) {
            const weft_kernel_arg *arg = &kernel->args[k - first];
            const bool nowhere = !c->kernel && k - first == c->heavy.as.matmul.product && !arg->written;
            bytes = nowhere ? 0 : arg->elements * (int64_t)weft_dtype_size((weft_dtype)arg->dtype);
            written = arg->written;
        } else if (kernel) { /* an epilogue: what its matmul reads */
            written = false;
        } else if (c->kind == WEFT_COMMAND_HEAVY && c->heavy.kind == WEFT_HEAVY_MATMUL && written && bytes) {
            bytes = c->heavy.as.matmul.m * c->heavy.as.matmul.n *
                    (int64_t)weft_dtype_size((weft_dtype)c->heavy.as.matmul.out_dtype);
        }
        out[k] =
            (span){c->operands[k].slot, i, c->operands[k].offset, c->operands[k].offset + bytes, written};
    }
    return c->n_operands;
}

/* Returns true if a barrier is missing, with two commands that conflict. */
static inline bool plan_race(const weft_program *program, int *first, int *second) {
    size_t most = 1;
    bool found = false;
    for (int i = 0; i < program->commands.count; i++) most += (size_t)program->commands.list[i].n_operands;
    span *all = calloc(most, sizeof *all);
    int n = 0;
    for (int i = 0; i < program->commands.count && !found; i++) {
        if (program->commands.list[i].after) n = 0;
        int added = plan_spans(program, i, all + n);
        for (int k = 0; k < n * added && !found; k++) {
            const span *x = &all[n + k % added], *y = &all[k / added];
            found =
                x->slot == y->slot && x->begin < y->end && y->begin < x->end && (x->written || y->written);
            *first = y->command;
            *second = x->command;
        }
        n += added;
    }
    free(all);
    return found;
}

#endif
