/* What a command must at least compute and move: a side of the bound that a profile shows. Must not know:
 * runs. Read next: peaks.c, the other side. */
#include <math.h>
#include <string.h>

#include "compiler/profile/profile.h"

/* ---- kernels ---- */

/* Elements of a buffer that an access over the index space touches: dimensions of stride 0 read one again. */
static double touched(const weft_view *view, double most) {
    double n = 1;
    for (int d = 0; d < view->map[0].rank; d++)
        if (view->map[0].stride[d] != 0) n *= (double)view->map[0].extent[d];
    return n < most ? n : most;
}

/* How often a value of the level exists. */
static double at_level(const weft_kernel *kernel, int level) {
    double n = (double)weft__kernel_rows(kernel);
    if (weft__level_folded(level)) n /= (double)weft__kernel_block_rows(kernel);
    return weft__level_inner(level) ? n * (double)weft__kernel_row_length(kernel) : n;
}

/* One operation for each value calculated or reduced; each argument is read and written once. */
static void kernel_work(const weft_kernel *kernel, double *flops, double *bytes) {
    for (int a = 0; a < kernel->n_args; a++) {
        const weft_kernel_arg *arg = &kernel->args[a];
        double most = (double)arg->elements, read = 0, written = 0;
        for (int i = 0; i < kernel->n_code; i++) {
            const weft_instr *instr = &kernel->code[i];
            if (instr->arg != a || instr->view < 0) continue;
            double level = at_level(kernel, instr->level);
            double n = instr->kind == WEFT_INSTR_GATHER ? level : touched(&kernel->views[instr->view], level);
            *(instr->kind == WEFT_INSTR_STORE ? &written : &read) += n;
        }
        *bytes += ((read < most ? read : most) + (written < most ? written : most)) *
                  (double)weft_dtype_size((weft_dtype)arg->dtype);
    }
    for (int i = 0; i < kernel->n_code; i++) {
        const weft_instr *instr = &kernel->code[i];
        if (instr->kind == WEFT_INSTR_CALC) *flops += at_level(kernel, instr->level);
        if (instr->kind == WEFT_INSTR_REDUCE || instr->kind == WEFT_INSTR_FOLD)
            *flops += at_level(kernel, kernel->code[instr->a].level);
    }
}

/* ---- heavy operations ---- */

static void matmul_work(const weft_heavy_matmul *mm, double *flops, double *bytes) {
    double size = (double)weft_dtype_size((weft_dtype)mm->dtype), a = 1, b = 1, c = 1;
    for (int i = 0; i < mm->batch_rank; i++) { /* an operand that is broadcast is read once */
        double n = (double)mm->batch[i];
        c *= n;
        if (mm->a_batch[i] != 0) a *= n;
        if (mm->b_batch[i] != 0) b *= n;
    }
    double m = (double)mm->m, n = (double)mm->n, k = (double)mm->k;
    *flops = (weft_dtype_is_complex((weft_dtype)mm->dtype) ? 8 : 2) * c * m * n * k;
    *bytes = size * (a * m * k + b * k * n);
    size = (double)weft_dtype_size((weft_dtype)mm->out_dtype);
    if (mm->sums) {
        *flops += m * k;
        *bytes += 4 * m;
    }
    if (mm->epilogue) kernel_work(mm->epilogue, flops, bytes);
    *bytes += (mm->epilogue ? -1 : 1) * c * m * n * size; /* that the epilogue reads is in no memory */
}

/* Two products of each query with each key that it sees, and five in the backward pass. Of a cache the host
 * does not know how full it is: half. */
static void attention_work(const weft_heavy_attention *at, double *flops, double *bytes) {
    double heads = (double)at->batch * (double)at->heads, q = (double)at->t_q;
    double k = at->cached ? ceil((double)at->t_k / 2) : (double)at->t_k;
    double seen = !at->causal ? q * k : q <= k ? q * (k - q) + q * (q + 1) / 2 : k * (k + 1) / 2;
    double own = k / (double)weft__sharing(at); /* of the keys a head's share */
    double d = (double)at->d, rows = at->backward ? 4 * q + 2 * (k + own) : 2 * (q + own);
    *flops = heads * seen * d * 2 * (at->backward ? 5 : 2);
    *bytes = heads * rows * d * (double)weft_dtype_size((weft_dtype)at->dtype);
    if (!at->masked) return;
    const int64_t extent[4] = {at->batch, at->heads, at->t_q, at->t_k};
    double mask = (double)weft_dtype_size((weft_dtype)at->mask_dtype);
    for (int i = 0; i < 4; i++) mask *= at->mask[i] ? (double)extent[i] : 1;
    *bytes += mask;
}

/* Every product of a tap and an element in its window, those with what is outside the image as well. */
static void conv_work(const weft_heavy_conv *c, double *flops, double *bytes) {
    const double n = (double)c->n, g = (double)c->groups, in = (double)c->in, out = (double)c->out;
    const double taps = (double)c->size[0] * (double)c->size[1], y = (double)c->y[0] * (double)c->y[1];
    const double x = (double)c->x[0] * (double)c->x[1];
    *flops = 2 * n * y * taps * g * in * out;
    *bytes =
        (n * g * (x * in + y * out) + g * taps * in * out) * (double)weft_dtype_size((weft_dtype)c->dtype);
}

