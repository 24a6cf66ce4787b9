/* Rows and columns of many shapes on a GPU: norms and their gradients, column sums, alone and beside stored
 * results, elements of short rows, softmax and cross-entropy. On CUDA, teams of lanes hold rows in registers
 * or in local memory (kernel/render_team.c); the shapes are on both sides of each limit. Values are compared
 * with the interpreter's, and a second run must give the same bits. */
#include "unit/core_help.h"

#include "gpu.h"

static weft_context *gpu, *interp;

static int open_contexts(void **state) {
    (void)state;
    interp = open_device("interp", false);
    if (!test_without_gpu()) gpu = open_device(test_gpu(), false);
    return 0;
}

static int close_contexts(void **state) {
    (void)state;
    weft_close(gpu);
    weft_close(interp);
    return 0;
}

typedef struct shape {
    int64_t rows, n;
    weft_dtype dtype;
} shape;

/* Records results for a shape. Returns their number. */
typedef int record(weft_context *ctx, const shape *s, weft_tensor *out[8]);

static weft_tensor *matrix(weft_context *ctx, const shape *s, int salt) {
    if (s->dtype == WEFT_F32) return numbers(ctx, true, salt, SHAPE(s->rows, s->n));
    uint16_t *data = calloc((size_t)(s->rows * s->n), sizeof *data);
    for (int64_t i = 0; i < s->rows * s->n; i++)
        data[i] = weft_f32_to_bf16((float)sin(0.7 * (double)i + 1.3 * salt));
    weft_tensor *t = weft_variable_new(ctx, "x", s->dtype, SHAPE(s->rows, s->n), data);
    free(data);
    return t;
}

static int norms(weft_context *ctx, const shape *s, weft_tensor *out[8]) {
    weft_tensor *x = matrix(ctx, s, 1), *gamma = numbers(ctx, true, 2, SHAPE(s->n));
    weft_tensor *beta = numbers(ctx, true, 3, SHAPE(s->n)), *wrt[] = {x, gamma, beta};
    out[0] = weft_layer_norm(x, gamma, beta, 1e-5);
    weft_tensor *up = weft_cast(matrix(ctx, s, 4), WEFT_F32);
    weft_tensor *loss = weft_sum(weft_mul(weft_cast(out[0], WEFT_F32), up), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, wrt, 3, out + 1));
    out[4] = weft_rms_norm(x, gamma, 1e-5);
    return 5;
}

static int sums(weft_context *ctx, const shape *s, weft_tensor *out[8]) {
    weft_tensor *x = matrix(ctx, s, 1), *y = matrix(ctx, s, 2);
    out[0] = weft_sum(x, 0, false);
    out[1] = weft_max(weft_mul(x, y), 0, false);
    out[2] = weft_sum(weft_square(y), WEFT_ALL_AXES, false);
    out[3] = weft_sum(weft_reshape(x, SHAPE(1, s->rows, s->n)), 1, false);
    return 4;
}

static int losses(weft_context *ctx, const shape *s, weft_tensor *out[8]) {
    weft_tensor *x = matrix(ctx, s, 1), *wrt[] = {x};
    int32_t *at = calloc((size_t)s->rows, sizeof *at);
    for (int64_t i = 0; i < s->rows; i++) at[i] = (int32_t)(i * 7919 % s->n);
    weft_tensor *target = weft_from(ctx, WEFT_I32, SHAPE(s->rows), at);
    free(at);
    out[0] = weft_cross_entropy(x, target, NULL);
    assert_ok(weft_gradient(out[0], wrt, 1, out + 1));
    out[2] = weft_softmax(x, 1);
    return 3;
}

/* The gradient of an activation after a bias, which is stored, and the bias gradient, its column sums. */
static int activations(weft_context *ctx, const shape *s, weft_tensor *out[8]) {
    weft_tensor *x = matrix(ctx, s, 1), *up = matrix(ctx, s, 2), *bias = numbers(ctx, true, 3, SHAPE(s->n));
    weft_tensor *wrt[] = {x, bias}, *sum = weft_add(x, weft_cast(bias, s->dtype));
    weft_tensor *loss =
        weft_sum(weft_cast(weft_mul(weft_gelu_tanh(sum), up), WEFT_F32), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, wrt, 2, out));
    return 2;
}

/* Elements of rows, by numbers of their columns and of their rows, rounded once. */
static int elements(weft_context *ctx, const shape *s, weft_tensor *out[8]) {
    weft_tensor *x = weft_cast(matrix(ctx, s, 1), WEFT_F32), *scale = numbers(ctx, true, 2, SHAPE(s->n));
    weft_tensor *shift = numbers(ctx, true, 3, SHAPE(s->rows, 1));
    out[0] = weft_cast(weft_relu(weft_add(weft_mul(x, scale), shift)), s->dtype);
    out[1] = weft_sub(x, scale);
    return 2;
}

