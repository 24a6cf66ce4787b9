/* Complex numbers in user code: values and gradients against PyTorch's (complex.inc, written by
 * make_complex.py), variables, printing, the commands of their programs, and what is refused. */
#include <complex.h>
#undef I

#include "compiler/passes/ir.h"
#include "unit/parity/complex.inc"
#include "unit/core_help.h"
#include <unistd.h>

typedef float _Complex number;

static void pattern_values(int by, int64_t n, float *data) {
    for (int64_t i = 0; i < n; i++) data[i] = (float)((i * by + 3) % 17 - 8) / 8 + 0.0625F;
}

static weft_tensor *pattern(weft_context *ctx, int by, int rank, const int64_t *shape) {
    float data[64];
    int64_t n = 2;
    for (int i = 0; i < rank; i++) n *= shape[i];
    assert_true(n <= (int64_t)COUNT(data));
    pattern_values(by, n, data);
    return weft_variable_new(ctx, "v", WEFT_C64, rank, shape, data);
}

static void assert_near(weft_tensor *t, const float *want, size_t n) {
    float got[64];
    assert_int_equal(weft_numel(t) * (weft_dtype_of(t) == WEFT_C64 ? 2 : 1), n);
    assert_ok(weft_read(t, got, n * sizeof *got));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("part %zu of %zu is %.9g, PyTorch has %.9g", i, n, (double)got[i], (double)want[i]);
}

static weft_tensor *total(weft_tensor *t) { return weft_sum(t, WEFT_ALL_AXES, false); }

static void test_parity(void **state) {
    (void)state;
    weft_context *ctx = open_device(test_device(), false);
    weft_tensor *in[3] = {pattern(ctx, 5, SHAPE(3, 4)), pattern(ctx, 7, SHAPE(4, 2)),
                          pattern(ctx, 3, SHAPE(3, 2))};
    weft_tensor *y = weft_matmul(in[0], in[1]), *grads[3];
    weft_tensor *loss = total(weft_abs(weft_exp(weft_div(weft_mul_scalar(y, 0.3), in[2]))));
    loss = weft_add(loss, weft_mul_scalar(total(weft_angle(weft_conj(y))), 0.1));
    loss = weft_add(loss, weft_real(total(weft_mul(weft_log(in[0]), weft_sqrt(in[0])))));
    weft_tensor *all = weft_prod(in[1], WEFT_ALL_AXES, false);
    loss = weft_add(loss, weft_mul_scalar(weft_abs(all), 0.01));
    assert_ok(weft_gradient(loss, in, 3, grads));
    assert_near(y, complex_y, COUNT(complex_y));
    assert_near(loss, complex_loss, COUNT(complex_loss));
    assert_near(grads[0], complex_z, COUNT(complex_z));
    assert_near(grads[1], complex_w, COUNT(complex_w));
    assert_near(grads[2], complex_v, COUNT(complex_v));
    weft_close(ctx);
}

/* Several elementwise operations become one kernel, which reads each operand once and stores pairs. A
 * matmul is one command, also with conjugates. So are its gradients: g b^H and a^H g read the conjugated
 * operand in place. */
static void test_programs(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_tensor *z = pattern(ctx, 5, SHAPE(3, 4)), *w = pattern(ctx, 7, SHAPE(3, 4)),
                *v = pattern(ctx, 3, SHAPE(4, 2));
    weft_tensor *y = weft_conj(weft_add(weft_mul(weft_mul(z, w), z), w));
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 1, 0);
    weft_tensor *product = weft_matmul(z, v);
    assert_ok(weft_eval(&product, 1));
    assert_plan(newest(ctx), 0, 1);
    weft_tensor *u = weft_matmul(weft_conj(z), weft_transpose(weft_conj(w), 0, 1));
    assert_ok(weft_eval(&u, 1));
    assert_plan(newest(ctx), 0, 1);
    weft_tensor *loss = total(weft_real(weft_mul(weft_matmul(z, v), pattern(ctx, 3, SHAPE(3, 2))))),
                *grads[2];
    assert_ok(weft_gradient(loss, (weft_tensor *[]){z, v}, 2, grads));
    assert_ok(weft_eval(grads, 2));
    assert_plan(newest(ctx), 1, 2); /* the gradient of the elementwise product, and of both its operands */
    weft_close(ctx);
}

/* Gradient descent on |w z - 1|^2 must reach 0, where w is the inverse of z. */
static void test_descent(void **state) {
    (void)state;
    weft_context *ctx = open_device(test_device(), false);
    const number start = 0, factor = 0.6F + 0.8F * _Complex_I;
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_C64, 0, NULL, &start), *gradient;
    for (int step = 0; step < 40; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *z = weft_from(ctx, WEFT_C64, 0, NULL, &factor);
        weft_tensor *size = weft_abs(weft_add_scalar(weft_mul(w, z), -1));
        assert_ok(weft_gradient(weft_square(size), &w, 1, &gradient));
        weft_tensor *next = weft_sub(w, weft_mul_scalar(gradient, 0.3));
        assert_ok(weft_assign(&w, &next, 1));
        weft_scope_close(scope);
    }
    number got;
    assert_ok(weft_read(w, &got, sizeof got));
    assert_true(cabsf(got - (0.6F - 0.8F * _Complex_I)) < 1e-5F);
    weft_close(ctx);
}

