/* Tests of compiler/passes/parts.c: a value that is assembled from parts is stored part by part, and equals
 * the value that unfused kernels compute. */
#include "unit/core_help.h"

enum { ROWS = 128, COLUMNS = 256, NUMEL = ROWS * COLUMNS };

/* A graph of x (128, 256) and y (128, 128). */
typedef weft_tensor *graph(weft_tensor *x, weft_tensor *y);

static weft_tensor *columns(weft_tensor *x, int64_t from, int64_t to, int64_t step) {
    return weft_slice(x, (int64_t[]){0, from}, (int64_t[]){ROWS, to}, (int64_t[]){1, step});
}

static weft_tensor *both(weft_tensor *a, weft_tensor *b, int axis) {
    return weft_concat((weft_tensor *[]){a, b}, 2, axis);
}

static weft_tensor *gradient(weft_tensor *y, weft_tensor *x) {
    weft_tensor *g = NULL;
    assert_ok(weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &x, 1, &g));
    return g;
}

static weft_tensor *heads(weft_tensor *x, int64_t n) { /* (B, H, T, D), a view of (B T, H D) */
    return weft_permute(weft_reshape(x, SHAPE(4, ROWS / 4, n, weft_dim(x, 1) / n)), (int[]){0, 2, 1, 3});
}

static weft_tensor *side_by_side(weft_tensor *x, weft_tensor *y) { return both(weft_exp(y), x, 1); }
static weft_tensor *one_below_the_other(weft_tensor *x, weft_tensor *y) {
    return both(weft_neg(x), weft_mul(both(y, y, 1), x), 0);
}
static weft_tensor *stacked(weft_tensor *x, weft_tensor *y) {
    (void)x;
    return weft_stack((weft_tensor *[]){weft_exp(y), y, weft_neg(y)}, 3, -1);
}
static weft_tensor *turned(weft_tensor *x, weft_tensor *y) {
    return both(weft_transpose(weft_exp(x), 0, 1), weft_sin(both(y, y, 0)), 1);
}
static weft_tensor *nested(weft_tensor *x, weft_tensor *y) {
    return both(both(weft_exp(y), weft_reshape(both(y, weft_neg(y), 0), SHAPE(ROWS, 2 * ROWS)), 1),
                weft_tanh(x), 1);
}
static weft_tensor *of_rows(weft_tensor *x, weft_tensor *y) { return both(weft_softmax(x, -1), y, 1); }
static weft_tensor *multiplied(weft_tensor *x, weft_tensor *y) {
    weft_tensor *a = both(weft_tanh(x), weft_exp(y), 1);
    return weft_matmul(a, weft_transpose(a, 0, 1));
}
static weft_tensor *gated(weft_tensor *x, weft_tensor *y) {
    return gradient(weft_mul(weft_mul(weft_silu(columns(x, 0, 128, 1)), columns(x, 128, 256, 1)), y), x);
}
static weft_tensor *uneven(weft_tensor *x, weft_tensor *y) {
    weft_tensor *q = weft_sin(columns(x, 0, 128, 1)), *k = weft_exp(columns(x, 128, 161, 1));
    weft_tensor *v = weft_square(columns(x, 161, 256, 1));
    return gradient(weft_add(weft_mul(q, y), weft_add(weft_sum(k, 1, true), weft_sum(v, 1, true))), x);
}
static weft_tensor *even_and_odd(weft_tensor *x, weft_tensor *y) {
    return gradient(weft_mul(weft_mul(weft_exp(columns(x, 0, 256, 2)), columns(x, 1, 256, 2)), y), x);
}
static weft_tensor *turning_halves(weft_tensor *x, weft_tensor *y) {
    (void)y;
    weft_tensor *q = weft_rotary(heads(columns(x, 0, 128, 1), 4), NULL, NULL);
    weft_tensor *k = weft_rotary(heads(columns(x, 128, 192, 1), 2), NULL, NULL);
    weft_tensor *v = heads(columns(x, 192, 256, 1), 2);
    return gradient(weft_mul(weft_square(q), weft_repeat_interleave(weft_mul(k, weft_exp(v)), 2, 1)), x);
}
static weft_tensor *turning_neighbours(weft_tensor *x, weft_tensor *y) {
    weft_tensor *q =
        weft_rotary(heads(columns(x, 0, 128, 1), 4), NULL, &(weft_rotary_options){.interleaved = true});
    return gradient(weft_mul(weft_square(q), weft_exp(heads(weft_mul(columns(x, 128, 256, 1), y), 4))), x);
}

