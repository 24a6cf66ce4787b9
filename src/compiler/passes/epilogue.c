/* Epilogues of matmuls (docs/design/013-epilogues.md). A map kernel that reads the result of a matmul only at
 * its own index, and has no reductions, is computed where the matmul computes the elements, if the device
 * takes it. Kernels are complete by now, so this loses no fusion: elementwise work that belongs to a kernel
 * with reductions stays there. If other kernels read the result too, the epilogue also stores it. Must not
 * know: what kernels compute. Read next: epilogue_sum.c, kernel/epilogue.c.
 *
 *     before   c = a b        d = gelu(c + bias)      two units
 *     after    d = gelu(a b + bias)                   one unit; also stores c if others read it */
#include <string.h>
#include "compiler/passes/plan.h"

typedef struct search {
    plan *p;
    int *readers; /* by node: how many units, outputs, assignments and packs need it in memory */
    bool *seen;   /* by unit */
    int *stack;
} search;

static bool is_gone(const plan_unit *u) { return !u->kernel && u->heavy < 0 && u->from < 0; }

static weft_status open_search(search *s) {
    plan *p = s->p;
    weft_ir *ir = p->ir;
    s->readers = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *s->readers);
    s->seen = weft__arena_alloc(&ir->arena, (size_t)p->n_units + 1);
    s->stack = weft__arena_alloc(&ir->arena, (size_t)(p->n_units + 1) * sizeof *s->stack);
    if (!s->readers || !s->seen || !s->stack) return weft__ir_failed(ir);
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++) s->readers[n]++;
    for (size_t n = 0; n < ir->n_nodes; n++) s->readers[n] += ir->nodes[n].pack.node >= 0;
    for (size_t i = 0; i < ir->outputs.count; i++) s->readers[ir->outputs.nodes[i]]++;
    for (size_t i = 0; i < ir->sinks.count; i++) s->readers[ir->sinks.list[i].node]++;
    return WEFT_OK;
}

/* Does unit k need a third unit that runs after unit u? */
static bool around(const search *s, int u, int k) {
    const plan *p = s->p;
    int n = 0;
    memset(s->seen, 0, (size_t)p->n_units);
    for (int at = k; at >= 0; at = n ? s->stack[--n] : -1)
        for (int i = 0; i < p->units[at].n_after; i++) {
            const int before = p->units[at].after[i];
            if (before == u && at != k) return true;
            if (before == u || s->seen[before]) continue;
            s->seen[before] = true;
            s->stack[n++] = before;
        }
    return false;
}

/* Would the merged unit have to copy a variable that kernel k alone updates in place? */
static bool keeps_from_updating(const plan *p, int u, int k) {
    const weft_ir *ir = p->ir;
    for (size_t s = 0; s < ir->sinks.count; s++)
        if (ir->nodes[ir->sinks.list[s].node].unit == k &&
            weft__plan_heavy_reads(p, &p->units[u], ir->sinks.list[s].variable))
            return true;
    return false;
}

/* The first load of an argument. */
static int load_of(const weft_kernel *kernel, int arg) {
    int load = 0;
    while (kernel->code[load].kind != WEFT_INSTR_LOAD || kernel->code[load].arg != arg) load++;
    return load;
}

/* Writes a kernel that also stores `value` where it reads argument `arg`. False if memory is gone. */
static bool storing(weft_arena *keep, const weft_kernel *kernel, int arg, int value, weft_kernel *to) {
    const size_t n_code = (size_t)kernel->n_code, n_args = (size_t)kernel->n_args;
    const int load = load_of(kernel, arg);
    *to = *kernel;
    to->code = weft__arena_alloc(keep, (n_code + 1) * sizeof *to->code);
    to->args = weft__arena_alloc(keep, n_args * sizeof *to->args);
    if (!to->code || !to->args) return false;
    memcpy(to->code, kernel->code, n_code * sizeof *to->code);
    memcpy(to->args, kernel->args, n_args * sizeof *to->args);
    to->code[to->n_code] = to->code[load];
    to->code[to->n_code].kind = WEFT_INSTR_STORE;
    to->code[to->n_code++].a = value;
    to->args[arg].written = true;
    return true;
}

/* Writes the kernel of unit k as an epilogue. If others read the result of the matmul, it stores this result
 * as well. If all of them read the same sum of it, it stores the sum instead (*sum, else -1). */
