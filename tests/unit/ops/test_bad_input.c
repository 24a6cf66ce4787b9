/* Bad input: every function of ops.def with NULL, with a poisoned operand, and with an operand of another
 * context. Also ranks beyond 8, invalid shapes, axes, dtypes and numbers, and NULL for every function of
 * tensor.h. Each call gives a poisoned tensor or a status, with a message that names the op and the line of
 * the call. Nothing crashes, and the context stays usable. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/ops.h>

#define DIMS(...)                                                                                            \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define I64(...) ((int64_t[]){__VA_ARGS__})
#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct fixture {
    weft_context *ctx, *other;
    weft_tensor *x;       /* f32 (2, 3) */
    weft_tensor *foreign; /* f32 (2, 3) of the other context */
    weft_tensor *poison;
} fixture;

/* ---- every op of the table: an op without a line here does not compile ---- */

/* x is the bad operand; y is a good one, or the same as x. */
static const weft_pool_options pool_of_one = {.size = {1, 1}};

#define CALL(name, call)                                                                                     \
    static weft_tensor *call_##name(weft_tensor *x, weft_tensor *y) {                                        \
        (void)x, (void)y;                                                                                    \
        return call;                                                                                         \
    }
#define W_ELEM1(id, name, ...) CALL(name, weft_##name(x))
#define W_ELEM2(id, name, ...) CALL(name, weft_##name(x, y))
#define W_ELEM3(id, name, ...) CALL(name, weft_##name(x, y, y))
#include "ops/ops.def"