/* If the parts overlap or leave a gap, the sum or choice is not changed. */
static weft_tensor *overlapping(weft_tensor *x, weft_tensor *y) {
    weft_tensor *wide = columns(x, 0, 129, 1);
    return gradient(
        weft_add(weft_mul(weft_exp(columns(x, 128, 256, 1)), y), weft_sum(weft_sin(wide), 1, true)), x);
}
static weft_tensor *with_a_gap(weft_tensor *x, weft_tensor *y) {
    weft_tensor *narrow = columns(x, 0, 127, 1);
    return gradient(
        weft_add(weft_mul(weft_exp(columns(x, 128, 256, 1)), y), weft_sum(weft_sin(narrow), 1, true)), x);
}
static weft_tensor *chosen(weft_tensor *x, weft_tensor *y) {
    return weft_where(weft_gt(x, weft_exp(x)), x, both(y, y, 1));
}

static weft_tensor *left_over(weft_tensor *x, weft_tensor *y) { /* not a multiple of a vector */
    weft_tensor *a = columns(weft_exp(x), 0, 101, 1), *b = columns(y, 1, 100, 1);
    return both(a, b, 1);
}

typedef struct parts_case {
    const char *name;
    graph *make;
    int parts; /* number of parts stored in their place */
    bool gpu;  /* also on GPU devices, whose compilers are slow */
} parts_case;

static const parts_case cases[] = {{"side_by_side", side_by_side, 2, true},
                                   {"one_below_the_other", one_below_the_other, 2, false},
                                   {"stacked", stacked, 3, false},
                                   {"turned", turned, 2, false},
                                   {"nested", nested, 3, false},
                                   {"of_rows", of_rows, 2, false},
                                   {"multiplied", multiplied, 2, false},
                                   {"gated", gated, 2, true},
                                   {"uneven", uneven, 3, false},
                                   {"even_and_odd", even_and_odd, 2, true},
                                   {"turning_halves", turning_halves, 3, false},
                                   {"turning_neighbours", turning_neighbours, 2, false},
                                   {"left_over", left_over, 2, false},
                                   {"overlapping", overlapping, 1, false},
                                   {"with_a_gap", with_a_gap, 1, false},
                                   {"chosen", chosen, 1, false}};

/* The number of stores of the newest program into its output, or into a value between. */
static int parts_of(weft_context *ctx) {
    const weft_program *program = newest(ctx);
    int n = 0;
    for (int c = 0; c < program->commands.count; c++) {
        const weft_kernel *k = weft__command_kernel(&program->commands.list[c]);
        for (int i = 0; k && i < k->n_code; i++) {
            if (k->code[i].kind != WEFT_INSTR_STORE) continue;
            const weft_operand *to = &program->commands.list[c].operands[k->code[i].arg];
            n += to->slot == program->outputs.slots[0] ||
                 (!k->n_reduce && !weft__view_is_identity(&k->views[k->code[i].view]));
        }
    }
    return n;
}

static float *values_of(const char *device, bool plain, const parts_case *c, weft_dtype dtype, int64_t *n,
                        int *parts) {
    weft_context *ctx = open_device(device, plain);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_cast(numbers(ctx, false, 1, SHAPE(ROWS, COLUMNS)), dtype);
    weft_tensor *y = weft_cast(numbers(ctx, false, 2, SHAPE(ROWS, COLUMNS / 2)), dtype);
    assert_ok(weft_eval((weft_tensor *[]){x, y}, 2));
    weft_tensor *z = c->make(x, y);
    assert_ok(weft_eval(&z, 1));
    *parts = parts_of(ctx);
    z = weft_cast(z, WEFT_F32);
    *n = weft_numel(z);
    float *out = malloc((size_t)*n * sizeof *out);
    assert_ok(weft_read(z, out, (size_t)*n * sizeof *out));
    weft_scope_close(scope);
    weft_close(ctx);
    return out;
}

static void compare(const parts_case *c, weft_dtype dtype, double bound) {
    int64_t n, m;
    int parts, none;
    float *got = values_of(test_device(), false, c, dtype, &n, &parts);
    float *want = values_of("interp", true, c, dtype, &m, &none);
    assert_int_equal(n, m);
    if (parts != c->parts) fail_msg("%s: %d parts, not %d", c->name, parts, c->parts);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= bound * (1 + fabs((double)want[i]))))
            fail_msg("%s: element %lld is %g, not %g", c->name, (long long)i, (double)got[i],
                     (double)want[i]);
    free(got);
    free(want);
}

static bool is_cheap(void) { return test_on_cpu() || strcmp(test_device(), "interp") == 0; }

static void test_same_values(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (cases[i].gpu || is_cheap()) compare(&cases[i], WEFT_F32, 2e-5);
}

static void test_sixteen_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (is_cheap()) compare(&cases[i], WEFT_BF16, 0.04);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_values),
                                       cmocka_unit_test(test_sixteen_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
