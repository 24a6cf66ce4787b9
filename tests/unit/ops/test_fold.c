/* Use cases of folds: linear models in one pass over their data, and the backward pass of layer norm with
 * the gradients of its parameters. The tests check values against the definition in f64, equal bits for
 * different numbers of threads, and the commands of the programs. */
#include "unit/core_help.h"

/* Numbers of that dtype in -1..1, half of which are rounded. */
static weft_tensor *data(weft_context *ctx, weft_dtype dtype, int salt, int rank, const int64_t *shape,
                         double *out) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    float *f32 = malloc((size_t)n * sizeof *f32);
    for (int64_t i = 0; i < n; i++) {
        out[i] = sin(0.7 * (double)i + 1.3 * salt);
        f32[i] = (float)out[i];
        if (dtype == WEFT_F32) out[i] = (double)f32[i];
    }
    weft_tensor *t = weft_from(ctx, dtype, rank, shape, dtype == WEFT_F32 ? (void *)f32 : (void *)out);
    free(f32);
    assert_ok(weft_tensor_status(t));
    return t;
}

static void read_doubles(weft_tensor *t, double *out) {
    const size_t n = (size_t)weft_numel(t);
    float *f32 = malloc(n * sizeof *f32);
    const bool single = weft_dtype_of(t) == WEFT_F32;
    assert_ok(weft_read(t, single ? (void *)f32 : (void *)out, n * (single ? 4 : 8)));
    for (size_t i = 0; single && i < n; i++) out[i] = (double)f32[i];
    free(f32);
}

/* Class D: |got - want| <= (2 log2 K + 4) u sum|terms|. The bound is doubled, because the terms have
 * rounding errors too. */
static void assert_sum(weft_dtype dtype, double got, double want, double size, int64_t terms) {
    const double u = dtype == WEFT_F32 ? 0x1p-24 : 0x1p-53;
    const double bound = 2 * (2 * log2((double)terms) + 4) * u * size;
    if (fabs(got - want) > bound) fail_msg("got %.17g, want %.17g, bound %g", got, want, bound);
}

typedef struct model {
    weft_tensor *x, *w, *y, *loss, *gradient[2]; /* gradients by w and b */
} model;

/* mean((X w + b - y)^2); with `left` the same as w^T X^T. */
static void record(weft_context *ctx, weft_dtype dtype, int64_t rows, int64_t columns, bool left,
                   double *const *values, model *m) {
    m->x = data(ctx, dtype, 1, SHAPE(rows, columns), values[0]);
    m->w = data(ctx, dtype, 2, SHAPE(columns, 1), values[1]);
    m->y = data(ctx, dtype, 3, SHAPE(rows, 1), values[2]);
    weft_tensor *b = data(ctx, dtype, 4, SHAPE(1), values[3]), *wrt[2] = {m->w, b};
    weft_tensor *product =
        left ? weft_transpose(weft_matmul(weft_transpose(m->w, 0, 1), weft_transpose(m->x, 0, 1)), 0, 1)
             : weft_matmul(m->x, m->w);
    m->loss = weft_mse(weft_add(product, b), m->y, WEFT_MEAN);
    assert_ok(weft_gradient(m->loss, wrt, 2, m->gradient));
    weft_tensor *out[3] = {m->loss, m->gradient[0], m->gradient[1]};
    assert_ok(weft_eval(out, 3));
}

static int fold_kernels(const weft_program *program) {
    int n = 0;
    for (int i = 0; i < program->commands.count; i++)
        n += program->commands.list[i].kernel && program->commands.list[i].kernel->n_fold > 0;
    return n;
}

/* With few rows there must be no folds. */
static void check_model(weft_dtype dtype, int64_t rows, int64_t columns, bool left) {
    double *values[4], got[70];
    for (int i = 0; i < 4; i++) values[i] = malloc(sizeof(double) * (size_t)(rows * columns));
    weft_context *one = open_device("cpu", false), *plain = open_device("cpu", true), *two = NULL;
    assert_ok(weft_open(&(weft_open_options){.device = "cpu", .threads = 2, .seed = 5}, &two));
    weft_context *contexts[3] = {one, two, plain};
    double first[70] = {0}, size[70] = {0}, want[70] = {0};
    for (int c = 0; c < 3; c++) {
        weft_scope *scope = weft_scope_open(contexts[c]);
        model m;
        record(contexts[c], dtype, rows, columns, left, values, &m);
        read_doubles(m.gradient[0], got);
        read_doubles(m.gradient[1], got + columns);
        read_doubles(m.loss, got + columns + 1);
        if (c == 0) { /* the reference, by the definition */
            for (int64_t i = 0; i < rows; i++) {
                double r = values[3][0] - values[2][i], terms = fabs(values[3][0]) + fabs(values[2][i]);
                for (int64_t j = 0; j < columns; j++) {
                    r += values[0][i * columns + j] * values[1][j];
                    terms += fabs(values[0][i * columns + j] * values[1][j]);
                }
                for (int64_t j = 0; j <= columns; j++) {
                    const double x = j < columns ? values[0][i * columns + j] : 1;
                    want[j] += 2 * r * x / (double)rows, size[j] += 2 * terms * fabs(x) / (double)rows;
                }
                want[columns + 1] += r * r / (double)rows,
                    size[columns + 1] += 2 * terms * terms / (double)rows;
            }
            if (rows >= 8192)
                assert_plan(newest(contexts[c]), 3, 0); /* one pass over X, and its partial sums */
            assert_int_equal(fold_kernels(newest(contexts[c])), rows >= 8192);
            memcpy(first, got, sizeof first);
        }
        for (int64_t j = 0; j < columns + 2; j++) {
            assert_sum(dtype, got[j], want[j], size[j], rows);
            if (c == 1) assert_true(got[j] == first[j]);
        }
        weft_scope_close(scope);
    }
    for (int c = 0; c < 3; c++) weft_close(contexts[c]);
    for (int i = 0; i < 4; i++) free(values[i]);
}