CALL(complex, weft_complex(x, y))
CALL(real, weft_real(x))
CALL(imag, weft_imag(x))
CALL(conj, weft_conj(x))
CALL(angle, weft_angle(x))
CALL(view_as_real, weft_view_as_real(x))
CALL(view_as_complex, weft_view_as_complex(x))
CALL(reshape, weft_reshape(x, DIMS(6)))
CALL(permute, weft_permute(x, (int[]){1, 0}))
CALL(transpose, weft_transpose(x, 0, 1))
CALL(expand, weft_expand(x, DIMS(4, 2, 3)))
CALL(pad, weft_pad(x, I64(1, 1), I64(0, 0), 1))
CALL(slice, weft_slice(x, NULL, NULL, NULL))
CALL(narrow, weft_narrow(x, 0, 0, 1))
CALL(flip, weft_flip(x, 0))
CALL(squeeze, weft_squeeze(x, 0))
CALL(unsqueeze, weft_unsqueeze(x, 0))
CALL(concat, weft_concat(((weft_tensor *[]){y, x}), 2, 0))
CALL(stack, weft_stack(((weft_tensor *[]){y, x}), 2, 0))
CALL(roll, weft_roll(x, 1, 0))
CALL(tile, weft_tile(x, I64(1, 2)))
CALL(repeat_interleave, weft_repeat_interleave(x, 2, 0))
CALL(pad_with, weft_pad_with(x, I64(1, 1), I64(0, 0), WEFT_PAD_REFLECT))
CALL(diagonal, weft_diagonal(x, 0, 0, 1))
CALL(trace, weft_trace(x))
CALL(tril, weft_tril(x, 0))
CALL(triu, weft_triu(x, 0))
CALL(outer, weft_outer(y, x))
CALL(masked_fill, weft_masked_fill(y, x, 1))
CALL(one_hot, weft_one_hot(x, 3, WEFT_F32))
CALL(unfold, weft_unfold(x, 0, 1, 1, 1))
CALL(fold, weft_fold(x, 0, 4, 1, 1))
CALL(conv1d, weft_conv1d(y, x, NULL, NULL))
CALL(conv2d, weft_conv2d(y, x, NULL, NULL))
CALL(conv_transpose1d, weft_conv_transpose1d(y, x, NULL, NULL))
CALL(conv_transpose2d, weft_conv_transpose2d(y, x, NULL, NULL))
CALL(max_pool1d, weft_max_pool1d(x, &pool_of_one))
CALL(max_pool2d, weft_max_pool2d(x, &pool_of_one))
CALL(avg_pool1d, weft_avg_pool1d(x, &pool_of_one))
CALL(avg_pool2d, weft_avg_pool2d(x, &pool_of_one))
CALL(adaptive_avg_pool1d, weft_adaptive_avg_pool1d(x, 1))
CALL(adaptive_avg_pool2d, weft_adaptive_avg_pool2d(x, 1, 1))
CALL(adaptive_max_pool1d, weft_adaptive_max_pool1d(x, 1))
CALL(adaptive_max_pool2d, weft_adaptive_max_pool2d(x, 1, 1))
static const weft_interpolate_options twice = {.scale = {2, 2}};
CALL(interpolate1d, weft_interpolate1d(x, &twice))
CALL(interpolate2d, weft_interpolate2d(x, &twice))
CALL(cast, weft_cast(x, WEFT_F64))
CALL(detach, weft_detach(x))
CALL(sum, weft_sum(x, 0, false))
CALL(max, weft_max(x, 0, false))
CALL(min, weft_min(x, 0, false))
CALL(prod, weft_prod(x, 0, false))
CALL(mean, weft_mean(x, 0, false))
CALL(var, weft_var(x, 0, 0, false))
CALL(std, weft_std(x, 0, 0, false))
CALL(norm, weft_norm(x, 2, 0, false))
CALL(any, weft_any(x, 0, false))
CALL(all, weft_all(x, 0, false))
CALL(unpack, weft_unpack(x, WEFT_Q8_0))
CALL(matmul_packed, weft_matmul_packed(x, y, WEFT_Q8_0))
CALL(einsum, weft_einsum("ij,ij", ((weft_tensor *[]){y, x}), 2))
CALL(argmax, weft_argmax(x, 0, false))
CALL(argmin, weft_argmin(x, 0, false))
CALL(sum_to, weft_sum_to(x, DIMS(3)))
CALL(matmul, weft_matmul(y, x))
CALL(gather, weft_gather(y, x, 0))
CALL(scatter_add, weft_scatter_add(y, y, x, 0))
CALL(take_along_axis, weft_take_along_axis(y, x, 0))
CALL(cumsum, weft_cumsum(x, 0))
CALL(cumprod, weft_cumprod(x, 0))
CALL(sort, weft_sort(x, 0, false, NULL))
CALL(argsort, weft_argsort(x, 0, false))
CALL(topk, weft_topk(x, 1, 0, true, NULL))
CALL(update, weft_update(y, x, y, 0))
CALL(add_scalar, weft_add_scalar(x, 1))
CALL(mul_scalar, weft_mul_scalar(x, 1))
CALL(square, weft_square(x))
CALL(clamp, weft_clamp(x, 0, 1))
CALL(zeros_like, weft_zeros_like(x))
CALL(full_like, weft_full_like(x, 1))
CALL(softmax, weft_softmax(x, 0))
CALL(log_softmax, weft_log_softmax(x, 0))
CALL(logsumexp, weft_logsumexp(x, 0, false))
CALL(silu, weft_silu(x))
CALL(softsign, weft_softsign(x))
CALL(leaky_relu, weft_leaky_relu(x, 0.1))
CALL(softplus, weft_softplus(x))
CALL(elu, weft_elu(x, 1))
CALL(layer_norm, weft_layer_norm(x, NULL, NULL, 1e-5))
CALL(rms_norm, weft_rms_norm(x, NULL, 1e-5))
CALL(group_norm, weft_group_norm(x, 1, NULL, NULL, 1e-5))
CALL(instance_norm, weft_instance_norm(x, NULL, NULL, 1e-5))
CALL(batch_norm, weft_batch_norm(x, NULL, NULL, NULL))
CALL(dropout, weft_dropout(x, 0.5))
CALL(dropout2d, weft_dropout2d(x, 0.5))
CALL(attention, weft_attention(y, x, y, NULL))
CALL(rotary, weft_rotary(x, NULL, NULL))
CALL(sinusoids, weft_sinusoids(x, 4, 0))
CALL(recurrent, weft_recurrent(y, x, &(weft_recurrent_options){.kind = WEFT_GRU}, NULL))
CALL(cross_entropy, weft_cross_entropy(y, x, NULL))
CALL(bce_with_logits, weft_bce_with_logits(x, y, WEFT_MEAN))
CALL(mse, weft_mse(x, y, WEFT_MEAN))
CALL(l1, weft_l1(x, y, WEFT_MEAN))
CALL(huber, weft_huber(x, y, 1, WEFT_MEAN))
CALL(sequence_log_probs, weft_sequence_log_probs(y, x))
CALL(dpo_loss, weft_dpo_loss(x, y, NULL))

typedef struct op_call {
    const char *name;
    weft_tensor *(*call)(weft_tensor *x, weft_tensor *y);
    int tensors; /* number of tensor operands; 1: y is not used */
} op_call;

