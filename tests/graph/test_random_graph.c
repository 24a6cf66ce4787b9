/* Random graphs. The results must be right, and must not depend on fusion, device or number of threads.
 * - The fused and the unfused CPU program give the same bits. There are two exceptions: float sums, whose
 *   blocks follow the kernel's layout, and 16-bit floats, which are rounded only where they are stored. Such
 *   results, and all results of interp, must be within the bounds of the shadow interpreter. Integers must be
 *   exact.
 * - Each graph runs twice, and on one thread and on two. The bits must be the same.
 *
 * WEFT_GRAPHS sets the number of graphs, WEFT_GRAPH_SEED the first seed. A graph that fails is shrunk and
 * printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "compiler/program.h"
#include "device.h"
#include "interp/interp.h"
#include "graph/random_graph.h"
#include "graph/shadow.h"
#include "unit/compiler/plan_race.h"

typedef struct machines {
    weft_context *record, *fused, *plain, *one, *interp, *interp_plain;
    weft_context *other; /* the device under test, or NULL if that is the CPU */
} machines;

typedef struct totals {
    uint64_t graphs, nodes, backward, fused_kernels, plain_kernels, folds, elements, abstained;
    double worst; /* error / bound */
} totals;

typedef struct values {
    int n;
    char *data[GRAPH_OUTPUTS + GRAPH_NODES];
    size_t bytes[GRAPH_OUTPUTS + GRAPH_NODES];
    uint64_t kernels, folds;
    bool race;
    int racing[2]; /* number of commands */
} values;

static char why[2048];

static const char *fail_with(const char *fmt, ...) WEFT_PRINTF(1, 2);
static const char *fail_with(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return why;
}