static void test_linear_models(void **state) {
    (void)state;
    const int64_t rows[] = {8200 /* 50 blocks of 164 */, 8209 /* a prime: 64 of 129, one of 82 */};
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_model(WEFT_F32, rows[i], 2, false);
        check_model(WEFT_F32, rows[i], 5, true);
        check_model(WEFT_F32, rows[i], 16, false);
        check_model(WEFT_F32, rows[i], 32, true);
        check_model(WEFT_F32, rows[i], 63, false);
        check_model(WEFT_F64, rows[i], 17, false);
        check_model(WEFT_F64, rows[i], 64, true);
    }
    check_model(WEFT_F32, 100003, 7, false);
    check_model(WEFT_F32, 1, 7, false);
    check_model(WEFT_F32, 31, 7, true);
    check_model(WEFT_F64, 1009, 3, false);
}

/* A matmul with any other shape than a long thin matrix stays a matmul. */
static void test_other_products(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    const int64_t shapes[][3] = {{8000, 32, 1}, {8200, 65, 1}, {8200, 32, 2}, {8200, 1, 1}, {1, 8000, 32}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const int64_t *s = shapes[i];
        weft_tensor *y =
            weft_matmul(numbers(ctx, false, 1, SHAPE(s[0], s[1])), numbers(ctx, false, 2, SHAPE(s[1], s[2])));
        assert_ok(weft_eval(&y, 1));
        assert_plan(newest(ctx), 0, 1);
    }
    weft_tensor *turned = numbers(ctx, false, 1, SHAPE(32, 8200)); /* its rows are not contiguous */
    weft_tensor *y = weft_matmul(weft_transpose(turned, 0, 1), numbers(ctx, false, 2, SHAPE(32, 1)));
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 0, 1);
    weft_close(ctx);
}

/* Lengths that are no multiple of the block size: the remainder is summed separately, without guards. */
static void test_rests(void **state) {
    (void)state;
    enum { N = 10007, C = 3 };
    weft_context *ctx = open_device("cpu", false);
    int32_t *x = malloc(sizeof(int32_t) * N * C);
    int64_t want[C + 1] = {0}, got[C + 1];
    for (int i = 0; i < N * C; i++) {
        x[i] = (int32_t)(weft__mix64((uint64_t)i) % 1000) - 500;
        want[i % C] += x[i], want[C] += i < N ? x[i] : 0;
    }
    weft_tensor *out[2] = {weft_sum(weft_from(ctx, WEFT_I32, SHAPE(N, C), x), 0, false),
                           weft_sum(weft_from(ctx, WEFT_I32, SHAPE(N), x), 0, false)};
    assert_ok(weft_eval(out, 2));
    const weft_program *program = newest(ctx);
    for (int i = 0; i < program->commands.count; i++) {
        const weft_kernel *kernel = program->commands.list[i].kernel;
        for (int v = 0; kernel && v < kernel->n_views; v++)
            assert_false(weft__view_guarded(&kernel->views[v]) || kernel->views[v].count > 1);
    }
    assert_ok(weft_read(out[0], got, sizeof(int64_t) * C));
    assert_ok(weft_read(out[1], got + C, sizeof(int64_t)));
    assert_memory_equal(got, want, sizeof want);
    free(x);
    weft_close(ctx);
}

/* Other results with a prime number of rows, in a program that folds sums over these rows: stored values,
 * sums that cannot join the kernel of the folds, sums of inputs and of views. */
enum { PRIME = 8219, COMPANY = 11 };