static const op_call calls[] = {
#define W_ELEM1(id, name, ...) {#name, call_##name, 1},
#define W_ELEM2(id, name, ...) {#name, call_##name, 2},
#define W_ELEM3(id, name, ...) {#name, call_##name, 2},
#define W_FUNC(name, ...)      {#name, call_##name, 0},
#include "ops/ops.def"
};

/* Whether a hand-written op takes two tensors or more. */
static bool takes_two(const op_call *op) {
    static const char *const names[] = {"complex",
                                        "concat",
                                        "stack",
                                        "matmul",
                                        "gather",
                                        "scatter_add",
                                        "update",
                                        "attention",
                                        "recurrent",
                                        "cross_entropy",
                                        "conv1d",
                                        "conv2d",
                                        "conv_transpose1d",
                                        "conv_transpose2d",
                                        "bce_with_logits",
                                        "mse",
                                        "l1",
                                        "huber",
                                        "sequence_log_probs",
                                        "dpo_loss"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i], op->name) == 0) return true;
    return op->tensors == 2;
}

static void assert_refused(const op_call *op, weft_tensor *got, weft_status status, const char *word) {
    if (!got) fail_msg("%s: NULL instead of a poison", op->name);
    if (weft_tensor_status(got) != status)
        fail_msg("%s: %s instead of %s", op->name, weft_status_name(weft_tensor_status(got)),
                 weft_status_name(status));
    const char *said = weft_last_error(weft_context_of(got));
    bool placed =
        strstr(said, "test_bad_input.c:") || strstr(said, "ops.def:"); /* where the call is written */
    if (!strstr(said, word) || !placed) fail_msg("%s says \"%s\"", op->name, said);
    assert_int_equal(weft_rank(got), -1);
    assert_int_equal(weft_numel(got), -1);
    assert_int_equal(weft_dim(got, 0), -1);
}

/* ---- fixture ---- */

static int setup(void **state) {
    static fixture f;
    const float values[6] = {1, 2, 3, 4, 5, 6};
    f = (fixture){0};
    if (weft_open(&(weft_open_options){.device = "cpu"}, &f.ctx) != WEFT_OK) return -1;
    if (weft_open(&(weft_open_options){.device = "interp"}, &f.other) != WEFT_OK) return -1;
    f.x = weft_from(f.ctx, WEFT_F32, DIMS(2, 3), values);
    f.foreign = weft_from(f.other, WEFT_F32, DIMS(2, 3), values);
    f.poison = weft_reshape(f.x, DIMS(7));
    *state = &f;
    return 0;
}

/* Earlier failures must leave nothing behind. */
static int teardown(void **state) {
    fixture *f = *state;
    float sum = 0;
    weft_tensor *t = weft_sum(weft_mul(f->x, f->x), WEFT_ALL_AXES, false);
    bool fine = weft_read(t, &sum, sizeof sum) == WEFT_OK && sum == 91;
    weft_close(f->ctx);
    weft_close(f->other);
    return fine ? 0 : -1;
}

/* ---- tests of every op ---- */

static void test_null(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        assert_refused(&calls[i], calls[i].call(NULL, NULL), WEFT_ERR_ARGUMENT, "NULL");
        if (takes_two(&calls[i])) {
            assert_refused(&calls[i], calls[i].call(NULL, f->x), WEFT_ERR_ARGUMENT, "NULL");
            assert_refused(&calls[i], calls[i].call(f->x, NULL), WEFT_ERR_ARGUMENT, "NULL");
        }
    }
}

static void test_poison_is_passed_on(void **state) {
    fixture *f = *state;
    const char *cause = "reshape: f32 [2,3] has 6 elements, [7] does not";
    for (size_t i = 0; i < COUNT(calls); i++) {
        assert_refused(&calls[i], calls[i].call(f->poison, f->x), WEFT_ERR_SHAPE, cause);
        assert_refused(&calls[i], calls[i].call(f->poison, f->poison), WEFT_ERR_SHAPE, cause);
        if (takes_two(&calls[i]))
            assert_refused(&calls[i], calls[i].call(f->x, f->poison), WEFT_ERR_SHAPE, cause);
    }
}

static void test_other_context(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (!takes_two(&calls[i])) continue;
        assert_refused(&calls[i], calls[i].call(f->foreign, f->x), WEFT_ERR_ARGUMENT, "another context");
        assert_refused(&calls[i], calls[i].call(f->x, f->foreign), WEFT_ERR_ARGUMENT, "another context");
    }
}

/* The plain functions, which bindings call, report no line. */
static void test_plain_functions(void **state) {
    fixture *f = *state;
    weft_tensor *t = (weft_add)(f->x, NULL);
    assert_int_equal(weft_tensor_status(t), WEFT_ERR_ARGUMENT);
    assert_string_equal(weft_last_error(f->ctx), "add: operand 2 is NULL");
}