static double *read_all(weft_tensor *const *out, int count, int64_t *total) {
    *total = 0;
    for (int i = 0; i < count; i++) *total += weft_numel(out[i]);
    double *all = calloc((size_t)*total + 1, sizeof *all), *to = all;
    assert_ok(weft_eval((weft_tensor **)(uintptr_t)out, (size_t)count));
    for (int i = 0; i < count; i++) {
        const size_t bytes = (size_t)weft_numel(out[i]) * weft_dtype_size(weft_dtype_of(out[i]));
        unsigned char *raw = malloc(bytes + 1);
        assert_ok(weft_read(out[i], raw, bytes));
        for (int64_t e = 0; e < weft_numel(out[i]); e++) *to++ = weft__element(weft_dtype_of(out[i]), raw, e);
        free(raw);
    }
    return all;
}

static double *computed(weft_context *ctx, record *make, const shape *s, int64_t *total, double *largest) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *out[8];
    const int count = make(ctx, s, out);
    double *all = read_all(out, count, total);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        double most = 0;
        for (int64_t e = 0; e < weft_numel(out[i]); e++) most = fmax(most, fabs(all[at + e]));
        for (int64_t e = 0; largest && e < weft_numel(out[i]); e++) largest[at + e] = most;
        at += weft_numel(out[i]);
    }
    weft_scope_close(scope);
    return all;
}

static void check(record *make, const shape *shapes, size_t count) {
    if (!gpu) skip();
    for (size_t i = 0; i < count; i++) {
        const shape *s = &shapes[i];
        int64_t n, m, wrong = 0;
        double *largest = calloc((size_t)(8 * (s->rows + 2) * (s->n + 2)), sizeof *largest);
        double *want = computed(interp, make, s, &n, largest), *is = computed(gpu, make, s, &m, NULL);
        double *again = computed(gpu, make, s, &m, NULL);
        const double unit = s->dtype == WEFT_BF16 ? 0x1p-7 : 0x1p-17;
        assert_int_equal(n, m);
        assert_memory_equal(is, again, (size_t)n * sizeof *is);
        for (int64_t e = 0; e < n; e++) {
            if (fabs(is[e] - want[e]) <= unit * fmax(fabs(want[e]), largest[e] / 4)) continue;
            if (wrong++ < 3)
                print_error("%d x %d %s, value %d: %.9g, not %.9g\n", (int)s->rows, (int)s->n,
                            weft_dtype_name(s->dtype), (int)e, is[e], want[e]);
        }
        assert_int_equal(wrong, 0);
        free(largest);
        free(want);
        free(is);
        free(again);
    }
}

static void test_norms(void **state) {
    static const shape shapes[] = {{1030, 40, WEFT_BF16}, {1025, 33, WEFT_F32}, {260, 768, WEFT_BF16},
                                   {257, 1600, WEFT_F32}, {40, 770, WEFT_BF16}, {300, 769, WEFT_F32},
                                   {1100, 1, WEFT_F32}};
    (void)state;
    check(norms, shapes, COUNT(shapes));
}

static void test_sums(void **state) {
    static const shape shapes[] = {{2048, 40, WEFT_F32}, {3000, 7, WEFT_F32},   {300, 1000, WEFT_BF16},
                                   {31, 300, WEFT_F32},  {9001, 33, WEFT_BF16}, {100, 10, WEFT_F32},
                                   {1, 30000, WEFT_F32}};
    (void)state;
    check(sums, shapes, COUNT(shapes));
}

static void test_activations(void **state) {
    static const shape shapes[] = {{4096, 96, WEFT_BF16}, {2048, 1600, WEFT_F32}, {1024, 10, WEFT_F32},
                                   {513, 128, WEFT_BF16}, {130, 200, WEFT_F32},   {64, 33, WEFT_F32}};
    (void)state;
    check(activations, shapes, COUNT(shapes));
}

static void test_short_rows(void **state) {
    static const shape shapes[] = {{5000, 16, WEFT_F32}, {5000, 3, WEFT_F32},   {777, 10, WEFT_BF16},
                                   {100, 64, WEFT_BF16}, {1001, 100, WEFT_F32}, {3000, 1, WEFT_F32}};
    (void)state;
    check(elements, shapes, COUNT(shapes));
}

static void test_losses(void **state) {
    static const shape shapes[] = {{2, 8200, WEFT_BF16}, {2, 10000, WEFT_F32},  {1, 50304, WEFT_BF16},
                                   {1, 9001, WEFT_BF16}, {1030, 80, WEFT_BF16}, {2, 3000, WEFT_BF16},
                                   {1, 40000, WEFT_F32}, {2, 9002, WEFT_F32},   {66, 12280, WEFT_BF16}};
    (void)state;
    check(losses, shapes, COUNT(shapes));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norms), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_activations), cmocka_unit_test(test_short_rows),
                                       cmocka_unit_test(test_losses)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
