/* A read changes no gradient: random graphs give the same first and second derivatives with reads at random
 * places and without, by leaves, variables and intermediate tensors, on cpu and interp.
 *
 * A read cuts a program in two, so sums may be rounded otherwise. WEFT_GRAPHS sets the number of graphs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/weft.h>
#include "graph/random_graph.h"

enum { WRT = 24, DOUBLES = 4096 };

typedef struct derivatives {
    weft_status status[2]; /* of the first and the second derivatives */
    int n;
    int64_t counts[2 * WRT];
    double *values[2 * WRT]; /* NULL: could not be computed */
} derivatives;

static void drop(derivatives *d) {
    for (int i = 0; i < d->n; i++) free(d->values[i]);
    d->n = 0;
}

static void read_one(weft_tensor *t) {
    void *bytes = malloc((size_t)weft_numel(t) * weft_dtype_size(weft_dtype_of(t)) + 1);
    assert_non_null(bytes);
    assert_int_equal(weft_read(t, bytes, (size_t)weft_numel(t) * weft_dtype_size(weft_dtype_of(t))), WEFT_OK);
    free(bytes);
}

/* Reads some of the tensors, if there are reads at all. */
static void read_some(uint64_t *reads, weft_tensor *const *list, int n) {
    for (int i = 0; *reads && i < n; i++)
        if (list[i] && graph_below(reads, 3) == 0) read_one(list[i]);
}

static void take(weft_tensor *const *grads, int n, derivatives *out) {
    for (int i = 0; i < n; i++) {
        const int64_t count = weft_numel(grads[i]);
        double *values = malloc((size_t)count * sizeof *values + 1);
        assert_non_null(values);
        assert_int_equal(weft_read(weft_cast(grads[i], WEFT_F64), values, (size_t)count * sizeof *values),
                         WEFT_OK);
        out->counts[out->n] = count;
        out->values[out->n++] = values;
    }
}

/* A variable with the values of a leaf. */
static weft_tensor *variable_of(weft_context *ctx, weft_tensor *leaf) {
    double values[DOUBLES];
    const size_t bytes = (size_t)weft_numel(leaf) * weft_dtype_size(weft_dtype_of(leaf));
    if (bytes > sizeof values) return leaf;
    assert_int_equal(weft_read(leaf, values, bytes), WEFT_OK);
    return weft_variable_new(ctx, "v", weft_dtype_of(leaf), weft_rank(leaf), weft_shape(leaf), values);
}

static weft_tensor *sum_of_squares(weft_tensor *const *grads, int n) {
    weft_tensor *total = NULL;
    for (int i = 0; i < n; i++) {
        weft_tensor *sum = weft_sum(weft_square(weft_cast(grads[i], WEFT_F64)), WEFT_ALL_AXES, false);
        total = total ? weft_add(total, sum) : sum;
    }
    return total;
}

/* The derivatives of a graph. reads 0: nothing is read in between; else the state of a random stream. */
static bool derive(weft_context *ctx, const graph *g, uint64_t reads, derivatives *out) {
    weft_tensor *made[GRAPH_NODES], *wrt[WRT], *grads[WRT], *second[WRT];
    const bool variables = g->seed % 3 == 0;
    int n = 0;
    memset(out, 0, sizeof *out);
    weft_seed(ctx, 77, 3);
    for (int i = 0; i < g->n; i++) {
        const bool real = weft_dtype_is_float(g->node[i].dtype), leaf = g->node[i].kind == GRAPH_LEAF;
        made[i] = graph_record_node(ctx, g, i, made);
        if (weft_tensor_status(made[i]) != WEFT_OK) return false;
        if (leaf && real && variables) made[i] = variable_of(ctx, made[i]);
        if (real && n < WRT && (leaf || (g->seed + (uint64_t)i) % 5 == 0)) wrt[n++] = made[i];
        read_some(&reads, &made[i], 1);
    }
    read_some(&reads, made, g->n);
    out->status[0] = weft_gradient(made[g->loss], wrt, (size_t)n, grads);
    if (out->status[0] != WEFT_OK || n == 0) return true;
    read_some(&reads, made, g->n);
    read_some(&reads, grads, n);
    out->status[1] = weft_gradient(sum_of_squares(grads, n), wrt, (size_t)n, second);
    read_some(&reads, grads, n);
    if (out->status[1] == WEFT_OK) take(second, n, out);
    take(grads, n, out);
    return true;
}

/* Rounding grows with the largest value of a derivative. */
static void compare(const graph *g, const derivatives *a, const derivatives *b, const char *device) {
    for (int s = 0; s < 2; s++)
        if (a->status[s] != b->status[s]) {
            graph_print(g, stdout);
            fail_msg("%s: derivative %d: %s without reads, %s with", device, s + 1,
                     weft_status_name(a->status[s]), weft_status_name(b->status[s]));
        }
    assert_int_equal(a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        double largest = 1e-3;
        for (int64_t k = 0; k < a->counts[i]; k++) largest = fmax(largest, fabs(a->values[i][k]));
        for (int64_t k = 0; k < a->counts[i]; k++)
            if (!(fabs(a->values[i][k] - b->values[i][k]) <= 1e-3 * largest)) {
                graph_print(g, stdout);
                fail_msg("%s: derivative %d, element %lld: %g without reads, %g with", device, i,
                         (long long)k, a->values[i][k], b->values[i][k]);
            }
    }
}

/* The context may be closed with variables in it; a new one for each graph keeps it small. */
static uint64_t check(const char *device, const graph *g) {
    derivatives without, with;
    uint64_t compared = 0;
    for (int way = 0; way < 3; way++) {
        weft_context *ctx;
        assert_int_equal(weft_open(&(weft_open_options){.device = device, .threads = 1}, &ctx), WEFT_OK);
        weft_scope *scope = weft_scope_open(ctx);
        if (way == 0 && !derive(ctx, g, 0, &without)) without.n = 0;
        if (way > 0 && derive(ctx, g, g->seed * 16 + (uint64_t)way, &with)) {
            compare(g, &without, &with, device);
            compared += (uint64_t)with.n;
            drop(&with);
        }
        weft_scope_close(scope);
        weft_close(ctx);
    }
    drop(&without);
    return compared;
}

static void test_random_reads(void **state) {
    (void)state;
    const char *text = getenv("WEFT_GRAPHS");
    const uint64_t count = text && *text ? strtoull(text, NULL, 10) : 300;
    uint64_t compared = 0, graphs = 0;
    weft_context *record;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &record), WEFT_OK);
    for (uint64_t seed = 1; seed <= count; seed++) {
        graph g;
        if (!graph_make(record, seed,
                        &(graph_options){.backward = true, .size = 4 + (int)(seed % 12), .most = 60}, &g) ||
            g.loss < 0 || g.halves)
            continue;
        graphs++;
        compared += check("cpu", &g) + check("interp", &g);
    }
    weft_close(record);
    print_message("reads: cells=%llu fail=0 skip=0, derivatives compared: %llu\n", (unsigned long long)graphs,
                  (unsigned long long)compared);
    assert_true(count < 100 || (graphs > count / 4 && compared > 10 * graphs));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
