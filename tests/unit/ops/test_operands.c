/* The rules of weft/ops.h for ops with two or more operands: shapes are broadcast as in NumPy, dtypes are
 * never converted, and losses do neither. The tests call each such op of the table. */
#include "unit/nn_help.h"

typedef weft_tensor *(*binary_op)(weft_tensor *a, weft_tensor *b);

/* where() with a condition that has the shape of the operands. */
static weft_tensor *choose(weft_tensor *a, weft_tensor *b) {
    weft_tensor *condition = weft_cast(a, WEFT_BOOL);
    return weft_where(condition, a, b);
}

static const struct {
    const char *name;
    binary_op call;
    enum { FLOAT, NUMBER, INTEGER, ANY } dtypes;
} ops[] = {
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc) {#name, weft_##name, dtypes},
#include "ops/ops.def"
    {"where", choose, ANY}};

static weft_dtype first_dtype(size_t op) { return ops[op].dtypes == INTEGER ? WEFT_I32 : WEFT_F32; }

static void test_shapes_broadcast(void **state) {
    weft_context *ctx = *state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        const weft_dtype dtype = first_dtype(i);
        weft_tensor *a = weft_full(ctx, dtype, SHAPE(2, 1, 3), 1), *b = weft_full(ctx, dtype, SHAPE(4, 1), 1),
                    *number = weft_full(ctx, dtype, 0, NULL, 1),
                    *none = weft_full(ctx, dtype, SHAPE(0, 1), 1);
        assert_shape(ops[i].call(a, b), SHAPE(2, 4, 3));
        assert_shape(ops[i].call(b, a), SHAPE(2, 4, 3));
        assert_shape(ops[i].call(number, a), SHAPE(2, 1, 3));
        assert_shape(ops[i].call(none, a), SHAPE(2, 0, 3));
        assert_poisoned(ops[i].call(a, weft_full(ctx, dtype, SHAPE(2), 1)), WEFT_ERR_SHAPE, ops[i].name,
                        "[2]");
        assert_poisoned(ops[i].call(a, weft_full(ctx, dtype, SHAPE(3, 1, 3), 1)), WEFT_ERR_SHAPE, ops[i].name,
                        "[3,1,3]");
    }
}

static void test_values_broadcast(void **state) {
    weft_context *ctx = *state;
    weft_tensor *a = weft_from(ctx, WEFT_F64, SHAPE(2, 1), (double[]){1, 2});
    weft_tensor *b = weft_from(ctx, WEFT_F64, SHAPE(3), (double[]){10, 20, 30});
    double *sum = values_of(weft_add(a, b));
    assert_memory_equal(sum, ((double[]){11, 21, 31, 12, 22, 32}), 6 * sizeof *sum);
    free(sum);
}

/* The condition of where() broadcasts too. */
static void test_condition(void **state) {
    weft_context *ctx = *state;
    weft_tensor *a = weft_full(ctx, WEFT_F32, SHAPE(3), 1), *b = weft_full(ctx, WEFT_F32, 0, NULL, 2);
    weft_tensor *condition = weft_full(ctx, WEFT_BOOL, SHAPE(2, 1), 1);
    assert_shape(weft_where(condition, a, b), SHAPE(2, 3));
    assert_poisoned(weft_where(a, a, b), WEFT_ERR_DTYPE, "where", "not bool");
    assert_poisoned(weft_where(condition, a, condition), WEFT_ERR_DTYPE, "f32 [3]", "bool [2,1]");
}

static void test_dtypes_stay(void **state) {
    weft_context *ctx = *state;
    static const weft_dtype others[] = {WEFT_BOOL, WEFT_U8, WEFT_I64, WEFT_F16, WEFT_F64, WEFT_C64};
    for (size_t i = 0; i < COUNT(ops); i++)
        for (size_t k = 0; k < COUNT(others); k++) {
            weft_tensor *a = weft_full(ctx, first_dtype(i), SHAPE(2), 1);
            weft_tensor *b = weft_full(ctx, others[k], 0, NULL, 1); /* scalars are no exception */
            assert_poisoned(ops[i].call(a, b), WEFT_ERR_DTYPE, ops[i].name, weft_dtype_name(others[k]));
            assert_poisoned(ops[i].call(b, a), WEFT_ERR_DTYPE, ops[i].name, weft_dtype_name(others[k]));
        }
    weft_tensor *whole = weft_full(ctx, WEFT_I32, SHAPE(2), 1);
    assert_int_equal(weft_dtype_of(weft_add_scalar(whole, 2)), WEFT_I32);
    assert_poisoned(weft_add_scalar(whole, 0.5), WEFT_ERR_ARGUMENT, "0.5", "i32");
}

/* Losses need equal shapes and dtypes. Each reduction gives its own shape. */
static weft_tensor *huber(weft_tensor *x, weft_tensor *target, weft_reduction reduction) {
    return weft_huber(x, target, 1.0, reduction);
}

static void test_losses(void **state) {
    weft_context *ctx = *state;
    static const struct {
        const char *name;
        weft_tensor *(*call)(weft_tensor *x, weft_tensor *target, weft_reduction reduction);
    } losses[] = {
        {"mse", weft_mse}, {"l1", weft_l1}, {"huber", huber}, {"bce_with_logits", weft_bce_with_logits}};
    weft_tensor *x = weft_full(ctx, WEFT_F32, SHAPE(2, 3), 1), *row = weft_full(ctx, WEFT_F32, SHAPE(3), 1);
    for (size_t i = 0; i < COUNT(losses); i++) {
        assert_poisoned(losses[i].call(x, row, WEFT_MEAN), WEFT_ERR_SHAPE, losses[i].name, "[3]");
        assert_poisoned(losses[i].call(x, weft_cast(x, WEFT_F64), WEFT_SUM), WEFT_ERR_DTYPE, losses[i].name,
                        "f64");
        assert_shape(losses[i].call(x, x, WEFT_MEAN), 0, NULL);
        assert_shape(losses[i].call(x, x, WEFT_SUM), 0, NULL);
        assert_shape(losses[i].call(x, x, WEFT_NONE), SHAPE(2, 3));
        assert_int_equal(
            weft_dtype_of(losses[i].call(weft_cast(x, WEFT_F16), weft_cast(x, WEFT_F16), WEFT_MEAN)),
            WEFT_F32);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shapes_broadcast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_broadcast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_condition, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dtypes_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
