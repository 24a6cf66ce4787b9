/* Random sequences of reads and writes, compared with an eager interpreter. Each read must give the value
 * that the sequence defines, or WEFT_ERR_STALE exactly if something that an unevaluated tensor reads has been
 * written since. Runs on the CPU, fused and unfused, and on interp. WEFT_PROGRAMS sets the number of
 * sequences, WEFT_PROGRAM_SEED the first seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/ops.h>
#include "device.h"
#include "graph/random_graph.h"

enum { WIDTH = 5, VARIABLES = 3, MOST = 200, STEPS = 60 };

/* What the eager interpreter knows of one tensor. */
typedef struct model {
    weft_tensor *t;
    int32_t value[WIDTH];
    bool leaf, scalar; /* leaf: variable, data or evaluated. A scalar fills all of value */
    bool kept, dead;   /* dead: its scope is closed, or it is poisoned */
    int scope;         /* depth of the scope that owns it */
    int in[2], n_in;
    uint64_t seen[2]; /* versions of the leaves in in[] when this node was recorded */
    uint64_t version; /* of a leaf: number of writes so far */
} model;

typedef struct program {
    weft_context *ctx;
    uint64_t seed, state;
    model node[MOST];
    int n, depth;
    weft_scope *scope[8];
    int stale_reads;
    bool print;
} program;

static int below(program *p, int n) { return graph_below(&p->state, n); }

static void draw_values(program *p, int32_t *v) {
    for (int k = 0; k < WIDTH; k++) v[k] = below(p, 41) - 20;
}

static int add(program *p, weft_tensor *t) {
    model *m = &p->node[p->n];
    memset(m, 0, sizeof *m);
    m->t = t;
    m->scope = p->depth;
    return p->n++;
}

/* Picks a node that is not dead. writable: one that can be written. */
static int pick(program *p, bool writable) {
    for (int k = 0; k < 60; k++) {
        int i = below(p, 4) ? p->n - 1 - below(p, p->n < 8 ? p->n : 8) : below(p, p->n);
        const model *m = &p->node[i];
        if (!m->dead && (!writable || (m->leaf && !m->scalar))) return i;
    }
    return 0;
}

/* Would the evaluation of node i read a leaf that was written after i was recorded? */
static bool is_stale(const program *p, int i) {
    const model *m = &p->node[i];
    if (m->leaf) return false;
    for (int k = 0; k < m->n_in; k++) {
        const model *in = &p->node[m->in[k]];
        if (in->leaf ? in->version != m->seen[k] : is_stale(p, m->in[k])) return true;
    }
    return false;
}

/* ---- steps ---- */

static int32_t apply(int op, int32_t a, int32_t b) {
    switch (op) {
    case 0: return (int32_t)((uint32_t)a + (uint32_t)b);
    case 1: return (int32_t)((uint32_t)a * (uint32_t)b);
    case 2: return a > b ? a : b;
    default: return (int32_t)((uint32_t)a - (uint32_t)b);
    }
}

static void step_record(program *p) {
    int a = pick(p, false), b = pick(p, false), op = below(p, 5);
    if (op == 2 && !test_on_cpu()) op = 0; /* reads and writes are the subject: fewer kernels for drivers */
    if (p->n >= MOST - 4 || p->node[a].scalar) return;
    weft_tensor *x = p->node[a].t, *y = p->node[b].t;
    weft_tensor *t = op == 0   ? weft_add(x, y)
                     : op == 1 ? weft_mul(x, y)
                     : op == 2 ? weft_maximum(x, y)
                     : op == 3 ? weft_sub(x, y)
                               : weft_flip(x, 0);
    int i = add(p, t);
    model *m = &p->node[i];
    m->n_in = op == 4 ? 1 : 2;
    m->in[0] = a;
    m->in[1] = b;
    for (int k = 0; k < m->n_in; k++) m->seen[k] = p->node[m->in[k]].version;
    for (int k = 0; k < WIDTH; k++)
        m->value[k] =
            op == 4 ? p->node[a].value[WIDTH - 1 - k] : apply(op, p->node[a].value[k], p->node[b].value[k]);
    if (p->print) printf("  %%%d = %d(%%%d, %%%d)\n", i, op, a, b);
}

static void settle(program *p, int i) {
    if (p->node[i].leaf) return;
    p->node[i].leaf = true;
    p->node[i].version = 0;
    for (int j = 0; j < p->n; j++) /* nodes that read it before see an unchanged leaf */
        for (int k = 0; k < p->node[j].n_in; k++)
            if (p->node[j].in[k] == i) p->node[j].seen[k] = 0;
}