/* ---- invalid arguments ---- */

#define REFUSED(expression, status, word)                                                                    \
    do {                                                                                                     \
        const op_call op_ = {#expression, NULL, 0};                                                          \
        assert_refused(&op_, expression, status, word);                                                      \
    } while (0)

static void test_rank_nine(void **state) {
    fixture *f = *state;
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 2, 3}, eight[8] = {1, 1, 1, 1, 1, 1, 2, 3};
    weft_tensor *x = f->x, *full = weft_reshape(x, 8, eight), *parts[2] = {full, full};
    weft_tensor *index = weft_full(f->ctx, WEFT_I32, 2, I64(1, 1), 0);
    REFUSED(weft_reshape(x, 9, nine), WEFT_ERR_SHAPE, "reshape: rank 9 is not in 0..8");
    REFUSED(weft_reshape(x, -1, nine), WEFT_ERR_SHAPE, "reshape: rank -1");
    REFUSED(weft_expand(x, 9, nine), WEFT_ERR_SHAPE, "expand: rank 9");
    REFUSED(weft_expand(weft_scalar(f->ctx, 1), -1, nine), WEFT_ERR_SHAPE, "expand: rank -1");
    REFUSED(weft_unsqueeze(full, 0), WEFT_ERR_SHAPE, "unsqueeze");
    REFUSED(weft_stack(parts, 2, 0), WEFT_ERR_SHAPE, "stack");
    REFUSED(weft_gather(full, index, 0), WEFT_ERR_SHAPE, "gather: the result has rank 9");
    REFUSED(weft_sum_to(x, 9, nine), WEFT_ERR_SHAPE, "sum_to: rank 9");
    REFUSED(weft_sum_to(x, -1, nine), WEFT_ERR_SHAPE, "sum_to: rank -1");
}

static void test_null_lists(void **state) {
    weft_tensor *x = ((fixture *)*state)->x;
    REFUSED(weft_reshape(x, 2, NULL), WEFT_ERR_ARGUMENT, "reshape: the shape is NULL");
    REFUSED(weft_expand(x, 2, NULL), WEFT_ERR_ARGUMENT, "expand: the shape is NULL");
    REFUSED(weft_permute(x, NULL), WEFT_ERR_ARGUMENT, "permute: the order is NULL");
    REFUSED(weft_pad(x, NULL, I64(0, 0), 0), WEFT_ERR_ARGUMENT, "pad");
    REFUSED(weft_pad(x, I64(0, 0), NULL, 0), WEFT_ERR_ARGUMENT, "pad");
    REFUSED(weft_sum_to(x, 1, NULL), WEFT_ERR_ARGUMENT, "sum_to");
    REFUSED(weft_concat(NULL, 2, 0), WEFT_ERR_ARGUMENT, "concat");
    REFUSED(weft_concat(&x, 0, 0), WEFT_ERR_ARGUMENT, "concat");
    REFUSED(weft_concat(&x, -3, 0), WEFT_ERR_ARGUMENT, "concat");
    REFUSED(weft_stack(NULL, 1, 0), WEFT_ERR_ARGUMENT, "stack");
}