/* ---- parameters ---- */

static weft_tensor *affine(weft_module *m, weft_tensor *x) {
    weft_tensor *w = weft_transpose(weft_parameter(m, "w"), 0, 1);
    return weft_add(weft_matmul(x, w), weft_parameter(m, "b"));
}

/* A real parameter between complex ones: all share one block. */
static weft_module *affine_new(weft_context *ctx, weft_dtype dtype) {
    weft_module *m = weft_module_new(ctx, "affine", affine, NULL);
    assert_ok(weft_module_parameter(m, "w", dtype, SHAPE(3, 4), NULL));
    assert_ok(weft_module_parameter(m, "a", WEFT_F32, SHAPE(3), NULL));
    assert_ok(weft_module_parameter(m, "b", dtype, SHAPE(3), NULL));
    return m;
}

static void set(weft_module *m, const char *name, const float *data, size_t n) {
    weft_parameter_info info;
    assert_true(weft_parameter_find(m, name, &info));
    assert_ok(weft_write(info.tensor, data, n * sizeof *data));
}

static void get(weft_module *m, float *out) {
    static const char *const names[] = {"a", "w", "b"};
    static const size_t sizes[] = {3, 24, 6};
    weft_parameter_info info;
    for (int i = 0; i < 3; out += sizes[i++]) {
        assert_true(weft_parameter_find(m, names[i], &info));
        assert_ok(weft_read(info.tensor, out, sizes[i] * sizeof *out));
    }
}

typedef weft_optimizer *(*make_fn)(weft_module *m);
static weft_optimizer *make_sgd(weft_module *m) {
    return weft_sgd(m, &(weft_sgd_options){.lr = 0.02, .momentum = 0.9, .clip = 1});
}
static weft_optimizer *make_adam(weft_module *m) {
    return weft_adam(m, &(weft_adam_options){.lr = 0.05, .weight_decay = 0.1});
}
static weft_optimizer *make_rmsprop(weft_module *m) {
    return weft_rmsprop(m, &(weft_rmsprop_options){.lr = 0.01});
}

static void train(weft_module *m, make_fn make, float *result) {
    weft_context *ctx = weft_module_context(m);
    float data[24], real[3] = {0.5F, 1.5F, 1};
    pattern_values(5, 24, data);
    set(m, "w", data, 24);
    pattern_values(7, 6, data);
    set(m, "b", data, 6);
    set(m, "a", real, 3);
    weft_optimizer *opt = make(m);
    assert_ok(weft_optimizer_status(opt));
    weft_tensor *x = pattern(ctx, 7, SHAPE(2, 4)), *target = pattern(ctx, 3, SHAPE(2, 3));
    for (int step = 0; step < 4; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *squares = weft_square(weft_abs(weft_sub(weft_forward(m, x), target)));
        assert_ok(weft_optimizer_step(opt, total(weft_mul(squares, weft_parameter(m, "a")))));
        weft_scope_close(scope);
    }
    get(m, result);
    weft_optimizer_free(opt);
}

/* Optimizers see pairs of floats, as in PyTorch. Files hold c64 but not c128, which the format lacks. */
static void test_parameters(void **state) {
    (void)state;
    static const struct {
        make_fn make;
        const float *want;
    } cases[] = {{make_adam, complex_adam}, {make_sgd, complex_sgd}, {make_rmsprop, complex_rmsprop}};
    weft_context *ctx = open_device(test_device(), false);
    weft_module *m = affine_new(ctx, WEFT_C64), *copy = affine_new(ctx, WEFT_C64);
    float got[33], again[33];
    for (size_t c = 0; c < (test_on_cpu() ? COUNT(cases) : 1); c++) {
        train(m, cases[c].make, got);
        for (size_t i = 0; i < COUNT(got); i++)
            if (!(fabsf(got[i] - cases[c].want[i]) <= 1e-5F * fmaxf(1, fabsf(cases[c].want[i]))))
                fail_msg("case %zu: float %zu is %.9g, PyTorch has %.9g", c, i, (double)got[i],
                         (double)cases[c].want[i]);
    }
    char path[] = "/tmp/weft-complex-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(weft_module_save(m, path));
    assert_ok(weft_module_load(copy, path));
    get(copy, again);
    assert_memory_equal(got, again, sizeof got);
    weft_close(ctx);
    ctx = open_device("cpu", false);
    assert_int_equal(weft_module_save(affine_new(ctx, WEFT_C128), path), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "c128"));
    unlink(path);
    weft_close(ctx);
}