/* One product a step of time, and all tensors once; the weights stay in a cache. */
static void recurrent_work(const weft_heavy_recurrent *r, double *flops, double *bytes) {
    const double gates = r->kind == WEFT_LSTM ? 4 : r->kind == WEFT_GRU ? 3 : 1, width = (double)r->width;
    const double rows = (double)r->t * (double)r->batch, size = (double)weft_dtype_size((weft_dtype)r->dtype);
    const double others = r->kind == WEFT_LSTM ? 6 : r->kind == WEFT_GRU ? 5 : 1;
    *flops = rows * 2 * gates * width * width;
    *bytes = size * (rows * width * (gates + others) + gates * width * width);
}

static void heavy_work(const weft_heavy *heavy, double *flops, double *bytes) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: matmul_work(&heavy->as.matmul, flops, bytes); break;
    case WEFT_HEAVY_ATTENTION: attention_work(&heavy->as.attention, flops, bytes); break;
    case WEFT_HEAVY_CONV: conv_work(&heavy->as.conv, flops, bytes); break;
    case WEFT_HEAVY_SCATTER: {
        const weft_heavy_scatter *s = &heavy->as.scatter;
        double size = (double)weft_dtype_size((weft_dtype)s->dtype),
               inner = (double)s->outer * (double)s->inner;
        *flops = (double)s->count * inner;
        const bool touched_only = s->in_place || weft__scatter_is_direct(s);
        double swept = touched_only ? 0 : s->based ? 2 : 1; /* all rows: copied, or set to zero */
        const double touched_rows = (double)(s->count < s->rows ? s->count : s->rows);
        *bytes = size * inner * ((double)s->count + 2 * touched_rows + swept * (double)s->rows) +
                 (double)s->count * (double)weft_dtype_size((weft_dtype)s->index_dtype);
        break;
    }
    case WEFT_HEAVY_SCAN: {
        const weft_heavy_scan *s = &heavy->as.scan;
        *flops = (double)s->outer * (double)s->extent * (double)s->inner;
        *bytes = 2 * *flops * (double)weft_dtype_size((weft_dtype)s->dtype);
        break;
    }
    case WEFT_HEAVY_ORDER: { /* a pass over keys and places for each doubling of what is in order */
        const weft_heavy_order *o = &heavy->as.order;
        const double all = (double)o->rows * (double)o->extent, levels = log2(fmax(2, (double)o->count));
        *flops = all * levels;
        *bytes = all * (double)weft_dtype_size((weft_dtype)o->dtype) +
                 levels * 2 * all * (4 + (double)weft_dtype_size((weft_dtype)o->dtype));
        break;
    }
    case WEFT_HEAVY_UPDATE: {
        const weft_heavy_update *u = &heavy->as.update;
        double size = (double)weft_dtype_size((weft_dtype)u->dtype),
               inner = (double)u->outer * (double)u->inner;
        *bytes = 2 * size * inner * (double)(u->in_place ? u->extent : u->total);
        break;
    }
    case WEFT_HEAVY_SOURCE: {
        const weft_heavy_source *s = &heavy->as.source;
        *bytes = (double)s->n * (double)(s->arity + 1) * (double)weft_dtype_size((weft_dtype)s->dtype);
        break;
    }
    case WEFT_HEAVY_RECURRENT: recurrent_work(&heavy->as.recurrent, flops, bytes); break;
    }
}

void weft__command_work(const weft_command *command, double *flops, double *bytes) {
    *flops = *bytes = 0;
    switch (command->kind) {
    case WEFT_COMMAND_KERNEL: kernel_work(command->kernel, flops, bytes); break;
    case WEFT_COMMAND_HEAVY: heavy_work(&command->heavy, flops, bytes); break;
    case WEFT_COMMAND_COPY: *bytes = 2 * (double)command->bytes; break;
    case WEFT_COMMAND_ZERO: *bytes = (double)command->bytes; break;
    }
}

weft_dtype weft__command_dtype(const weft_command *command) {
    if (command->kind != WEFT_COMMAND_HEAVY) return WEFT_F32;
    const weft_heavy *h = &command->heavy;
    switch (h->kind) {
    case WEFT_HEAVY_MATMUL: return (weft_dtype)h->as.matmul.dtype;
    case WEFT_HEAVY_ATTENTION: return (weft_dtype)h->as.attention.dtype;
    case WEFT_HEAVY_CONV: return (weft_dtype)h->as.conv.dtype;
    case WEFT_HEAVY_RECURRENT: return (weft_dtype)h->as.recurrent.dtype;
    default: return WEFT_F32;
    }
}

weft_work weft__command_kind(const weft_command *command) {
    if (command->kind != WEFT_COMMAND_HEAVY) return WEFT_WORK_OTHER;
    switch (command->heavy.kind) {
    case WEFT_HEAVY_MATMUL:
    case WEFT_HEAVY_RECURRENT: return WEFT_WORK_MATMUL;
    case WEFT_HEAVY_ATTENTION: return WEFT_WORK_ATTENTION;
    case WEFT_HEAVY_CONV: return WEFT_WORK_CONVOLUTION;
    default: return WEFT_WORK_OTHER;
    }
}

weft_program_work weft__program_work(const weft_program *program) {
    const weft_device_ops *ops = program->ctx->device->ops;
    weft_program_work work = {0};
    if (ops->launches_of) work.launches = (uint64_t)ops->launches_of(program->executable);
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
