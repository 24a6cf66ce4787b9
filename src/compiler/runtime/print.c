/* The printed form of a program: what WEFT_DEBUG shows and plan tests read. */
#include <stdio.h>
#include "base/text.h"
#include "compiler/program.h"

static void recurrent_text(const weft_heavy *heavy, char *out, size_t size) {
    static const char *const names[] = {
        [WEFT_RNN_TANH] = "rnn", [WEFT_RNN_RELU] = "rnn relu", [WEFT_LSTM] = "lstm", [WEFT_GRU] = "gru"};
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    snprintf(out, size, "%s%s%s%s %lldx%lldx%lld", names[r->kind], r->backward ? ".grad" : "",
             r->reverse ? " reverse" : "", r->masked ? " masked" : "", (long long)r->t, (long long)r->batch,
             (long long)r->width);
}

static void heavy_text(const weft_heavy *heavy, char *out, size_t size) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: {
        const weft_heavy_matmul *mm = &heavy->as.matmul;
        int64_t batch = 1;
        for (int i = 0; i < mm->batch_rank; i++) batch *= mm->batch[i];
        snprintf(out, size, "matmul %s %lldx %lldx%lldx%lld %c%c%s%s%s%s",
                 weft_dtype_name((weft_dtype)mm->dtype), (long long)batch, (long long)mm->m, (long long)mm->n,
                 (long long)mm->k, mm->a_k == 1 ? 'n' : 't', mm->b_n == 1 ? 'n' : 't',
                 ((const char *[]){"", " conj a", " conj b", " conj a b"})[mm->conj & 3],
                 mm->sums ? " + sums" : "", mm->epilogue ? " " : "", mm->epilogue ? mm->epilogue->name : "");
        break;
    }
    case WEFT_HEAVY_SCATTER:
        snprintf(out, size, "scatter_add%s %lld into %lldx%lld",
                 heavy->as.scatter.in_place ? " in place"
                 : heavy->as.scatter.based  ? " to base"
                                            : "",
                 (long long)heavy->as.scatter.count, (long long)heavy->as.scatter.rows,
                 (long long)heavy->as.scatter.inner);
        break;
    case WEFT_HEAVY_ATTENTION:
        snprintf(out, size, "attention%s%s %lldx%lldx%lldx%lld", heavy->as.attention.masked ? ".masked" : "",
                 heavy->as.attention.backward ? ".grad"
                 : heavy->as.attention.cached ? ".cached"
                                              : "",
                 (long long)heavy->as.attention.batch, (long long)heavy->as.attention.heads,
                 (long long)heavy->as.attention.t_q, (long long)heavy->as.attention.d);
        break;
    case WEFT_HEAVY_CONV: {
        static const char *const pass[] = {"", ".input", ".weight"};
        const weft_heavy_conv *c = &heavy->as.conv;
        snprintf(out, size, "conv%s %s %lldx%lldx%lldx%lld to %lldx%lldx%lld by %lldx%lld", pass[c->pass],
                 weft_dtype_name((weft_dtype)c->dtype), (long long)c->n, (long long)(c->groups * c->in),
                 (long long)c->x[0], (long long)c->x[1], (long long)(c->groups * c->out), (long long)c->y[0],
                 (long long)c->y[1], (long long)c->size[0], (long long)c->size[1]);
        break;
    }
    case WEFT_HEAVY_RECURRENT: recurrent_text(heavy, out, size); break;
    case WEFT_HEAVY_SOURCE:
        snprintf(out, size, "source %s %lld", heavy->as.source.name, (long long)heavy->as.source.n);
        break;
    case WEFT_HEAVY_SCAN:
        snprintf(out, size, "scan of %s%s %lldx%lldx%lld", heavy->as.scan.product ? "products" : "sums",
                 heavy->as.scan.reverse ? " from the end" : "", (long long)heavy->as.scan.outer,
                 (long long)heavy->as.scan.extent, (long long)heavy->as.scan.inner);
        break;
    case WEFT_HEAVY_ORDER:
        snprintf(out, size, "order %s %lldx%lld to %lld", weft_dtype_name((weft_dtype)heavy->as.order.dtype),
                 (long long)heavy->as.order.rows, (long long)heavy->as.order.extent,
                 (long long)heavy->as.order.count);
        break;
    default:
        snprintf(out, size, "update%s %lldx%lldx%lld", heavy->as.update.in_place ? " in place" : "",
                 (long long)heavy->as.update.outer, (long long)heavy->as.update.extent,
                 (long long)heavy->as.update.inner);
        break;
    }
}

const weft_kernel *weft__command_kernel(const weft_command *command) {
    const bool product = command->kind == WEFT_COMMAND_HEAVY && command->heavy.kind == WEFT_HEAVY_MATMUL;
    return product ? command->heavy.as.matmul.epilogue : command->kernel;
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
        heavy_text(&command->heavy, name, WEFT_COMMAND_TEXT);
        break;
    case WEFT_COMMAND_COPY: snprintf(name, WEFT_COMMAND_TEXT, "copy to variable"); break;
    case WEFT_COMMAND_ZERO: snprintf(name, WEFT_COMMAND_TEXT, "zero"); break;
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
        (long long)program->arena_bytes, program->n_leaves, program->n_outputs, program->n_sinks);
    for (int i = 0; (what & (DEBUG_PLAN | DEBUG_GRAPH)) && i < program->commands.count; i++)
        say_command(&t, &program->commands.list[i], i);
    for (int i = 0; (what & DEBUG_KERNELS) && i < program->commands.count; i++) {
        const weft_kernel *kernel = weft__command_kernel(&program->commands.list[i]);
        size_t room = t.length < t.size ? t.size - t.length : 0;
        if (kernel) t.length += weft__kernel_print(kernel, room ? buffer + t.length : NULL, room);
    }
    return t.length;
}