static void test_shapes(void **state) {
    weft_tensor *x = ((fixture *)*state)->x, *column = weft_narrow(x, 1, 0, 1);
    REFUSED(weft_add(x, weft_transpose(x, 0, 1)), WEFT_ERR_SHAPE, "add: shapes f32 [2,3] and f32 [3,2]");
    REFUSED(weft_reshape(x, DIMS(4, -1)), WEFT_ERR_SHAPE, "reshape: f32 [2,3] has 6 elements");
    REFUSED(weft_reshape(x, DIMS(-1, -1)), WEFT_ERR_SHAPE, "reshape: bad target [-1,-1]");
    REFUSED(weft_reshape(x, DIMS(-2, -3)), WEFT_ERR_SHAPE, "reshape: bad target");
    REFUSED(weft_reshape(x, DIMS(INT64_MAX, INT64_MAX)), WEFT_ERR_SHAPE, "reshape");
    REFUSED(weft_permute(x, (int[]){0, 0}), WEFT_ERR_SHAPE, "permute");
    REFUSED(weft_permute(x, (int[]){0, 2}), WEFT_ERR_SHAPE, "permute");
    REFUSED(weft_transpose(x, 0, 2), WEFT_ERR_SHAPE, "transpose");
    REFUSED(weft_transpose(x, -3, 0), WEFT_ERR_SHAPE, "transpose");
    REFUSED(weft_expand(x, DIMS(2, 4)), WEFT_ERR_SHAPE, "expand: f32 [2,3]");
    REFUSED(weft_expand(x, DIMS(3)), WEFT_ERR_SHAPE, "expand");
    REFUSED(weft_expand(column, DIMS(2, -1)), WEFT_ERR_SHAPE, "expand");
    REFUSED(weft_pad(x, I64(-1, 0), I64(0, 0), 0), WEFT_ERR_SHAPE, "pad");
    REFUSED(weft_pad(x, I64(INT64_MAX, 0), I64(0, 0), 0), WEFT_ERR_SHAPE, "pad");
    REFUSED(weft_slice(x, NULL, NULL, I64(1, 0)), WEFT_ERR_ARGUMENT, "slice: the step is 0");
    REFUSED(weft_narrow(x, 2, 0, 1), WEFT_ERR_SHAPE, "narrow");
    REFUSED(weft_narrow(x, 0, 1, 2), WEFT_ERR_SHAPE, "narrow");
    REFUSED(weft_narrow(x, 0, -1, 1), WEFT_ERR_SHAPE, "narrow");
    REFUSED(weft_narrow(x, 0, INT64_MAX, 1), WEFT_ERR_SHAPE, "narrow");
    REFUSED(weft_narrow(x, 0, 0, INT64_MIN), WEFT_ERR_SHAPE, "narrow");
    REFUSED(weft_flip(x, 2), WEFT_ERR_SHAPE, "flip");
    REFUSED(weft_squeeze(x, 0), WEFT_ERR_SHAPE, "squeeze");
    REFUSED(weft_squeeze(x, INT_MIN), WEFT_ERR_SHAPE, "squeeze");
    REFUSED(weft_unsqueeze(x, 4), WEFT_ERR_SHAPE, "unsqueeze");
    REFUSED(weft_concat(((weft_tensor *[]){x, column}), 2, 0), WEFT_ERR_SHAPE, "concat: part 1 is f32 [2,1]");
    REFUSED(weft_concat(&x, 1, 2), WEFT_ERR_SHAPE, "concat");
    REFUSED(weft_stack(&x, 1, 3), WEFT_ERR_SHAPE, "stack");
    REFUSED(weft_sum(x, 2, false), WEFT_ERR_SHAPE, "sum: axis 2");
    REFUSED(weft_sum(x, -3, false), WEFT_ERR_SHAPE, "sum: axis -3");
    REFUSED(weft_mean(x, 7, false), WEFT_ERR_SHAPE, "mean: axis 7");
    REFUSED(weft_argmax(x, 2, false), WEFT_ERR_SHAPE, "axis 2");
    REFUSED(weft_sum_to(x, DIMS(4)), WEFT_ERR_SHAPE, "sum_to");
    REFUSED(weft_matmul(x, x), WEFT_ERR_SHAPE, "did you mean b transposed");
    REFUSED(weft_matmul(x, weft_scalar(weft_context_of(x), 1)), WEFT_ERR_SHAPE, "matmul");
    REFUSED(weft_softmax(x, 2), WEFT_ERR_ARGUMENT, "softmax");
    REFUSED(weft_layer_norm(x, column, NULL, 1e-5), WEFT_ERR_SHAPE, "layer_norm: gamma");
    REFUSED(weft_layer_norm(weft_scalar(weft_context_of(x), 1), NULL, NULL, 1e-5), WEFT_ERR_SHAPE,
            "layer_norm");
    REFUSED(weft_attention(x, x, x, NULL), WEFT_ERR_SHAPE, "attention");
    REFUSED(weft_mse(x, column, WEFT_MEAN), WEFT_ERR_SHAPE, "mse");
    const weft_conv_options far = {.dilation = {1, INT64_MAX}}, many = {.groups = INT64_MAX};
    weft_tensor *image = weft_reshape(x, DIMS(1, 1, 2, 3)), *taps = weft_reshape(x, DIMS(1, 2, 1, 3)),
                *one = weft_reshape(x, DIMS(1, 1, 3, 2));
    REFUSED(weft_conv2d(image, one, NULL, &far), WEFT_ERR_SHAPE, "conv2d");
    REFUSED(weft_conv_transpose2d(image, one, NULL, &far), WEFT_ERR_SHAPE, "conv_transpose2d");
    REFUSED(weft_conv_transpose2d(image, taps, NULL, &many), WEFT_ERR_SHAPE, "in 9223372036854775807 groups");
}

