/* A matmul whose readers all first add the same vector to its result, one number for each column. An example
 * is y = x w + b: the activation reads y, and so does its derivative in the backward pass. If the first
 * reader becomes the epilogue of the matmul, it stores the sum instead of the result, and the others load the
 * sum. This moves as much memory and computes less. Libraries call such a result the auxiliary output of an
 * epilogue. Must not know: what else kernels compute. Read next: epilogue.c. */
#include <string.h>

#include "compiler/passes/plan.h"

/* Instructions of a kernel: the load of the matmul's result, its sum with the vector, and the load of the
 * vector. `cast` is the dtype to which the vector is cast, or -1. */
typedef struct sum_in {
    int load, add, vector, cast;
} sum_in;

/* Returns the only load of an argument, -1: there is none, or other instructions use the argument. */
static int only_load(const weft_kernel *k, int arg) {
    int load = -1;
    for (int i = 0; i < k->n_code; i++) {
        if (k->code[i].arg != arg) continue;
        if (k->code[i].kind != WEFT_INSTR_LOAD || load >= 0) return -1;
        load = i;
    }
    return load;
}

/* Returns the only instruction that uses a value, -1: there is none, or several. */
static int only_user(const weft_kernel *k, int value) {
    int user = -1;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->a != value && in->b != value && in->c != value) continue;
        if (user >= 0) return -1;
        user = i;
    }
    return user;
}

/* Does instruction `vector` load the element of the column at which `load` is? The matrix has n columns. */
static bool is_of_column(const weft_kernel *k, int load, int vector, int64_t n) {
    const weft_view *at = &k->views[k->code[load].view], *of = &k->views[k->code[vector].view];
    const weft_map *x = &at->map[0], *y = &of->map[0];
    int64_t last = x->offset % n; /* the largest column before a new row begins */
    if (at->count != 1 || of->count != 1 || x->guarded || y->guarded || x->rank != y->rank) return false;
    if (x->offset < 0 || y->offset != last) return false;
    for (int d = 0; d < x->rank; d++) {
        if (x->extent[d] == 1) continue;
        const bool row = x->stride[d] % n == 0;
        if (x->extent[d] != y->extent[d] || x->stride[d] < 0 || y->stride[d] != (row ? 0 : x->stride[d]))
            return false;
        if (!row) last += (x->extent[d] - 1) * x->stride[d];
    }
    return last < n;
}

static bool find_sum(const weft_kernel *k, int arg, int64_t n, sum_in *s) {
    s->load = only_load(k, arg);
    s->add = s->load < 0 ? -1 : only_user(k, s->load);
    if (s->add < 0) return false;
    const weft_instr *add = &k->code[s->add];
    if (add->kind != WEFT_INSTR_CALC || add->op != WEFT_OP_ADD || add->a == add->b) return false;
    if (add->dtype != k->args[arg].dtype || add->level != k->code[s->load].level) return false;
    s->vector = add->a == s->load ? add->b : add->a;
    s->cast = -1;
    if (k->code[s->vector].kind == WEFT_INSTR_CAST) {
        s->cast = k->code[s->vector].dtype;
        s->vector = k->code[s->vector].a;
    }
    return k->code[s->vector].kind == WEFT_INSTR_LOAD && is_of_column(k, s->load, s->vector, n);
}

int weft__plan_shared_sum(const plan *p, int k, int arg, int readers) {
    const plan_unit *first = &p->units[k];
    const int node = first->args[arg];
    const int64_t n = p->ir->nodes[p->units[p->ir->nodes[node].unit].heavy].heavy->as.matmul.n;
    sum_in own, other;
    int found = 1;
    if (!find_sum(first->kernel, arg, n, &own)) return -1;
    const int vector = first->args[first->kernel->code[own.vector].arg];
    for (int i = 0; i < p->n_units; i++) {
        const plan_unit *u = &p->units[i];
        if (i == k || !u->kernel || u->heavy >= 0) continue;
        const int at = weft__plan_arg_of(u, node);
        if (at < 0) continue;
        if (!find_sum(u->kernel, at, n, &other) || other.cast != own.cast ||
            u->args[u->kernel->code[other.vector].arg] != vector)
            return -1;
        found++;
    }
    return found == readers ? own.add : -1; /* else some reader needs the result itself */
}

/* Removes the instructions and arguments of the kernel that nothing uses. */
static void tidy(plan_unit *u, weft_instr *code, int *number) {
    weft_kernel *k = u->kernel;
    int n = 0, n_args = 0;
    for (int i = 0; i < k->n_code; i++)
        number[i] = code[i].kind == WEFT_INSTR_STORE || weft__instr_can_fault(&code[i]);
    for (int i = k->n_code - 1; i >= 0; i--) { /* operands come before their users */
        if (!number[i]) continue;
        if (code[i].a >= 0) number[code[i].a] = 1;
        if (code[i].b >= 0) number[code[i].b] = 1;
        if (code[i].c >= 0) number[code[i].c] = 1;
    }
    for (int i = 0; i < k->n_code; i++) {
        if (!number[i]) continue;
        weft_instr in = code[i];
        if (in.a >= 0) in.a = number[in.a];
        if (in.b >= 0) in.b = number[in.b];
        if (in.c >= 0) in.c = number[in.c];
        number[i] = n;
        code[n++] = in;
    }
    k->code = code;
    k->n_code = n;
    for (int a = 0; a < k->n_args; a++) {
        bool used = false;
        for (int i = 0; i < n; i++) used = used || code[i].arg == a;
        for (int i = 0; i < n && used; i++)
            if (code[i].arg == a) code[i].arg = n_args;
        if (!used) continue;
        k->args[n_args] = k->args[a];
        u->args[n_args++] = u->args[a];
    }
    k->n_args = n_args;
}

weft_status weft__plan_load_sum(plan *p, int k, int arg) {
    const int node = p->units[k].args[arg];
    const int64_t n = p->ir->nodes[p->units[p->ir->nodes[node].unit].heavy].heavy->as.matmul.n;
    for (int i = 0; i < p->n_units; i++) {
        plan_unit *u = &p->units[i];
        sum_in s;
        const int at = i == k || !u->kernel || u->heavy >= 0 ? -1 : weft__plan_arg_of(u, node);
        if (at < 0 || !find_sum(u->kernel, at, n, &s)) continue;
        const size_t count = (size_t)u->kernel->n_code;
        weft_instr *code = weft__arena_alloc(&p->program->keep, (count + 1) * sizeof *code);
        int *number = weft__arena_alloc(&p->ir->arena, (count + 1) * sizeof *number);
        if (!code || !number) return weft__ir_failed(p->ir);
        memcpy(code, u->kernel->code, count * sizeof *code);
        code[s.add] = code[s.load];
        tidy(u, code, number);
    }
    return WEFT_OK;
}
