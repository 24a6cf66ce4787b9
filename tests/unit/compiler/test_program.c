/* The program cache: what is compiled once, what is found in the cache, and what makes another program. */
#include "unit/core_help.h"

static char logged[4096];

static void keep_log(void *user, weft_log_level level, const char *message) {
    (void)user;
    (void)level;
    strncat(logged, message, sizeof logged - strlen(logged) - 2);
    strcat(logged, "\n");
}

static int setup(void **state) {
    weft_context *ctx = NULL;
    *logged = 0;
    if (weft_open(&(weft_open_options){.device = "cpu", .threads = 1, .log = keep_log}, &ctx) != WEFT_OK)
        return -1;
    *state = ctx;
    return 0;
}

static int teardown(void **state) {
    weft_close(*state);
    return 0;
}

static uint64_t compiles(const weft_context *ctx) { return ctx->compiler->compiles; }

/* An ordinary loop: each step has new data, a new learning rate and a new graph, but only the first
 * compiles. */
static void test_loop_compiles_once(void **state) {
    weft_context *ctx = *state;
    weft_tensor *w = numbers(ctx, true, 1, SHAPE(4, 3));
    for (int i = 0; i < 20; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = numbers(ctx, false, i, SHAPE(5, 4)), *rate = weft_scalar(ctx, 0.1F / (float)(i + 1));
        weft_tensor *loss = weft_mean(weft_square(weft_matmul(x, w)), WEFT_ALL_AXES, false), *grad, *next;
        assert_ok(weft_gradient(loss, &w, 1, &grad));
        next = weft_sub(w, weft_mul(rate, grad));
        assert_ok(weft_assign(&w, &next, 1));
        assert_int_equal(compiles(ctx), 1);
        weft_scope_close(scope);
    }
    assert_int_equal(ctx->compiler->runs, 20);
    assert_int_equal(ctx->compiler->hits, 19);
}

static void test_scalars_compile_nothing(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(3), (float[]){1, 2, 3});
    for (int i = 0; i < 10; i++) {
        float out[3];
        assert_ok(weft_read(weft_mul(x, weft_scalar(ctx, (float)i)), out, sizeof out));
        assert_true(out[2] == 3 * (float)i);
        assert_int_equal(compiles(ctx), 1);
    }
}

static void test_random_draws_compile_nothing(void **state) {
    weft_context *ctx = *state;
    float first[4], out[4];
    for (int i = 0; i < 5; i++) {
        assert_ok(weft_read(weft_random_uniform(ctx, SHAPE(4)), i ? out : first, sizeof out));
        assert_int_equal(compiles(ctx), 1);
        if (i) assert_memory_not_equal(first, out, sizeof out);
    }
    weft_seed(ctx, 0, 0);
    assert_ok(weft_read(weft_random_uniform(ctx, SHAPE(4)), out, sizeof out));
    assert_memory_equal(first, out, sizeof out);
}

static void test_constants_log_a_hint(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(3), (float[]){1, 2, 3});
    for (int i = 0; i < 8; i++) {
        assert_null(strstr(logged, "eight programs"));
        assert_true(isfinite(weft_item(weft_sum(weft_mul_scalar(x, 0.5 + i), 0, false))));
    }
    assert_int_equal(compiles(ctx), 8);
    assert_non_null(strstr(logged, "eight programs"));
    assert_non_null(strstr(logged, "test_program.c"));
    assert_non_null(strstr(logged, "weft_scalar"));
}