static void test_numbers(void **state) {
    weft_tensor *x = ((fixture *)*state)->x, *i = weft_cast(x, WEFT_I32);
    REFUSED(weft_add_scalar(i, 0.5), WEFT_ERR_ARGUMENT, "0.5 is not a value of i32");
    REFUSED(weft_full_like(i, 1e10), WEFT_ERR_ARGUMENT, "full_like");
    REFUSED(weft_clamp(x, 1, 0), WEFT_ERR_ARGUMENT, "clamp");
    REFUSED(weft_layer_norm(x, NULL, NULL, -1), WEFT_ERR_ARGUMENT, "eps");
    REFUSED(weft_rms_norm(x, NULL, (double)NAN), WEFT_ERR_ARGUMENT, "eps");
    REFUSED(weft_dropout(x, -0.1), WEFT_ERR_ARGUMENT, "dropout");
    REFUSED(weft_huber(x, x, 0, WEFT_MEAN), WEFT_ERR_ARGUMENT, "huber");
    REFUSED(weft_mse(x, x, (weft_reduction)9), WEFT_ERR_ARGUMENT, "reduction");
    REFUSED(weft_cross_entropy(x, weft_argmax(x, -1, false), &(weft_cross_entropy_options){.reduction = 9}),
            WEFT_ERR_ARGUMENT, "reduction");
    REFUSED(weft_pad_with(x, I64(0, 3), I64(0, 0), WEFT_PAD_REFLECT), WEFT_ERR_SHAPE,
            "dimension 1 of f32 [2,3] by 3 and 0; this mode allows 0 to 2");
    REFUSED(weft_tile(x, I64(1, -1)), WEFT_ERR_ARGUMENT, "a count of -1 for dimension 1 of f32 [2,3]");
    REFUSED(weft_cast(x, (weft_dtype)99), WEFT_ERR_DTYPE, "cast");
    REFUSED(weft_cast(x, (weft_dtype)-1), WEFT_ERR_DTYPE, "cast");
}

/* ---- tensor.h ---- */

