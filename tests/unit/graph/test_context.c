/* Contexts, scopes and errors as values: lifetimes, the state after a failed call, copies between contexts,
 * programs held by hand, two contexts in two threads. */
#include <pthread.h>
#include "unit/core_help.h"

static int setup(void **state) {
    *state = open_device(NULL, false);
    return 0;
}

static int teardown(void **state) {
    weft_close(*state);
    return 0;
}

static void assert_values(weft_tensor *t, const float *wanted, size_t n) {
    float got[16];
    assert_ok(weft_read(t, got, n * sizeof *got));
    for (size_t i = 0; i < n; i++) assert_float_equal(got[i], wanted[i], 1e-6);
}

/* ---- scopes ---- */

static void test_scope_owns_temporaries(void **state) {
    weft_context *ctx = *state;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    size_t before = ctx->root_scope->count;
    for (int i = 0; i < 100; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *t = weft_add(v, v);
        assert_true(isfinite(weft_item(weft_sum(t, 0, false))));
        weft_scope_close(scope);
    }
    assert_int_equal(ctx->root_scope->count, before);
    assert_values(v, (float[]){1, 2}, 2);
}

static void test_kept_survives(void **state) {
    weft_context *ctx = *state;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *outer = weft_scope_open(ctx), *inner = weft_scope_open(ctx);
    weft_tensor *pending = weft_keep(weft_mul_scalar(v, 3)), *done = weft_keep(weft_add_scalar(v, 1));
    assert_ok(weft_eval(&done, 1));
    weft_scope_close(inner);
    weft_scope_close(outer);
    assert_ok(weft_write(v, (float[]){9, 9}, 8)); /* evaluated when the scope closed */
    assert_values(pending, (float[]){3, 6}, 2);
    assert_values(done, (float[]){2, 3}, 2);
    weft_free(pending);
    weft_free(done);
    weft_free(NULL);
}

static void test_outer_scope_closes_inner(void **state) {
    weft_context *ctx = *state;
    weft_scope *outer = weft_scope_open(ctx);
    (void)weft_scope_open(ctx);
    weft_tensor *kept = weft_keep(weft_full(ctx, WEFT_F32, SHAPE(2), 4));
    weft_scope_close(outer);
    assert_ptr_equal(ctx->scope, ctx->root_scope);
    assert_values(kept, (float[]){4, 4}, 2);
    weft_scope_close(NULL);
    weft_scope_close(ctx->root_scope); /* the user may not close the root scope */
    assert_ptr_equal(ctx->scope, ctx->root_scope);
}

/* One kept tensor that cannot be evaluated is poisoned; the other one stays valid. */
static void test_close_with_stale_work(void **state) {
    weft_context *ctx = *state;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *stale = weft_keep(weft_mul_scalar(v, 3));
    assert_ok(weft_write(v, (float[]){5, 6}, 8));
    weft_tensor *fine = weft_keep(weft_mul_scalar(v, 2));
    weft_scope_close(scope);
    assert_int_equal(weft_tensor_status(stale), WEFT_ERR_STALE);
    assert_int_equal(weft_rank(stale), -1);
    assert_values(fine, (float[]){10, 12}, 2);
    weft_free(stale);
    weft_free(fine);
}

static void test_keep_before_a_step(void **state) {
    weft_context *ctx = *state;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *before = weft_keep(weft_mul_scalar(v, 10)), *lost = weft_mul_scalar(v, 10),
                *next = weft_add_scalar(v, 1);
    assert_ok(weft_assign(&v, &next, 1));
    assert_values(before, (float[]){10, 20}, 2);
    float out[2];
    assert_int_equal(weft_read(lost, out, sizeof out), WEFT_ERR_STALE);
    assert_non_null(strstr(weft_last_error(ctx), "weft_keep"));
    assert_non_null(strstr(weft_last_error(ctx), "'v'"));
    assert_values(v, (float[]){2, 3}, 2);
    weft_scope_close(scope);
    weft_free(before);
}

static void test_swap(void **state) {
    weft_context *ctx = *state;
    weft_tensor *v[2] = {weft_variable_new(ctx, "a", WEFT_F32, SHAPE(2), (float[]){1, 2}),
                         weft_variable_new(ctx, "b", WEFT_F32, SHAPE(2), (float[]){3, 4})};
    weft_tensor *swapped[2] = {v[1], v[0]};
    assert_ok(weft_assign(v, swapped, 2));
    assert_values(v[0], (float[]){3, 4}, 2);
    assert_values(v[1], (float[]){1, 2}, 2);
    weft_tensor *both[2] = {weft_add(v[0], v[1]), weft_sub(v[0], v[1])};
    assert_ok(weft_assign(v, both, 2));
    assert_values(v[0], (float[]){4, 6}, 2);
    assert_values(v[1], (float[]){2, 2}, 2);
}