static void record_company(weft_context *ctx, weft_tensor **out) {
    double *unused = malloc(sizeof(double) * PRIME * 3);
    weft_tensor *x = data(ctx, WEFT_F64, 1, SHAPE(PRIME, 3), unused);
    weft_tensor *y = data(ctx, WEFT_F64, 2, SHAPE(PRIME, 1), unused);
    weft_tensor *w = data(ctx, WEFT_F64, 3, SHAPE(3, 1), unused);
    weft_tensor *p = weft_add(weft_matmul(x, w), weft_slice(w, NULL, (int64_t[]){1, 1}, NULL));
    weft_tensor *centred = weft_sub(p, weft_mean(p, 0, true));
    weft_tensor *turned = weft_flip(weft_flip(x, 0), 1);
    int n = 0;
    out[n++] = p;
    out[n++] = weft_sum(p, WEFT_ALL_AXES, false);
    out[n++] = weft_sum(weft_mul(weft_exp(p), y), 0, false);
    out[n++] = weft_sum(weft_square(centred), WEFT_ALL_AXES, false);
    out[n++] = weft_sum(y, WEFT_ALL_AXES, false);
    out[n++] = weft_sum(x, 0, false);
    out[n++] = weft_sum(weft_mul(turned, p), 0, false);
    out[n++] = weft_matmul(weft_transpose(x, 0, 1), centred);
    out[n++] = weft_max(p, 0, false);
    out[n++] = weft_sum(weft_mul(x, weft_slice(p, (int64_t[]){5, 0}, (int64_t[]){6, 1}, NULL)), 0, false);
    out[n++] = weft_sum(weft_sum(weft_mul(x, centred), 1, false), WEFT_ALL_AXES, false);
    assert_int_equal(n, COMPANY);
    free(unused);
}

static void test_company(void **state) {
    (void)state;
    static const char *const devices[] = {"cpu", "cpu", "interp"};
    double *got = malloc(sizeof(double) * PRIME), *want[COMPANY];
    for (int c = 0; c < 3; c++) {
        weft_context *ctx = open_device(devices[c], c == 0);
        weft_tensor *out[COMPANY];
        record_company(ctx, out);
        assert_ok(weft_eval(out, COMPANY));
        if (c > 0) assert_true(fold_kernels(newest(ctx)) > 0);
        for (int i = 0; i < COMPANY; i++) {
            const int64_t n = weft_numel(out[i]);
            double *to = c == 0 ? want[i] = malloc(sizeof(double) * (size_t)n) : got;
            assert_ok(weft_read(out[i], to, sizeof(double) * (size_t)n));
            for (int64_t k = 0; c > 0 && k < n; k++)
                if (fabs(got[k] - want[i][k]) > 1e-10)
                    fail_msg("output %d element %d: %.17g, %.17g", i, (int)k, got[k], want[i][k]);
        }
        weft_close(ctx);
    }
    for (int i = 0; i < COMPANY; i++) free(want[i]);
    free(got);
}

/* The backward pass of layer norm, with the gradients of scale and shift, and of the bias that was added
 * before. */
static void test_layer_norm(void **state) {
    (void)state;
    weft_context *fused = open_device("cpu", false), *plain = open_device("cpu", true);
    const int64_t n = 768 * 128;
    float *got[4], *want[4];
    for (int i = 0; i < 4; i++) got[i] = malloc(n * 4), want[i] = malloc(n * 4);
    for (int c = 0; c < 2; c++) {
        weft_context *ctx = c == 0 ? fused : plain;
        weft_tensor *x = numbers(ctx, false, 1, SHAPE(12, 64, 128)),
                    *bias = numbers(ctx, false, 2, SHAPE(128));
        weft_tensor *gamma = numbers(ctx, false, 3, SHAPE(128)), *beta = numbers(ctx, false, 4, SHAPE(128));
        weft_tensor *seed = numbers(ctx, false, 5, SHAPE(12, 64, 128)), *wrt[4] = {x, bias, gamma, beta},
                    *out[4];
        weft_tensor *y = weft_layer_norm(weft_add(x, bias), gamma, beta, 1e-5);
        assert_ok(weft_gradient(weft_sum(weft_mul(y, seed), WEFT_ALL_AXES, false), wrt, 4, out));
        assert_ok(weft_eval(out, 4));
        if (c == 0) {
            assert_plan(newest(ctx), 2, 0); /* forward and backward in one kernel, then the blocks */
            assert_int_equal(fold_kernels(newest(ctx)), 1);
        }
        for (int i = 0; i < 4; i++)
            assert_ok(weft_read(out[i], c == 0 ? got[i] : want[i], (size_t)weft_numel(out[i]) * 4));
    }
    for (int64_t i = 0; i < n; i++) assert_float_equal(got[0][i], want[0][i], 1e-5);
    for (int k = 1; k < 4; k++)
        for (int i = 0; i < 128; i++) assert_float_equal(got[k][i], want[k][i], 2e-4); /* sums of 768 */
    for (int i = 0; i < 4; i++) free(got[i]), free(want[i]);
    weft_close(fused);
    weft_close(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_models), cmocka_unit_test(test_other_products),
        cmocka_unit_test(test_rests),         cmocka_unit_test(test_company),
        cmocka_unit_test(test_layer_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