static void step_read(program *p) {
    int i = pick(p, false);
    int32_t got[WIDTH] = {0};
    bool stale = is_stale(p, i);
    size_t bytes = p->node[i].scalar ? sizeof *got : sizeof got;
    weft_status status = weft_read(p->node[i].t, got, bytes);
    if (p->print) printf("  read %%%d%s\n", i, stale ? " (stale)" : "");
    if (status != (stale ? WEFT_ERR_STALE : WEFT_OK))
        fail_msg("seed %llu: reading %%%d gives %s: %s", (unsigned long long)p->seed, i,
                 weft_status_name(status), weft_last_error(p->ctx));
    p->stale_reads += stale;
    if (stale) return;
    for (size_t k = 0; k < bytes / sizeof *got; k++)
        if (got[k] != p->node[i].value[k])
            fail_msg("seed %llu: element %zu of %%%d is %d, not %d", (unsigned long long)p->seed, k, i,
                     got[k], p->node[i].value[k]);
    settle(p, i);
}

static void step_eval(program *p) {
    int list[3], n = 1 + below(p, 3);
    weft_tensor *t[3];
    bool stale = false;
    for (int k = 0; k < n; k++) {
        list[k] = pick(p, false);
        t[k] = p->node[list[k]].t;
        stale |= is_stale(p, list[k]);
    }
    weft_status status = weft_eval(t, (size_t)n);
    if (p->print) printf("  eval %%%d .. (%d)%s\n", list[0], n, stale ? " (stale)" : "");
    if (status != (stale ? WEFT_ERR_STALE : WEFT_OK))
        fail_msg("seed %llu: weft_eval gives %s: %s", (unsigned long long)p->seed, weft_status_name(status),
                 weft_last_error(p->ctx));
    for (int k = 0; !stale && k < n; k++) settle(p, list[k]);
}

static void step_write(program *p) {
    int i = pick(p, true);
    model *m = &p->node[i];
    if (m->dead || !m->leaf || m->scalar) return;
    draw_values(p, m->value);
    m->version++;
    if (p->print) printf("  write %%%d\n", i);
    if (weft_write(m->t, m->value, sizeof m->value) != WEFT_OK)
        fail_msg("weft_write: %s", weft_last_error(p->ctx));
}

static void step_scalar(program *p) {
    for (int i = p->n - 1; i >= 0; i--) {
        model *m = &p->node[i];
        if (!m->scalar || m->dead || below(p, 2)) continue;
        int32_t v = below(p, 9) - 4;
        for (int k = 0; k < WIDTH; k++) m->value[k] = v;
        m->version++;
        if (p->print) printf("  set %%%d\n", i);
        if (weft_set_scalar(m->t, (double)v) != WEFT_OK)
            fail_msg("weft_set_scalar: %s", weft_last_error(p->ctx));
        return;
    }
}

/* The program of an assignment also computes the kept tensors of open scopes that are not stale. */
static void settle_kept(program *p) {
    bool take[MOST] = {false};
    for (int i = 0; i < p->n; i++)
        take[i] = p->node[i].kept && !p->node[i].leaf && !p->node[i].dead && !is_stale(p, i);
    for (int i = 0; i < p->n; i++)
        if (take[i]) settle(p, i);
}

static void step_assign(program *p) {
    int variable[VARIABLES], value[VARIABLES], n = 0;
    weft_tensor *to[VARIABLES], *from[VARIABLES];
    int32_t next[VARIABLES][WIDTH];
    bool stale = false;
    for (int v = 0; v < VARIABLES; v++) {
        int i = pick(p, false);
        if (below(p, 2) || p->node[i].scalar) continue;
        variable[n] = v;
        value[n] = i;
        to[n] = p->node[v].t;
        from[n] = p->node[i].t;
        memcpy(next[n], p->node[i].value, sizeof next[n]);
        stale |= is_stale(p, i);
        n++;
    }
    weft_status status = weft_assign(to, from, (size_t)n);
    if (p->print)
        for (int k = 0; k < n; k++)
            printf("  assign %%%d <- %%%d%s\n", variable[k], value[k], stale ? " (stale)" : "");
    if (status != (stale ? WEFT_ERR_STALE : WEFT_OK))
        fail_msg("seed %llu: weft_assign gives %s: %s", (unsigned long long)p->seed, weft_status_name(status),
                 weft_last_error(p->ctx));
    if (stale || !n) return;
    settle_kept(p);
    for (int k = 0; k < n; k++) {
        memcpy(p->node[variable[k]].value, next[k], sizeof next[k]);
        p->node[variable[k]].version++;
    }
}

static void step_keep(program *p) {
    int i = pick(p, false);
    if (p->node[i].kept || p->node[i].scalar) return;
    p->node[i].kept = true;
    weft_keep(p->node[i].t);
    if (p->print) printf("  keep %%%d\n", i);
}