/* A variable is assigned its own elements in another order. It has more elements than a kernel holds at a
 * time. */
static void turn(const char *device) {
    enum { N = 5000 };
    weft_context *ctx = open_device(device, false);
    float *values = calloc(N, sizeof *values), *got = calloc(N, sizeof *got);
    for (int i = 0; i < N; i++) values[i] = (float)i;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(N), values), *turned = weft_flip(v, 0);
    assert_ok(weft_assign(&v, &turned, 1));
    assert_ok(weft_read(v, got, N * sizeof *got));
    for (int i = 0; i < N; i++) assert_true(got[i] == values[N - 1 - i]);
    weft_close(ctx);
    free(values);
    free(got);
}

static void test_turn(void **state) {
    (void)state;
    turn(NULL);
    turn("interp");
}

/* ---- poison ---- */

static void test_poison_travels(void **state) {
    weft_context *ctx = *state;
    weft_tensor *a = weft_full(ctx, WEFT_F32, SHAPE(2, 3), 1), *b = weft_full(ctx, WEFT_F32, SHAPE(4, 5), 1);
    weft_tensor *bad = weft_matmul(a, b), *worse = weft_add(weft_exp(bad), a),
                *other = weft_reshape(a, SHAPE(7));
    assert_int_equal(weft_tensor_status(bad), WEFT_ERR_SHAPE);
    assert_int_equal(weft_rank(worse), -1);
    assert_int_equal(weft_numel(worse), -1);
    float out[6];
    weft_tensor *list[2] = {worse, other};
    assert_int_equal(weft_eval(list, 2), WEFT_ERR_SHAPE);
    assert_non_null(strstr(weft_last_error(ctx), "matmul")); /* the message names the first cause */
    assert_non_null(strstr(weft_last_error(ctx), "test_context.c"));
    assert_int_equal(weft_read(worse, out, sizeof out), WEFT_ERR_SHAPE);
    assert_true(isnan(weft_item(worse)));
    weft_tensor *grad, *loss = weft_sum(worse, WEFT_ALL_AXES, false);
    assert_int_equal(weft_gradient(loss, &a, 1, &grad), WEFT_ERR_SHAPE);
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2, 3), NULL);
    assert_int_equal(weft_assign(&v, &worse, 1), WEFT_ERR_SHAPE);
    float zeros[6] = {0};
    assert_values(v, zeros, 6); /* the context stays usable */
}

/* Gradients flow through evaluated tensors while their scope is open. Later they would be zeros, or a part,
 * so they are an error. */
static void test_evaluated_before_the_gradient(void **state) {
    weft_context *ctx = *state;
    if (!test_on_cpu()) return skip(); /* the device makes no difference */
    const float values[2] = {2, 3}, slopes[2] = {4, 6}, none[2] = {0, 0};
    float out[2];
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), values), *grad;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *square = weft_keep(weft_square(v));
    assert_int_equal(weft_read(square, out, sizeof out), WEFT_OK);
    assert_int_equal(weft_gradient(weft_sum(square, WEFT_ALL_AXES, false), &v, 1, &grad), WEFT_OK);
    assert_values(grad, slopes, 2);
    weft_tensor *loss = weft_sum(weft_mul(square, v), WEFT_ALL_AXES, false);
    assert_int_equal(weft_gradient(loss, &v, 1, &grad), WEFT_OK);
    assert_values(grad, ((const float[2]){12, 27}), 2);
    weft_scope_close(scope); /* square is a value now */
    loss = weft_sum(weft_mul(square, v), WEFT_ALL_AXES, false);
    assert_int_equal(weft_gradient(loss, &v, 1, &grad), WEFT_ERR_STATE);
    assert_non_null(strstr(weft_last_error(ctx), "from 'v'"));
    assert_non_null(strstr(weft_last_error(ctx), "test_context.c"));
    loss = weft_sum(weft_mul(weft_detach(square), v), WEFT_ALL_AXES, false); /* a constant on purpose */
    assert_int_equal(weft_gradient(loss, &v, 1, &grad), WEFT_OK);
    assert_values(grad, ((const float[2]){4, 9}), 2);
    weft_tensor *data = weft_from(ctx, WEFT_F32, SHAPE(2), values), *half = weft_mul_scalar(data, 0.5);
    assert_int_equal(weft_read(half, out, sizeof out), WEFT_OK); /* the value depends on no variable */
    assert_int_equal(weft_gradient(weft_sum(half, WEFT_ALL_AXES, false), &v, 1, &grad), WEFT_OK);
    assert_values(grad, none, 2);
}