/* Graphs that differ in anything except values are different programs. */
static void test_what_is_another_program(void **state) {
    weft_context *ctx = *state;
    weft_tensor *a = numbers(ctx, false, 1, SHAPE(4, 6)), *b = numbers(ctx, false, 2, SHAPE(4, 6));
    weft_tensor *wide = numbers(ctx, false, 3, SHAPE(4, 7)), *f64 = weft_cast(a, WEFT_F64);
    assert_ok(weft_eval(&f64, 1));
    weft_tensor *graphs[] = {weft_add(a, b),
                             weft_add(a, a), /* one storage, not two */
                             weft_sub(a, b),
                             weft_add(wide, wide),
                             weft_add(f64, f64),
                             weft_sum(a, 0, true),
                             weft_sum(a, 1, true),
                             weft_flip(a, 0),
                             weft_flip(a, 1),
                             weft_narrow(a, 1, 0, 3),
                             weft_narrow(a, 1, 1, 3),
                             weft_transpose(a, 0, 1),
                             weft_reshape(a, SHAPE(6, 4)),
                             weft_mul_scalar(a, 2),
                             weft_mul_scalar(a, 3),
                             weft_cast(a, WEFT_I32)};
    for (size_t i = 0; i < COUNT(graphs); i++) {
        uint64_t before = compiles(ctx);
        assert_ok(weft_eval(&graphs[i], 1));
        assert_int_equal(compiles(ctx), before + 1);
    }
    weft_tensor *again = weft_add(b, a); /* other data, same graph */
    uint64_t before = compiles(ctx);
    assert_ok(weft_eval(&again, 1));
    weft_tensor *one = weft_add(b, b);
    assert_ok(weft_eval(&one, 1));
    assert_int_equal(compiles(ctx), before);
    weft_tensor *both[2] = {weft_add(a, b), weft_sub(a, b)}; /* other outputs */
    assert_ok(weft_eval(both, 2));
    assert_int_equal(compiles(ctx), before + 1);
}

/* The cache drops the least recently used of 256 programs. */
static void test_cache_is_bounded(void **state) {
    weft_context *ctx = *state;
    for (int64_t n = 1; n <= 300; n++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *t = weft_add_scalar(weft_full(ctx, WEFT_F32, 1, &n, 1), 1),
                    *first = weft_full(ctx, WEFT_F32, SHAPE(1), 7);
        assert_ok(weft_eval(&t, 1));
        assert_ok(weft_eval(&first, 1)); /* keeps it recently used */
        weft_scope_close(scope);
    }
    assert_int_equal(ctx->compiler->count, 256);
    uint64_t before = compiles(ctx);
    weft_tensor *kept = weft_full(ctx, WEFT_F32, SHAPE(1), 7),
                *gone = weft_add_scalar(weft_full(ctx, WEFT_F32, SHAPE(1), 1), 1);
    assert_ok(weft_eval(&kept, 1));
    assert_int_equal(compiles(ctx), before);
    assert_ok(weft_eval(&gone, 1));
    assert_int_equal(compiles(ctx), before + 1);
}

/* A program for another batch size does not affect the first program. */
static void test_two_programs_in_turn(void **state) {
    weft_context *ctx = *state;
    weft_tensor *w = numbers(ctx, true, 1, SHAPE(4, 3));
    for (int i = 0; i < 10; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        int64_t shape[2] = {i % 2 ? 2 : 6, 4};
        assert_true(isfinite(
            weft_item(weft_sum(weft_matmul(numbers(ctx, false, i, 2, shape), w), WEFT_ALL_AXES, false))));
        weft_scope_close(scope);
    }
    assert_int_equal(compiles(ctx), 2);
}

static void test_evaluated_tensors_are_leaves(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(8)), *y = weft_exp(x);
    assert_ok(weft_eval(&y, 1));
    uint64_t runs = ctx->compiler->runs;
    float out[8];
    assert_ok(weft_read(y, out, sizeof out));
    assert_ok(weft_eval(&y, 1));
    assert_int_equal(ctx->compiler->runs, runs);
    assert_int_equal(weft_read(y, out, 4), WEFT_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_loop_compiles_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scalars_compile_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_draws_compile_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constants_log_a_hint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_another_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cache_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_programs_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evaluated_tensors_are_leaves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