/* Initial values have PyTorch's variances. Both components have the same distribution, but different
 * values. */
static void test_first_values(void **state) {
    (void)state;
    enum { N = 4096 };
    static float v[2 * N];
    static const struct {
        weft_init init;
        double square, most; /* the variance of one component */
    } cases[] = {{{WEFT_INIT_UNIFORM, 0.5}, 0.25 / 3, 0.5}, {{WEFT_INIT_NORMAL, 2}, 2, 20}};
    weft_context *ctx = open_device("cpu", false);
    for (size_t c = 0; c < COUNT(cases); c++) {
        weft_module *m = weft_module_new(ctx, "custom", affine, NULL);
        double square[2] = {0}, both = 0;
        assert_ok(weft_module_parameter(m, "w", WEFT_C64, SHAPE(N), &cases[c].init));
        weft_parameter_info info;
        assert_true(weft_parameter_find(m, "w", &info));
        assert_ok(weft_read(info.tensor, v, sizeof v));
        for (int i = 0; i < 2 * N; i++) {
            square[i % 2] += (double)(v[i] * v[i]) / (double)N;
            both += i % 2 ? (double)(v[i] * v[i - 1]) / (double)N : 0;
            assert_true((double)fabsf(v[i]) <= cases[c].most);
        }
        for (int i = 0; i < 2; i++) assert_true(fabs(square[i] / cases[c].square - 1) < 0.1);
        assert_true(fabs(both) < 0.1 * cases[c].square);
    }
    weft_close(ctx);
}

static void test_text(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    const number z[2] = {1 - 2 * _Complex_I, 0.5F * _Complex_I};
    number back[2];
    char text[100];
    weft_tensor *t = weft_from(ctx, WEFT_C64, SHAPE(2), z);
    assert_true(weft_format(t, text, sizeof text) > 0);
    assert_string_equal(text, "c64 [2] [1-2i, 0+0.5i]");
    assert_ok(weft_read(weft_cast(weft_cast(t, WEFT_C128), WEFT_C64), back, sizeof back));
    assert_memory_equal(back, z, sizeof z);
    assert_true(isnan(weft_item(weft_narrow(t, 0, 0, 1))));
    assert_non_null(strstr(weft_last_error(ctx), "weft_item: c64 [1] is not a real number"));
    weft_close(ctx);
}

/* A number divided by infinity is 0, whatever its angle. Square roots of infinity are as in C. */
static void test_infinite(void **state) {
    (void)state;
    weft_context *ctx = open_device(test_device(), false);
    const float inf = INFINITY, z[8] = {inf, 0, 2, -inf, -inf, inf, 1e30F, 1e30F};
    const float quotients[8] = {0, 0, 0, 0, 0, 0, 1e-30F, 0}, roots[6] = {inf, 0, inf, -inf, inf, inf};
    weft_tensor *t = weft_from(ctx, WEFT_C64, SHAPE(4), z);
    weft_tensor *a = weft_from(ctx, WEFT_C64, SHAPE(4), (float[]){1, 2, -1, 3, 4, 1, 1, 1});
    float got[8];
    assert_ok(weft_read(weft_div(a, t), got, sizeof got));
    for (int i = 0; i < 8; i++) assert_true(fabsf(got[i] - quotients[i]) <= 1e-36F);
    assert_ok(weft_read(weft_sqrt(t), got, sizeof got));
    for (int i = 0; i < 6; i++) assert_true(got[i] == roots[i]);
    weft_close(ctx);
}

static void test_refusals(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_tensor *z = pattern(ctx, 5, SHAPE(3, 4)), *gradient,
                *many = pattern(ctx, 5, SHAPE(1, 1, 1, 1, 1, 1, 1, 3));
    assert_int_equal(weft_gradient(total(z), &z, 1, &gradient), WEFT_ERR_SHAPE);
    assert_non_null(strstr(weft_last_error(ctx), "for complex numbers also the real part"));
    assert_int_equal(weft_tensor_status(weft_lt(z, z)), WEFT_ERR_DTYPE);
    assert_non_null(strstr(weft_last_error(ctx), "lt: c64 [3,4] is not accepted"));
    assert_ok(weft_tensor_status(weft_mul(
        many, weft_flip(many, -1)))); /* only view_as_real fails for rank 8: pairs need one more axis */
    assert_ok(weft_eval((weft_tensor *[]){weft_mul(many, weft_flip(many, -1))}, 1));
    assert_int_equal(weft_tensor_status(weft_view_as_real(many)), WEFT_ERR_SHAPE);
    assert_int_equal(weft_tensor_status(weft_matmul(many, weft_transpose(many, -1, -2))), WEFT_ERR_SHAPE);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parity),       cmocka_unit_test(test_programs),
                                       cmocka_unit_test(test_descent),      cmocka_unit_test(test_parameters),
                                       cmocka_unit_test(test_first_values), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_infinite),     cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