/* What was written since is not what the tensor was computed from, so its gradient is an error. */
static void test_written_before_the_gradient(void **state) {
    weft_context *ctx = *state;
    float out[2];
    if (!test_on_cpu()) return; /* it depends on no device */
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){2, 3}), *y = weft_exp(x), *grad;
    assert_ok(weft_read(y, out, sizeof out));
    assert_ok(weft_write(x, (float[]){4, 5}, 8));
    assert_int_equal(weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &x, 1, &grad), WEFT_ERR_STALE);
    assert_non_null(strstr(weft_last_error(ctx), "written after"));
    y = weft_square(x);
    assert_ok(weft_read(y, out, sizeof out));
    assert_ok(weft_write(y, (float[]){7, 7}, 8)); /* y is data from now on */
    assert_ok(weft_gradient(weft_sum(weft_square(y), WEFT_ALL_AXES, false), (weft_tensor *[]){x}, 1, &grad));
    assert_values(grad, (float[]){0, 0}, 2);
}

static void test_numbers_a_dtype_lacks(void **state) {
    weft_context *ctx = *state;
    weft_tensor *i = weft_full(ctx, WEFT_I32, SHAPE(2), 4), *u = weft_full(ctx, WEFT_U8, SHAPE(2), 4);
    assert_int_equal(weft_tensor_status(weft_mul_scalar(i, 0.5)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_add_scalar(u, 256)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_full(ctx, WEFT_BOOL, SHAPE(2), 2)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_full(ctx, WEFT_I32, SHAPE(2), (double)NAN)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_add_scalar(i, -3)), WEFT_OK);
}

static void test_two_contexts_do_not_mix(void **state) {
    weft_context *ctx = *state, *other = open_device("interp", false);
    weft_tensor *a = weft_full(ctx, WEFT_F32, SHAPE(2), 1), *b = weft_full(other, WEFT_F32, SHAPE(2), 2);
    assert_int_equal(weft_tensor_status(weft_add(a, b)), WEFT_ERR_ARGUMENT);
    weft_tensor *mixed[2] = {weft_add(a, a), weft_add(b, b)};
    assert_int_equal(weft_eval(mixed, 2), WEFT_ERR_ARGUMENT);
    weft_tensor *here = weft_to(weft_mul_scalar(b, 5), ctx); /* evaluates the tensor, then copies it */
    assert_ptr_equal(weft_context_of(here), ctx);
    assert_values(weft_add(a, here), (float[]){11, 11}, 2);
    weft_tensor *bad = weft_reshape(b, SHAPE(3));
    assert_int_equal(weft_tensor_status(weft_to(bad, ctx)), WEFT_ERR_SHAPE);
    assert_int_equal(weft_tensor_status(weft_to(NULL, ctx)), WEFT_ERR_ARGUMENT);
    weft_close(other);
}

/* A bad index is reported and no variable is updated, not even by kernels that could have run before the
 * check. */
static void fault_leaves_variables(const char *device, bool no_fusion) {
    weft_context *ctx = open_device(device, no_fusion);
    weft_tensor *v[2] = {weft_variable_new(ctx, "a", WEFT_F32, SHAPE(3), (float[]){1, 2, 3}),
                         weft_variable_new(ctx, "b", WEFT_F32, SHAPE(3), (float[]){4, 5, 6})};
    weft_tensor *index = weft_from(ctx, WEFT_I32, SHAPE(3), (int32_t[]){0, 7, 1});
    weft_tensor *next[2] = {weft_gather(v[1], index, 0), weft_add_scalar(v[1], 1)};
    weft_status status = weft_assign(v, next, 2);
    float unseen[3];
    if (ctx->device->asynchronous && status == WEFT_OK) status = weft_read(v[0], unseen, sizeof unseen);
    assert_int_equal(status, WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(ctx), "7"));
    assert_values(v[0], (float[]){1, 2, 3}, 3);
    assert_values(v[1], (float[]){4, 5, 6}, 3);
    assert_ok(weft_write(index, (int32_t[]){2, 2, 1}, 12));
    weft_tensor *again[2] = {weft_gather(v[1], index, 0), weft_add_scalar(v[1], 1)};
    assert_ok(weft_assign(v, again, 2));
    assert_values(v[0], (float[]){6, 6, 5}, 3);
    assert_values(v[1], (float[]){5, 6, 7}, 3);
    weft_close(ctx);
}

