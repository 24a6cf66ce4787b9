/* weft_gradcheck: accepts right gradients, finds a wrong one and says where, and leaves the variables as they
 * were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <weft/weft.h>

static weft_context *ctx;

struct inputs {
    weft_tensor *x[2];
    weft_defined_op *op;
};

static weft_tensor *mean_of(weft_tensor *y) {
    return weft_mean(weft_reshape(y, 1, (int64_t[]){weft_numel(y)}), 0, false);
}

static weft_tensor *smooth(void *user) {
    const struct inputs *in = user;
    return mean_of(weft_tanh(weft_mul(in->x[0], in->x[1])));
}

static weft_tensor *own(void *user) {
    const struct inputs *in = user;
    return mean_of(weft_op_apply(in->op, ((weft_tensor *[]){in->x[0]})));
}

static weft_tensor *infinite(void *user) {
    const struct inputs *in = user;
    return mean_of(weft_log(weft_mul(in->x[0], in->x[0])));
}

static void variables(struct inputs *in, weft_dtype dtype) {
    static const double a[6] = {0.3, -1.2, 0.8, 2.0, -0.4, 0.1}, b[6] = {1, 0.5, -0.7, 0.2, 0.9, -1.1};
    float a32[6], b32[6];
    for (int i = 0; i < 6; i++) a32[i] = (float)a[i], b32[i] = (float)b[i];
    const bool wide = dtype == WEFT_F64;
    in->x[0] = weft_variable_new(ctx, "a", dtype, 2, (int64_t[]){2, 3}, wide ? (const void *)a : a32);
    in->x[1] = weft_variable_new(ctx, "b", dtype, 2, (int64_t[]){2, 3}, wide ? (const void *)b : b32);
}

static void test_right(void **state) {
    (void)state;
    struct inputs in;
    weft_gradcheck_worst worst;
    double before[6], after[6];
    variables(&in, WEFT_F64);
    assert_int_equal(weft_read(in.x[0], before, sizeof before), WEFT_OK);
    assert_int_equal(weft_gradcheck(ctx, smooth, &in, in.x, 2, NULL, &worst), WEFT_OK);
    assert_true(worst.error < 1e-9);
    assert_int_equal(weft_read(in.x[0], after, sizeof after), WEFT_OK);
    assert_memory_equal(before, after, sizeof before);
    variables(&in, WEFT_F32);
    assert_int_equal(weft_gradcheck(ctx, smooth, &in, in.x, 2, NULL, &worst), WEFT_OK);
    assert_true(worst.error < 1e-3);
}

/* The op says that the derivative of a * a * a is 3 a a + 1 where a > 1: of element 3 alone. */
static void test_wrong(void **state) {
    (void)state;
    struct inputs in;
    weft_gradcheck_worst worst;
    const weft_op_options options = {.name = "cube",
                                     .arity = 1,
                                     .expression = "a * a * a",
                                     .gradients = {"g * (3 * a * a + w_sel(a > 1, 1, 0))"}};
    variables(&in, WEFT_F64);
    assert_int_equal(weft_op_define(ctx, &options, &in.op), WEFT_OK);
    assert_int_equal(weft_gradcheck(ctx, own, &in, in.x, 1, NULL, &worst), WEFT_OK);
    assert_true(worst.error > 0.05);
    assert_int_equal(worst.variable, 0);
    assert_int_equal(worst.element, 3);
    assert_true(fabs(worst.numeric - 12.0 / 6) < 1e-6 && fabs(worst.analytic - 13.0 / 6) < 1e-6);
    /* of every second element only, the wrong one is not seen */
    assert_int_equal(weft_gradcheck(ctx, own, &in, in.x, 1, &(weft_gradcheck_options){.most = 3}, &worst),
                     WEFT_OK);
    assert_true(worst.error < 1e-7);
}

static void test_refused(void **state) {
    (void)state;
    struct inputs in;
    weft_gradcheck_worst worst;
    variables(&in, WEFT_F64);
    assert_int_equal(weft_write(in.x[0], (double[6]){0}, 6 * sizeof(double)), WEFT_OK);
    assert_int_equal(
        weft_gradcheck(ctx, infinite, &in, in.x, 1, &(weft_gradcheck_options){.step = 1e-300}, &worst),
        WEFT_ERR_NUMERIC);
    assert_int_equal(weft_gradcheck(ctx, smooth, &in, in.x, 1, &(weft_gradcheck_options){.step = -1}, &worst),
                     WEFT_ERR_ARGUMENT);
    weft_tensor *half = weft_variable_new(ctx, "h", WEFT_F16, 1, (int64_t[]){2}, NULL);
    assert_int_equal(weft_gradcheck(ctx, smooth, &in, &half, 1, NULL, &worst), WEFT_ERR_DTYPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_refused),
    };
    if (weft_open(NULL, &ctx) != WEFT_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    weft_close(ctx);
    return failed;
}