static bool as_epilogue(const search *s, weft_arena *keep, int k, int arg, weft_kernel *to, int *sum) {
    const plan_unit *last = &s->p->units[k];
    const int readers = s->readers[last->args[arg]];
    *sum = -1;
    *to = *last->kernel;
    if (readers < 2) return true;
    *sum = weft__plan_shared_sum(s->p, k, arg, readers);
    return storing(keep, last->kernel, arg, *sum < 0 ? load_of(last->kernel, arg) : *sum, to);
}

/* Can unit k be the epilogue of the matmul that computes its argument? */
static bool epilogue_fits(const search *s, int k, int arg) {
    const plan *p = s->p;
    const weft_ir *ir = p->ir;
    const plan_unit *last = &p->units[k];
    const ir_node *product = &ir->nodes[last->args[arg]];
    weft_kernel kernel;
    int sum;
    if (product->kind != IR_HEAVY_OUT || product->imm_i || !weft__kernel_is_epilogue(last->kernel, arg))
        return false;
    const plan_unit *u = &p->units[product->unit];
    weft_heavy heavy = *ir->nodes[u->heavy].heavy;
    if (heavy.kind != WEFT_HEAVY_MATMUL || u->kernel) return false;
    if (!as_epilogue(s, &p->ir->arena, k, arg, &kernel, &sum)) return false;
    heavy.as.matmul.epilogue = &kernel;
    heavy.as.matmul.product = arg;
    return ir->device->ops->takes(ir->device, &heavy) && !keeps_from_updating(p, product->unit, k) &&
           !around(s, product->unit, k); /* a search, so it comes last */
}

/* Merges unit k into the unit that computes its argument. */
static weft_status merge(search *s, int k, int arg) {
    plan *p = s->p;
    weft_ir *ir = p->ir;
    plan_unit *last = &p->units[k];
    ir_node *product = &ir->nodes[last->args[arg]];
    const int at = product->unit;
    plan_unit *u = &p->units[at];
    weft_heavy *heavy = ir->nodes[u->heavy].heavy;
    weft_kernel kernel;
    int sum;
    product->stored = s->readers[last->args[arg]] > 1;
    if (!as_epilogue(s, &p->program->keep, k, arg, &kernel, &sum)) return weft__ir_failed(ir);
    *last->kernel = kernel;
    if (sum >= 0) WEFT_TRY(weft__plan_load_sum(p, k, arg));
    heavy->as.matmul.epilogue = u->kernel = last->kernel;
    heavy->as.matmul.product = arg;
    u->args = last->args;
    if (last->key > u->key) u->key = last->key;
    for (int i = 0; i < last->n_after; i++) WEFT_TRY(weft__plan_after(p, at, last->after[i]));
    for (int i = 0; i < p->n_units; i++)
        for (int j = 0; j < p->units[i].n_after; j++)
            if (p->units[i].after[j] == k) p->units[i].after[j] = at;
    for (size_t n = 0; n < ir->n_nodes; n++)
        if (ir->nodes[n].unit == k) ir->nodes[n].unit = at;
    *last = (plan_unit){.heavy = -1, .from = -1, .to_sink = -1};
    return WEFT_OK;
}

/* Closes the gaps that merged units leave. */
static weft_status renumber(plan *p) {
    weft_ir *ir = p->ir;
    int *number = weft__arena_alloc(&ir->arena, (size_t)(p->n_units + 1) * sizeof *number), count = 0;
    if (!number) return weft__ir_failed(ir);
    for (int i = 0; i < p->n_units; i++) {
        number[i] = count;
        if (!is_gone(&p->units[i])) p->units[count++] = p->units[i];
    }
    p->n_units = count;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < p->units[i].n_after; k++) p->units[i].after[k] = number[p->units[i].after[k]];
    for (size_t n = 0; n < ir->n_nodes; n++)
        if (ir->nodes[n].unit >= 0) ir->nodes[n].unit = number[ir->nodes[n].unit];
    return WEFT_OK;
}

weft_status weft__plan_epilogues(plan *p) {
    search s = {.p = p};
    WEFT_TRY(open_search(&s));
    for (int k = 0; k < p->n_units; k++) {
        const plan_unit *u = &p->units[k];
        int best = -1; /* of several matmuls, the one recorded last */
        for (int a = 0; u->kernel && u->heavy < 0 && a < u->kernel->n_args; a++)
            if (epilogue_fits(&s, k, a) &&
                (best < 0 || p->ir->nodes[u->args[a]].from.serial > p->ir->nodes[u->args[best]].from.serial))
                best = a;
        if (best >= 0) WEFT_TRY(merge(&s, k, best));
    }
    return renumber(p);
}