static void test_fault_leaves_variables(void **state) {
    (void)state;
    fault_leaves_variables(NULL, false);
    fault_leaves_variables(NULL, true);
    fault_leaves_variables("interp", false);
    fault_leaves_variables("interp", true);
}

/* Integer division by 0 has its own status, and the message says what to do. */
static void division_leaves_variables(const char *device) {
    weft_context *ctx = open_device(device, false);
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_I32, SHAPE(3), (int32_t[]){7, 8, 9});
    weft_tensor *by = weft_from(ctx, WEFT_I32, SHAPE(3), (int32_t[]){2, 2, 0});
    weft_tensor *made[2] = {weft_div(v, by), weft_mod(v, by)};
    for (int i = 0; i < 2; i++) {
        weft_status status = weft_assign(&v, &made[i], 1);
        int32_t got[3];
        if (ctx->device->asynchronous && status == WEFT_OK) status = weft_read(v, got, sizeof got);
        assert_int_equal(status, WEFT_ERR_NUMERIC);
        assert_non_null(strstr(weft_last_error(ctx), "element 2"));
        assert_non_null(strstr(weft_last_error(ctx), "weft_where"));
        assert_ok(weft_read(v, got, sizeof got));
        assert_memory_equal(got, ((int32_t[]){7, 8, 9}), sizeof got);
        made[1] = weft_mod(v, by);
    }
    weft_close(ctx);
}

static void test_division_by_zero(void **state) {
    (void)state;
    division_leaves_variables(NULL);
    division_leaves_variables("interp");
}

/* ---- programs held by hand ---- */

static void test_held_program(void **state) {
    weft_context *ctx = *state;
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){10, 20}), *rate = weft_scalar(ctx, 0.5F);
    weft_tensor *y = weft_mul(w, x), *next = weft_sub(w, weft_mul(rate, x));
    weft_program *program = NULL;
    assert_ok(weft_compile(&y, 1, &w, &next, 1, &program));
    weft_scope_close(scope); /* the program keeps its inputs and outputs alive */
    uint64_t compiles = ctx->compiler->compiles;
    assert_ok(weft_program_run(program));
    assert_values(y, (float[]){10, 40}, 2);
    assert_values(w, (float[]){-4, -8}, 2);
    assert_ok(weft_set_scalar(rate, 0));
    assert_ok(weft_write(x, (float[]){1, 1}, 8));
    assert_ok(weft_program_run(program));
    assert_values(y, (float[]){-4, -8}, 2);
    assert_values(w, (float[]){-4, -8}, 2);
    weft_tensor *reader = weft_add(y, y); /* reads what the next run replaces */
    assert_ok(weft_write(w, (float[]){3, 3}, 8));
    assert_ok(weft_program_run(program));
    float out[2];
    assert_int_equal(weft_read(reader, out, sizeof out), WEFT_ERR_STALE);
    assert_values(y, (float[]){3, 3}, 2);
    assert_int_equal(ctx->compiler->compiles, compiles);
    weft_program_free(program);
    weft_program_free(NULL);
}

/* Tensors shared by two programs outlive the first program. Tensors that the user frees stay as long as a
 * program needs them. */