#define ASSERT_POISON(expression, status, word)                                                              \
    do {                                                                                                     \
        weft_tensor *t_ = (expression);                                                                      \
        assert_non_null(t_);                                                                                 \
        assert_int_equal(weft_tensor_status(t_), status);                                                    \
        if (!strstr(weft_last_error(weft_context_of(t_)), word))                                             \
            fail_msg("%s says \"%s\"", #expression, weft_last_error(weft_context_of(t_)));                   \
    } while (0)

static void test_sources(void **state) {
    weft_context *ctx = ((fixture *)*state)->ctx;
    const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[2] = {2, -1}, huge[2] = {INT64_MAX / 2, 4};
    const float v[2] = {1, 2};
    ASSERT_POISON(weft_from(NULL, WEFT_F32, 0, NULL, v), WEFT_ERR_ARGUMENT, "weft_from: ctx is NULL");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, 1, NULL, v), WEFT_ERR_ARGUMENT, "weft_from: shape is NULL");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, DIMS(2), NULL), WEFT_ERR_ARGUMENT, "weft_from: data is NULL");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, 9, nine, v), WEFT_ERR_SHAPE, "weft_from: rank 9 is not in 0..8");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, -1, nine, v), WEFT_ERR_SHAPE, "weft_from: rank -1");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, 2, negative, v), WEFT_ERR_SHAPE, "weft_from: dimension 1 is -1");
    ASSERT_POISON(weft_from(ctx, WEFT_F32, 2, huge, v), WEFT_ERR_SHAPE, "weft_from: more elements");
    ASSERT_POISON(weft_from(ctx, (weft_dtype)77, 0, NULL, v), WEFT_ERR_DTYPE, "weft_from: unknown dtype 77");
    ASSERT_POISON(weft_variable_new(NULL, "w", WEFT_F32, 0, NULL, v), WEFT_ERR_ARGUMENT, "NULL");
    ASSERT_POISON(weft_variable_new(ctx, "w", WEFT_F32, 9, nine, v), WEFT_ERR_SHAPE, "w: rank 9");
    ASSERT_POISON(weft_full(NULL, WEFT_F32, 0, NULL, 1), WEFT_ERR_ARGUMENT, "weft_full: ctx is NULL");
    ASSERT_POISON(weft_full(ctx, WEFT_F32, 9, nine, 1), WEFT_ERR_SHAPE, "weft_full: rank 9");
    ASSERT_POISON(weft_full(ctx, WEFT_F32, 1, NULL, 1), WEFT_ERR_ARGUMENT, "weft_full: shape is NULL");
    ASSERT_POISON(weft_full(ctx, WEFT_F32, 2, negative, 1), WEFT_ERR_SHAPE, "weft_full: dimension 1");
    ASSERT_POISON(weft_full(ctx, WEFT_F32, 2, huge, 1), WEFT_ERR_SHAPE, "2^63");
    ASSERT_POISON(weft_full(ctx, WEFT_F64, DIMS(INT64_C(1) << 61), 1), WEFT_ERR_SHAPE, "of f64, has more");
    for (int empty = 0; empty < 3; empty++) { /* if any extent is 0, the strides must still fit in 64 bits */
        int64_t shape[3] = {INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40};
        shape[empty] = 0;
        ASSERT_POISON(weft_full(ctx, WEFT_F32, 3, shape, 1), WEFT_ERR_SHAPE, "2^63");
    }
    ASSERT_POISON(weft_full(ctx, (weft_dtype)77, 0, NULL, 1), WEFT_ERR_DTYPE, "weft_full");
    ASSERT_POISON(weft_full_i64(NULL, WEFT_I64, 0, NULL, 1), WEFT_ERR_ARGUMENT, "NULL");
    ASSERT_POISON(weft_iota(NULL, WEFT_I32, 0, NULL), WEFT_ERR_ARGUMENT, "weft_iota");
    ASSERT_POISON(weft_iota(ctx, WEFT_I32, 9, nine), WEFT_ERR_SHAPE, "weft_iota: rank 9");
    ASSERT_POISON(weft_scalar(NULL, 1), WEFT_ERR_ARGUMENT, "weft_scalar");
    ASSERT_POISON(weft_scalar_of(ctx, (weft_dtype)77, 1), WEFT_ERR_DTYPE, "weft_scalar");
    ASSERT_POISON(weft_random_uniform(NULL, 0, NULL), WEFT_ERR_ARGUMENT, "weft_random_uniform");
    ASSERT_POISON(weft_random_uniform(ctx, 9, nine), WEFT_ERR_SHAPE, "rank 9");
    ASSERT_POISON(weft_random_normal(NULL, 0, NULL), WEFT_ERR_ARGUMENT, "weft_random");
    ASSERT_POISON(weft_random_bits(NULL, 0, NULL), WEFT_ERR_ARGUMENT, "weft_random_bits");
    ASSERT_POISON(weft_to(NULL, ctx), WEFT_ERR_ARGUMENT, "weft_to: t is NULL");
    ASSERT_POISON(weft_to(((fixture *)*state)->x, NULL), WEFT_ERR_ARGUMENT, "weft_to: ctx is NULL");
    ASSERT_POISON(weft_to(((fixture *)*state)->poison, ctx), WEFT_ERR_SHAPE, "reshape: f32 [2,3]");
}