static void open_machines(machines *m) {
    struct {
        weft_context **ctx;
        weft_open_options options;
    } all[] = {{&m->record, {.device = "cpu", .threads = 1}}, /* never runs a program: owns the leaves */
               {&m->fused, {.device = "cpu", .threads = 2}},
               {&m->plain, {.device = "cpu", .threads = 2, .no_fusion = true}},
               {&m->one, {.device = "cpu", .threads = 1}},
               {&m->interp, {.device = "interp"}},
               {&m->interp_plain, {.device = "interp", .no_fusion = true}}};
    if (!test_on_cpu() && test_open(NULL, &m->other) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (weft_open(&all[i].options, all[i].ctx) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    weft__interp_poison_arena(m->interp->device, true); /* detects reads of an earlier program's arena */
    weft__interp_decline(m->interp_plain->device, 1U << WEFT_HEAVY_ATTENTION); /* uses the expansion */
}

static void close_machines(machines *m) {
    weft_context *all[] = {m->record, m->fused, m->plain, m->one, m->interp, m->interp_plain, m->other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) weft_close(all[i]);
}

/* Is the graph large enough for several threads? One has a gradient, one has none, one uses integers. */
static bool is_wide(uint64_t seed) { return seed % 100 == 1 || seed % 100 == 3 || seed % 100 == 52; }

/* ---- running ---- */

static void drop(values *v) {
    for (int i = 0; i < v->n; i++) free(v->data[i]);
    v->n = 0;
}

/* Reads the outputs t that the newest program of ctx computed. */
static bool take(weft_context *ctx, const graph_tensors *t, values *out) {
    bool fine = true;
    memset(out, 0, sizeof *out);
    if (ctx->compiler->newest) {
        out->kernels = ctx->compiler->newest->n_kernels;
        const weft_commands *commands = &ctx->compiler->newest->commands;
        for (int i = 0; i < commands->count; i++)
            out->folds += commands->list[i].kernel && commands->list[i].kernel->n_fold > 0;
        out->race = plan_race(ctx->compiler->newest, &out->racing[0], &out->racing[1]);
    }
    for (int i = 0; fine && i < t->n_outputs; i++) {
        out->bytes[i] = (size_t)weft_numel(t->output[i]) * weft_dtype_size(weft_dtype_of(t->output[i]));
        out->data[i] = malloc(out->bytes[i] + 1);
        out->n++;
        fine = weft_read(t->output[i], out->data[i], out->bytes[i]) == WEFT_OK;
    }
    return fine;
}

static bool run(weft_context *ctx, const graph *g, values *out) {
    graph_tensors t;
    out->n = 0;
    weft_scope *scope = weft_scope_open(ctx);
    bool fine =
        graph_record(ctx, g, &t) && weft_eval(t.output, (size_t)t.n_outputs) == WEFT_OK && take(ctx, &t, out);
    weft_scope_close(scope);
    return fine;
}

/* Compares the bits of all outputs, or, if s is given, of those that fusion must not change. */
static const char *same_bits(const char *what, const values *a, const values *b, shadow *s,
                             const graph_tensors *t) {
    for (int i = 0; i < a->n; i++)
        for (size_t k = 0; (!s || !shadow_of(s, t->output[i])->loose) && k < a->bytes[i]; k++)
            if (a->data[i][k] != b->data[i][k])
                return fail_with("%s: output %d differs at byte %zu of %zu", what, i, k, a->bytes[i]);
    return NULL;
}

/* ---- comparison with the shadow ---- */

static double element(weft_dtype dtype, const char *data, int64_t k) {
    float f32;
    double f64;
    uint16_t half;
    switch (dtype) {
    case WEFT_F64: memcpy(&f64, data + 8 * k, 8); return f64;
    case WEFT_F32: memcpy(&f32, data + 4 * k, 4); return (double)f32;
    default:
        memcpy(&half, data + 2 * k, 2);
        return (double)(dtype == WEFT_F16 ? weft_f16_to_f32(half) : weft_bf16_to_f32(half));
    }
}

static int64_t whole(weft_dtype dtype, const char *data, int64_t k) {
    int64_t v = 0;
    memcpy(&v, data + (size_t)k * weft_dtype_size(dtype), weft_dtype_size(dtype));
    return shadow_wrap(dtype, v);
}

static const char *one_output(const char *what, int i, weft_dtype dtype, const shadow_value *v,
                              const char *data, totals *sum) {
    for (int64_t k = 0; k < v->n; k++) {
        sum->elements++;
        if (!isfinite(v->e[k])) {
            sum->abstained++;
            continue;
        }
        if (v->i) {
            if (whole(dtype, data, k) != v->i[k])
                return fail_with("%s: output %d element %lld is %lld, not %lld", what, i, (long long)k,
                                 (long long)whole(dtype, data, k), (long long)v->i[k]);
            continue;
        }
        double got = element(dtype, data, k), error = fabs(got - v->f[k]);
        if (!(error <= v->e[k]))
            return fail_with("%s: output %d (%s) element %lld is %.17g, not %.17g within %.3g", what, i,
                             weft_dtype_name(dtype), (long long)k, got, v->f[k], v->e[k]);
        if (v->e[k] > 0 && error / v->e[k] > sum->worst) sum->worst = error / v->e[k];
    }
    return NULL;
}

static const char *within_bound(const char *what, const graph_tensors *t, shadow *s, const values *got,
                                totals *sum) {
    const char *bad = NULL;
    for (int i = 0; i < got->n && !bad; i++) {
        const shadow_value *v = shadow_of(s, t->output[i]);
        bad = v ? one_output(what, i, weft_dtype_of(t->output[i]), v, got->data[i], sum)
                : fail_with("the shadow gave up");
    }
    return bad;
}

/* Compares values with the bits of another run (of all outputs if s is NULL) and with the shadow. */
static const char *judge(const char *what, const values *got, const values *bits, const graph_tensors *t,
                         shadow *s, totals *sum) {
    const char *bad = NULL;
    if (got->race)
        bad =
            fail_with("%s: commands %d and %d meet without a barrier", what, got->racing[0], got->racing[1]);
    if (!bad && bits) bad = same_bits(what, bits, got, s, t);
    if (!bad && s) bad = within_bound(what, t, s, got, sum);
    return bad;
}

/* Runs g on ctx, and compares its results as judge() does. */
static const char *on(weft_context *ctx, const char *what, const graph *g, const values *bits,
                      const graph_tensors *t, shadow *s, totals *sum, values *keep) {
    values got;
    const char *bad = NULL;
    if (!run(ctx, g, &got)) bad = fail_with("%s: %s", what, weft_last_error(ctx));
    if (!bad) bad = judge(what, &got, bits, t, s, sum);
    if (keep && !bad)
        *keep = got;
    else
        drop(&got);
    return bad;
}

/* The results of two runs on the device under test. */
typedef struct runs {
    values once, again;
} runs;

static const char *on_device(const machines *m, const graph *g, const runs *known, const graph_tensors *t,
                             shadow *s, totals *sum) {
    values once = {0};
    if (known) {
        const char *bad = judge(test_device(), &known->once, NULL, t, s, sum);
        return bad ? bad : judge("the device again", &known->again, &known->once, t, NULL, sum);
    }
    const char *bad = on(m->other, test_device(), g, NULL, t, s, sum, &once);
    if (!bad) bad = on(m->other, "the device again", g, &once, t, NULL, sum, NULL);
    drop(&once);
    return bad;
}

/* Returns NULL if all results agree, else a message. known: results of the device if it has already run, else
 * NULL. */
static const char *check(const machines *m, const graph *g, const runs *known, totals *sum) {
    graph_tensors t;
    values fused = {0}, plain = {0};
    const char *bad = NULL;
    bool often = g->seed % 4 == 0 || is_wide(g->seed);
    shadow *s = shadow_new();
    weft_scope *scope = weft_scope_open(m->record);
    if (!graph_record(m->record, g, &t)) bad = fail_with("recording: %s", weft_last_error(m->record));
    if (!bad) bad = on(m->fused, "fused", g, NULL, &t, s, sum, &fused);
    if (!bad) bad = on(m->fused, "fused again", g, &fused, &t, NULL, sum, NULL);
    if (!bad) bad = on(m->plain, "unfused", g, &fused, &t, s, sum, &plain);
    if (!bad && m->other) bad = on_device(m, g, known, &t, s, sum);
    if (!bad && often) bad = on(m->one, "one thread", g, &fused, &t, NULL, sum, NULL);
    if (!bad) bad = on(m->interp, "interp", g, NULL, &t, s, sum, NULL);
    if (!bad && often) bad = on(m->interp_plain, "interp unfused", g, NULL, &t, s, sum, NULL);
    sum->fused_kernels += fused.kernels;
    sum->folds += fused.folds;
    sum->plain_kernels += plain.kernels;
    drop(&fused);
    drop(&plain);
    weft_scope_close(scope);
    shadow_free(s);
    return bad;
}

/* ---- shrinking ---- */

static bool still_fails(const machines *m, const graph *g) {
    totals none = {0};
    return g->n_outputs > 0 && check(m, g, NULL, &none) != NULL;
}

static bool try_smaller(const machines *m, graph *g, const graph *smaller) {
    if (!still_fails(m, smaller)) return false;
    *g = *smaller;
    return true;
}

static void shrink(const machines *m, graph *g) {
    graph s = *g;
    s.loss = -1;
    graph_prune(&s);
    try_smaller(m, g, &s);
    for (bool any = true; any;) {
        any = false;
        for (int k = g->n_outputs - 1; k >= 0 && g->n_outputs > 1; k--) { /* try fewer outputs */
            s = *g;
            memmove(&s.output[k], &s.output[k + 1], (size_t)(s.n_outputs - k - 1) * sizeof *s.output);
            s.n_outputs--;
            graph_prune(&s);
            any |= try_smaller(m, g, &s);
        }
        for (int i = g->n - 1; i >= 0; i--) {
            if (i >= g->n || !g->node[i].n_in) continue;
            for (int k = -1; k < g->node[i].n_in; k++) { /* a leaf, or one of its operands */
                s = *g;
                if (k < 0) {
                    graph_cut(&s, i);
                } else {
                    const graph_node *x = &g->node[g->node[i].in[k]];
                    if (x->dtype != g->node[i].dtype || x->rank != g->node[i].rank ||
                        memcmp(x->shape, g->node[i].shape, (size_t)x->rank * sizeof *x->shape) != 0)
                        continue;
                    for (int j = 0; j < s.n; j++)
                        for (int o = 0; o < s.node[j].n_in; o++)
                            if (s.node[j].in[o] == i) s.node[j].in[o] = g->node[i].in[k];
                    for (int o = 0; o < s.n_outputs; o++)
                        if (s.output[o] == i) s.output[o] = g->node[i].in[k];
                }
                graph_prune(&s);
                if (s.n == g->n && k >= 0) continue;
                if (try_smaller(m, g, &s)) {
                    any = true;
                    break;
                }
            }
        }
    }
}

static void report(const machines *m, graph *g) {
    totals none = {0};
    graph_print(g, stdout);
    printf("  fails: %s\nshrunk:\n", why);
    fflush(stdout);
    shrink(m, g);
    const char *reason = check(m, g, NULL, &none);
    graph_print(g, stdout);
    printf("  fails: %s\n", reason ? reason : "(no more)");
    weft_context *all[] = {m->fused, m->plain, m->one, m->interp, m->interp_plain};
    static const char *const names[] = {"fused", "unfused", "one thread", "interp", "interp unfused"};
    shadow *s = shadow_new();
    graph_tensors t;
    weft_scope *scope = weft_scope_open(m->record);
    for (int i = 0; graph_record(m->record, g, &t) && i < 5; i++) { /* print the values of each machine */
        reason = on(all[i], names[i], g, NULL, &t, s, &none, NULL);
        printf("    %s\n", reason ? reason : names[i]);
    }
    weft_scope_close(scope);
    shadow_free(s);
}

/* ---- the tests ---- */

static graph_options options_of(const machines *m, uint64_t seed) {
    graph_options o = {.integers = seed % 2 == 0,
                       .no_f64 = m->other && !test_has_f64(m->other),
                       .size = 5 + (int)(seed * 7 % 56),
                       .most = 600};
    o.backward = !o.integers && seed % 4 == 1;
    if (!test_on_cpu()) o.size = 3 + (int)(seed * 7 % 7); /* compilation of each kernel takes long */
    if (is_wide(seed)) {
        o.most = 60000;
        o.size = 12;
    } else if (seed % 10 == 7 || seed % 20 == 4) {
        o.tall = true;
        o.most = 4000;
        o.size = 4 + (int)(seed % 11);
    }
    return o;
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Starting a kernel compiler takes long, so that many graphs become one program of the device. */
enum { GRAPHS_TOGETHER = 50 };
typedef struct batch {
    uint64_t first;
    bool has[GRAPHS_TOGETHER];
    runs of[GRAPHS_TOGETHER];
} batch;

static void drop_batch(batch *b) {
    for (int i = 0; i < GRAPHS_TOGETHER; i++) {
        drop(&b->of[i].once);
        drop(&b->of[i].again);
    }
    memset(b, 0, sizeof *b);
}

static const runs *of_batch(const batch *b, uint64_t seed) {
    return b->has[seed - b->first] ? &b->of[seed - b->first] : NULL;
}

/* Runs one program of all graphs from `first` on, twice. Returns false if it fails. */
static bool run_batch(const machines *m, uint64_t first, uint64_t count, batch *b) {
    graph_tensors *t = calloc(GRAPHS_TOGETHER, sizeof *t);
    weft_tensor **outputs = calloc(GRAPHS_TOGETHER * (GRAPH_OUTPUTS + GRAPH_NODES), sizeof *outputs);
    weft_program *program = NULL;
    size_t n = 0;
    bool fine = t && outputs;
    drop_batch(b);
    b->first = first;
    weft_scope *scope = weft_scope_open(m->other);
    for (int i = 0; fine && i < GRAPHS_TOGETHER && (uint64_t)i < count; i++) {
        const graph_options o = options_of(m, first + (uint64_t)i);
        graph g;
        b->has[i] = graph_make(m->record, first + (uint64_t)i, &o, &g) && graph_record(m->other, &g, &t[i]);
        for (int k = 0; b->has[i] && k < t[i].n_outputs; k++)
            if (!t[i].output[k]->leaf) outputs[n++] = t[i].output[k];
    }
    fine = fine && (n == 0 || weft_compile(outputs, n, NULL, NULL, 0, &program) == WEFT_OK);
    for (int again = 0; again < 2 && fine; again++) {
        fine = !program || weft_program_run(program) == WEFT_OK;
        for (int i = 0; fine && i < GRAPHS_TOGETHER; i++)
            fine = !b->has[i] || take(m->other, &t[i], again ? &b->of[i].again : &b->of[i].once);
    }
    weft_program_free(program);
    weft_scope_close(scope);
    free(outputs);
    free(t);
    for (int i = 0; i < GRAPHS_TOGETHER; i++) b->has[i] = b->has[i] && fine;
    return fine;
}

static void test_random_graphs(void **state) {
    (void)state;
    uint64_t count = number_from("WEFT_GRAPHS", test_on_cpu() ? 2000 : 112),
             first = number_from("WEFT_GRAPH_SEED", 1), failed = 0;
    machines m = {0};
    totals sum = {0};
    static batch together;
    open_machines(&m);
    for (uint64_t seed = first; seed < first + count && failed < number_from("WEFT_GRAPH_FAILURES", 3);
         seed++) {
        graph_options o = options_of(&m, seed);
        graph g;
        if (m.other && (seed - first) % GRAPHS_TOGETHER == 0 &&
            !run_batch(&m, seed, first + count - seed, &together)) {
            printf("graphs from %llu on as one program: %s\n", (unsigned long long)seed,
                   weft_last_error(m.other));
            failed++;
        }
        if (!graph_make(m.record, seed, &o, &g)) continue;
        sum.graphs++;
        sum.nodes += (uint64_t)g.n;
        sum.backward += g.loss >= 0;
        if (!check(&m, &g, m.other ? of_batch(&together, seed) : NULL, &sum)) continue;
        failed++;
        report(&m, &g);
    }
    close_machines(&m);
    drop_batch(&together);
    if (m.other)
        printf("random graphs: %d kernel sources in %d programs\n", (int)weft__gpu_hook.sources,
               (int)weft__gpu_hook.compiles);
    double ratio = sum.fused_kernels ? (double)sum.plain_kernels / (double)sum.fused_kernels : 0;
    printf("random graphs: cells=%llu fail=%llu seed=%llu nodes=%llu backward=%llu nodes/kernel=%.2f "
           "elements=%llu "
           "folds=%llu abstained=%.2f%% worst error/bound=%.3f\n",
           (unsigned long long)sum.graphs, (unsigned long long)failed, (unsigned long long)first,
           (unsigned long long)sum.nodes, (unsigned long long)sum.backward, ratio,
           (unsigned long long)sum.elements, (unsigned long long)sum.folds,
           100.0 * (double)sum.abstained / (double)(sum.elements ? sum.elements : 1), sum.worst);
    assert_int_equal(failed, 0);
    assert_true(count < 100 || !test_on_cpu() || (ratio >= 2.0 && sum.folds >= count / 40));
    assert_true(sum.abstained * 50 <= sum.elements);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