static void test_held_programs_share(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_F32, SHAPE(2), (float[]){3, 4});
    weft_tensor *only =
        weft_variable_new(ctx, "only", WEFT_F32, SHAPE(2), NULL); /* written, but never read */
    weft_tensor *a = weft_mul(x, w), *b = weft_keep(weft_add(x, w)), *next = weft_sub(x, w);
    weft_program *first = NULL, *second = NULL;
    assert_ok(weft_compile(&a, 1, NULL, NULL, 0, &first));
    assert_ok(weft_compile(&b, 1, &only, &next, 1, &second));
    weft_scope_close(scope);
    weft_program_free(first);
    weft_free(w);
    weft_free(b);
    weft_free(only);
    for (int i = 0; i < 50; i++) weft_from(ctx, WEFT_F32, SHAPE(2), NULL); /* reuses the freed memory */
    for (int i = 0; i < 50; i++) weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){9, 9});
    assert_ok(weft_program_run(second));
    float out[2];
    assert_ok(weft_read(b, out, sizeof out));
    assert_true(out[0] == 4 && out[1] == 6);
    assert_ok(weft_read(only, out, sizeof out));
    assert_true(out[0] == -2 && out[1] == -2);
    weft_program_free(second);
    weft_tensor *again = weft_mul_scalar(weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1, 2}), 3);
    assert_ok(weft_compile(&again, 1, NULL, NULL, 0, &first));
    assert_ok(weft_program_run(first)); /* weft_close frees the program */
}

/* A run makes recorded readers of its outputs stale, even if the program assigns nothing. */
static void test_held_outputs_are_versions(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1, 2}), *y = weft_mul_scalar(x, 2);
    weft_program *program = NULL;
    assert_ok(weft_compile(&y, 1, NULL, NULL, 0, &program));
    assert_ok(weft_program_run(program));
    weft_tensor *reader = weft_add_scalar(y, 1);
    assert_ok(weft_program_run(program));
    float out[2];
    assert_int_equal(weft_read(reader, out, sizeof out), WEFT_ERR_STALE);
    assert_values(weft_add_scalar(y, 1), (float[]){3, 5}, 2);
    weft_program_free(program);
    assert_int_equal(weft_compile(NULL, 0, NULL, NULL, 0, &program), WEFT_ERR_ARGUMENT);
}

static void test_scalar_is_read_when_recorded(void **state) {
    weft_context *ctx = *state;
    weft_tensor *s = weft_scalar(ctx, 2), *x = weft_full(ctx, WEFT_F32, SHAPE(2), 3),
                *before = weft_mul(x, s);
    assert_ok(weft_set_scalar(s, 5));
    float out[2];
    assert_int_equal(weft_read(before, out, sizeof out), WEFT_ERR_STALE);
    assert_values(weft_mul(x, s), (float[]){15, 15}, 2);
    assert_int_equal(weft_set_scalar(x, 1), WEFT_ERR_ARGUMENT);
}

/* ---- threads ---- */

typedef struct job {
    const char *device;
    double result;
} job;

static void *train(void *user) {
    job *j = user;
    weft_context *ctx = NULL;
    if (weft_open(&(weft_open_options){.device = j->device, .seed = 9, .threads = 1}, &ctx) != WEFT_OK)
        return NULL;
    weft_module *net =
        weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 4, 8, NULL), weft_nn_activation(ctx, WEFT_TANH),
                           weft_nn_linear(ctx, 8, 1, NULL), NULL);
    weft_optimizer *sgd = weft_sgd(net, &(weft_sgd_options){.lr = 0.1F});
    for (int i = 0; i < 30; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = weft_random_uniform(ctx, SHAPE(6, 4)), *y = weft_sum(x, 1, true);
        weft_tensor *loss = weft_mse(weft_forward(net, x), y, WEFT_MEAN);
        if (weft_optimizer_step(sgd, loss) == WEFT_OK) j->result = weft_item(loss);
        weft_scope_close(scope);
    }
    weft_close(ctx);
    return NULL;
}

static void test_two_threads(void **state) {
    (void)state;
    job alone = {.device = "cpu"}, jobs[2] = {{.device = "cpu"}, {.device = "cpu"}};
    train(&alone);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, train, &jobs[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_true(alone.result > 0 && alone.result < 1);
    for (int i = 0; i < 2; i++) assert_true(jobs[i].result == alone.result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scope_owns_temporaries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_survives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outer_scope_closes_inner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_with_stale_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keep_before_a_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_swap, setup, teardown),
        cmocka_unit_test(test_turn),
        cmocka_unit_test_setup_teardown(test_poison_travels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_before_the_gradient, setup, teardown),
        cmocka_unit_test_setup_teardown(test_evaluated_before_the_gradient, setup, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_a_dtype_lacks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_contexts_do_not_mix, setup, teardown),
        cmocka_unit_test(test_fault_leaves_variables),
        cmocka_unit_test(test_division_by_zero),
        cmocka_unit_test_setup_teardown(test_held_program, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_outputs_are_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_programs_share, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scalar_is_read_when_recorded, setup, teardown),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