static void step_open(program *p) {
    if (p->depth == 6) return;
    p->scope[++p->depth] = weft_scope_open(p->ctx);
    if (p->print) printf("  open\n");
}

/* Closes a scope. Kept tensors are evaluated, or poisoned if they are stale. The others are freed. */
static void step_close(program *p) {
    if (!p->depth) return;
    bool poisoned[MOST] = {false};
    for (int i = 0; i < p->n; i++)
        if (p->node[i].scope == p->depth && p->node[i].kept && !p->node[i].dead) poisoned[i] = is_stale(p, i);
    weft_scope_close(p->scope[p->depth]);
    if (p->print) printf("  close\n");
    for (int i = 0; i < p->n; i++) {
        model *m = &p->node[i];
        if (m->scope != p->depth || m->dead) continue;
        if (m->kept && !poisoned[i]) {
            settle(p, i);
            m->scope = 0;
            continue;
        }
        if (poisoned[i] && weft_tensor_status(m->t) != WEFT_ERR_STALE)
            fail_msg("seed %llu: %%%d should be poisoned as stale", (unsigned long long)p->seed, i);
        m->dead = true;
    }
    p->depth--;
}

static void step(program *p) {
    int what = below(p, 100);
    if (what < 42)
        step_record(p);
    else if (what < 60)
        step_read(p);
    else if (what < 66)
        step_eval(p);
    else if (what < 75)
        step_write(p);
    else if (what < 78)
        step_scalar(p);
    else if (what < 86)
        step_assign(p);
    else if (what < 91)
        step_keep(p);
    else if (what < 96)
        step_open(p);
    else
        step_close(p);
}

static int run_program(weft_context *ctx, uint64_t seed, bool print) {
    program p = {.ctx = ctx, .seed = seed, .state = seed * 77 + 5, .print = print};
    int64_t shape[1] = {WIDTH};
    p.scope[0] = weft_scope_open(ctx);
    for (int v = 0; v < VARIABLES + 2; v++) {
        int32_t values[WIDTH];
        draw_values(&p, values);
        int i = add(&p, v < VARIABLES ? weft_variable_new(ctx, "v", WEFT_I32, 1, shape, values)
                                      : weft_from(ctx, WEFT_I32, 1, shape, values));
        memcpy(p.node[i].value, values, sizeof values);
        p.node[i].leaf = true;
        p.node[i].kept = v < VARIABLES;
    }
    int s = add(&p, weft_scalar_of(ctx, WEFT_I32, 3));
    for (int k = 0; k < WIDTH; k++) p.node[s].value[k] = 3;
    p.node[s].leaf = p.node[s].scalar = true;
    for (int k = 0; k < STEPS; k++) step(&p);
    while (p.depth) step_close(&p);
    for (int i = 0; i < p.n; i++) { /* the remaining values must still be right */
        int32_t got[WIDTH];
        if (p.node[i].dead || p.node[i].scalar || is_stale(&p, i)) continue;
        if (weft_read(p.node[i].t, got, sizeof got) != WEFT_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, weft_last_error(ctx));
        assert_memory_equal(got, p.node[i].value, sizeof got);
        settle(&p, i);
    }
    weft_scope_close(p.scope[0]);
    for (int i = 0; i < p.n; i++)
        if (p.node[i].kept) weft_free(p.node[i].t);
    return p.stale_reads;
}

static void run_all(const weft_open_options *options) {
    const char *count = getenv("WEFT_PROGRAMS"), *first = getenv("WEFT_PROGRAM_SEED");
    uint64_t n = count           ? strtoull(count, NULL, 10)
                 : test_on_cpu() ? 1000
                                 : 40,
             seed = first ? strtoull(first, NULL, 10) : 1;
    weft_context *ctx;
    int stale = 0;
    if (test_open(options, &ctx) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    for (uint64_t k = 0; k < n; k++) stale += run_program(ctx, seed + k, first != NULL && n == 1);
    weft_close(ctx);
    printf("random programs: cells=%llu fail=0 seed=%llu stale reads=%d\n", (unsigned long long)n,
           (unsigned long long)seed, stale);
    assert_true(stale > 0 || n < 100);
}

static void test_cpu(void **state) {
    (void)state;
    run_all(&(weft_open_options){.device = test_device()});
}

static void test_cpu_unfused(void **state) {
    (void)state;
    run_all(&(weft_open_options){.device = test_device(), .no_fusion = true});
}

static void test_interp(void **state) {
    (void)state;
    run_all(&(weft_open_options){.device = "interp"});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cpu), cmocka_unit_test(test_cpu_unfused),
                                       cmocka_unit_test(test_interp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