static void test_statuses(void **state) {
    fixture *f = *state;
    weft_tensor *none = NULL, *x = f->x, *foreign = f->foreign, *poison = f->poison, *grads[2];
    weft_tensor *y = weft_add(x, x), *both[2] = {x, foreign}, *total = weft_sum(x, WEFT_ALL_AXES, false);
    weft_program *program = NULL;
    float values[6];
    assert_int_equal(weft_eval(NULL, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_eval(&none, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_eval(&poison, 1), WEFT_ERR_SHAPE);
    assert_int_equal(weft_eval(both, 2), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_eval(NULL, 0), WEFT_OK);
    assert_int_equal(weft_read(NULL, values, sizeof values), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_read(x, NULL, sizeof values), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_read(x, values, 5), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_read(poison, values, 4), WEFT_ERR_SHAPE);
    assert_int_equal(weft_write(NULL, values, 4), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write(x, NULL, sizeof values), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write(x, values, 4), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write(y, values, sizeof values), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write(poison, values, 4), WEFT_ERR_SHAPE);
    assert_int_equal(weft_assign(NULL, &x, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_assign(&x, NULL, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_assign(&none, &x, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_assign(&x, &none, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_assign(&x, &poison, 1), WEFT_ERR_SHAPE);
    assert_int_equal(weft_assign(&x, &total, 1), WEFT_ERR_SHAPE);
    assert_int_equal(weft_assign(&x, &foreign, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_assign(&y, &x, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_compile(NULL, 1, NULL, NULL, 0, &program), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_compile(&y, 1, NULL, NULL, 0, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_compile(&y, 1, NULL, &x, 1, &program), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_compile(NULL, 0, NULL, NULL, 0, &program), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_compile(&poison, 1, NULL, NULL, 0, &program), WEFT_ERR_SHAPE);
    assert_int_equal(weft_compile(&y, 1, &foreign, &foreign, 1, &program), WEFT_ERR_ARGUMENT);
    assert_null(program);
    assert_int_equal(weft_program_run(NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_set_scalar(NULL, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_set_scalar(x, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_set_scalar(poison, 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gradient(NULL, &x, 1, grads), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gradient(total, NULL, 1, grads), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gradient(total, &x, 1, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gradient(total, &none, 1, grads), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_gradient(x, &x, 1, grads), WEFT_ERR_SHAPE);
    assert_int_equal(weft_gradient(poison, &x, 1, grads), WEFT_ERR_SHAPE);
    assert_int_equal(weft_gradient(total, &poison, 1, grads), WEFT_ERR_SHAPE);
    assert_int_equal(weft_gradient(total, &foreign, 1, grads), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_synchronize(NULL), WEFT_ERR_ARGUMENT);
}

static void test_questions(void **state) {
    fixture *f = *state;
    char text[8];
    weft_context *ctx = f->ctx;
    assert_int_equal(weft_rank(NULL), -1);
    assert_int_equal(weft_dim(NULL, 0), -1);
    assert_int_equal(weft_dim(f->x, 2), -1);
    assert_int_equal(weft_dim(f->x, -3), -1);
    assert_int_equal(weft_numel(NULL), -1);
    assert_null(weft_shape(NULL));
    assert_null(weft_context_of(NULL));
    assert_int_equal(weft_dtype_of(NULL), WEFT_F32);
    assert_int_equal(weft_tensor_status(NULL), WEFT_ERR_ARGUMENT);
    assert_true(isnan(weft_item(NULL)));
    assert_true(isnan(weft_item(f->x)));
    assert_true(isnan(weft_item(f->poison)));
    assert_int_equal(weft_format(NULL, text, sizeof text), -1);
    assert_int_equal(weft_format(f->poison, text, sizeof text), -1);
    assert_true(weft_format(f->x, NULL, 0) > 8);
    assert_true(weft_format(f->x, text, sizeof text) > 8);
    assert_int_equal(strlen(text), 7);
    assert_null(weft_keep(NULL));
    assert_ptr_equal(weft_keep(f->poison), f->poison);
    assert_null(weft_scope_open(NULL));
    weft_scope_close(NULL);
    weft_free(NULL);
    weft_free(f->x); /* not kept, so this is ignored */
    weft_free(weft_add(NULL, NULL));
    assert_int_equal(weft_tensor_status(weft_keep(weft_add(NULL, NULL))), WEFT_ERR_ARGUMENT);
    weft_program_free(NULL);
    weft_close(NULL);
    weft_seed(NULL, 1, 2);
    assert_string_equal(weft_device_of(NULL), "");
    assert_false(weft_device_info(-1, &(weft_device_description){0}));
    assert_false(weft_device_info(1000, &(weft_device_description){0}));
    assert_false(weft_device_info(0, NULL));
    assert_int_equal(weft_open(NULL, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_open(&(weft_open_options){.device = "abacus"}, &ctx), WEFT_ERR_DEVICE);
    assert_null(ctx);
    assert_non_null(strstr(weft_last_error(NULL), "abacus"));
}

/* An allocator with a limit, on any machine. */
static void *small_memory(void *user, void *old, size_t size) {
    (void)user;
    if (size) return size > (size_t)1 << 30 ? NULL : realloc(old, size);
    free(old);
    return NULL;
}

/* A constant tensor takes no memory until it is evaluated. Too little memory is then an ordinary error. */
static void test_too_large(void **state) {
    weft_context *ctx = NULL;
    (void)state;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .alloc = small_memory}, &ctx), WEFT_OK);
    weft_tensor *t = weft_full(ctx, WEFT_F32, DIMS(INT64_C(1) << 45), 1);
    assert_int_equal(weft_tensor_status(t), WEFT_OK);
    assert_int_equal(weft_eval(&t, 1), WEFT_ERR_OOM);
    assert_true(strlen(weft_last_error(ctx)) > 0);
    weft_close(ctx);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_null),          TEST(test_poison_is_passed_on),
                                       TEST(test_other_context), TEST(test_plain_functions),
                                       TEST(test_rank_nine),     TEST(test_null_lists),
                                       TEST(test_shapes),        TEST(test_numbers),
                                       TEST(test_sources),       TEST(test_statuses),
                                       TEST(test_questions),     TEST(test_too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
