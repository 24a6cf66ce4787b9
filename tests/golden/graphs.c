/* The graphs of the golden kernels. Read next: test_golden.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <weft/ops.h>

#include "golden/graphs.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

static void out(golden_board *s, weft_tensor *t) { s->out[s->n++] = t; }

static void assign(golden_board *s, weft_tensor *variable, weft_tensor *value) {
    s->variable[s->n_assign] = variable;
    s->value[s->n_assign++] = value;
}

/* Outputs y and its gradients with respect to x, z and v, weighted by b, or by up. v may be NULL. */
static void with_gradients_of(golden_board *s, weft_tensor *y, weft_tensor *x, weft_tensor *z,
                              weft_tensor *v) {
    weft_tensor *wrt[3] = {x, z, v}, *grads[3] = {NULL, NULL, NULL}, *by = weft_dim(y, 0) > 8 ? s->up : s->b,
                *loss = weft_sum(weft_mul(y, by), WEFT_ALL_AXES, false);
    size_t n = v ? 3 : z ? 2 : 1;
    if (weft_gradient(loss, wrt, n, grads) != WEFT_OK) fail_msg("%s", weft_last_error(s->ctx));
    out(s, y);
    for (size_t k = 0; k < n; k++) out(s, grads[k]);
}

/* Assigns w and b after a step of gradient descent, and outputs the loss before the step. */
static void linear_step_of(golden_board *s, weft_tensor *x, weft_tensor *y, bool logistic) {
    weft_tensor *w = weft_slice(s->row, NULL, (int64_t[]){4}, NULL);
    weft_tensor *b = weft_slice(s->row, NULL, (int64_t[]){1}, NULL), *wrt[2] = {w, b}, *grads[2];
    weft_tensor *p = weft_add(weft_matmul(x, weft_reshape(w, SHAPE(4, 1))), b);
    weft_tensor *loss = logistic ? weft_bce_with_logits(p, y, WEFT_MEAN) : weft_mse(p, y, WEFT_MEAN);
    if (weft_gradient(loss, wrt, 2, grads) != WEFT_OK) fail_msg("%s", weft_last_error(s->ctx));
    out(s, loss);
    for (int k = 0; k < 2; k++) out(s, weft_sub(wrt[k], weft_mul_scalar(grads[k], 0.1)));
}

static void linear_step(golden_board *s, bool logistic) { linear_step_of(s, s->table, s->y, logistic); }

/* With a number of rows that no number of blocks divides. */
static void linear_step_prime(golden_board *s) {
    weft_tensor *x = weft_slice(s->table, NULL, (int64_t[]){10007, 4}, NULL);
    linear_step_of(s, x, weft_slice(s->y, NULL, (int64_t[]){10007, 1}, NULL), false);
}

static void with_gradients(golden_board *s, weft_tensor *y, weft_tensor *x, weft_tensor *z) {
    with_gradients_of(s, y, x, z, NULL);
}

/* ---- the graphs: GOLDEN(file name, statements) ---- */
#define GRAPHS                                                                                               \
    GOLDEN(add, out(s, weft_add(s->a, s->b)))                                                                \
    GOLDEN(broadcast, out(s, weft_mul(weft_add(s->a, s->row), s->col)))                                      \
    GOLDEN(scalar_input, out(s, weft_mul(s->a, weft_scalar(s->ctx, 3))))                                     \
    GOLDEN(gelu, out(s, weft_gelu(s->a)))                                                                    \
    GOLDEN(gelu_gradient, with_gradients(s, weft_gelu(s->a), s->a, NULL))                                    \
    GOLDEN(silu_gradient, with_gradients(s, weft_silu(s->a), s->a, NULL))                                    \
    GOLDEN(rotary, out(s, weft_rotary(s->cube, NULL, NULL)))                                                 \
    GOLDEN(softplus, out(s, weft_softplus(s->a)))                                                            \
    GOLDEN(where, out(s, weft_where(s->mask, s->a, weft_neg(s->b))))                                         \
    GOLDEN(integers, out(s, weft_mod(weft_shr(weft_mul_scalar(s->i, 3), s->i), weft_add_scalar(s->i, 5))))   \
    GOLDEN(casts_of_one,                                                                                     \
           out(s, weft_mul(weft_cast(weft_full(s->ctx, WEFT_F32, SHAPE(8, 16), 1), WEFT_F16), s->half)))     \
    GOLDEN(casts_back, out(s, weft_neg(weft_cast(weft_cast(s->half, WEFT_F32), WEFT_F16))))                  \
    GOLDEN(casts, out(s, weft_cast(weft_mul(weft_cast(s->half, WEFT_F32), s->a), WEFT_F16)))                 \
    GOLDEN(transpose, out(s, weft_add(weft_transpose(s->a, 0, 1), weft_reshape(s->b, SHAPE(16, 8)))))        \
    GOLDEN(flip_slice, out(s, weft_slice(s->a, (int64_t[]){-1, 1}, NULL, (int64_t[]){-2, 3})))               \
    GOLDEN(pad, out(s, weft_pad(s->a, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 7)))                             \
    GOLDEN(concat, out(s, weft_concat((weft_tensor *[]){s->a, s->b, s->a}, 3, 1)))                           \
    GOLDEN(                                                                                                  \
        parts,                                                                                               \
        out(s, weft_concat((weft_tensor *[]){weft_exp(s->tall), weft_mul(weft_exp(s->tall), s->up)}, 2, 1))) \
    GOLDEN(stack, out(s, weft_stack((weft_tensor *[]){s->a, weft_exp(s->b)}, 2, 0)))                         \
    GOLDEN(reshape_of_transpose, out(s, weft_exp(weft_reshape(weft_transpose(s->a, 0, 1), SHAPE(4, 32)))))   \
    GOLDEN(iota, out(s, weft_add(weft_iota(s->ctx, WEFT_I32, SHAPE(8, 16)), s->i)))                          \
    GOLDEN(random_uniform, out(s, weft_random_uniform(s->ctx, SHAPE(8, 16))))                                \
    GOLDEN(sum_rows, out(s, weft_sum(s->a, 1, false)))                                                       \
    GOLDEN(sum_columns, out(s, weft_sum(s->a, 0, false)))                                                    \
    GOLDEN(sum_all, out(s, weft_sum(s->a, WEFT_ALL_AXES, false)))                                            \
    GOLDEN(sum_in_two_stages, out(s, weft_sum(s->big, 1, false)))                                            \
    GOLDEN(sum_middle, out(s, weft_sum(s->cube, 1, true)))                                                   \
    GOLDEN(max_gradient, with_gradients(s, weft_max(s->a, 1, true), s->a, NULL))                             \
    GOLDEN(argmax, out(s, weft_argmax(s->a, 1, false)))                                                      \
    GOLDEN(variance, out(s, weft_var(s->a, 1, 0, false)))                                                    \
    GOLDEN(softmax, out(s, weft_softmax(s->a, -1)))                                                          \
    GOLDEN(softmax_gradient, with_gradients(s, weft_softmax(s->a, -1), s->a, NULL))                          \
    GOLDEN(softmax_first_axis, out(s, weft_softmax(s->a, 0)))                                                \
    GOLDEN(layer_norm, out(s, weft_layer_norm(s->a, s->row, s->row, 1e-5)))                                  \
    GOLDEN(layer_norm_gradient,                                                                              \
           with_gradients(s, weft_layer_norm(s->a, s->row, s->row, 1e-5), s->a, s->row))                     \
    GOLDEN(layer_norm_columns,                                                                               \
           with_gradients_of(s, weft_layer_norm(s->tall, s->row, weft_neg(s->row), 1e-5), s->tall, s->row,   \
                             NULL))                                                                          \
    GOLDEN(bias_gelu_columns, with_gradients(s, weft_gelu(weft_add(s->tall, s->row)), s->row, s->tall))      \
    GOLDEN(linear_regression, linear_step(s, false))                                                         \
    GOLDEN(linear_regression_prime, linear_step_prime(s))                                                    \
    GOLDEN(logistic_regression, linear_step(s, true))                                                        \
    GOLDEN(rms_norm, out(s, weft_rms_norm(s->a, s->row, 1e-5)))                                              \
    GOLDEN(cross_entropy_gradient,                                                                           \
           with_gradients(s, weft_cross_entropy(s->a, weft_argmax(s->b, 1, false), NULL), s->a, NULL))       \
    GOLDEN(bce, out(s, weft_bce_with_logits(s->a, s->b, WEFT_MEAN)))                                         \
    GOLDEN(gather, out(s, weft_gather(s->a, s->index, 0)))                                                   \
    GOLDEN(gather_gradient,                                                                                  \
           with_gradients(s, weft_sum(weft_square(weft_gather(s->a, s->index, 0)), 0, true), s->a, NULL))    \
    GOLDEN(scatter_add,                                                                                      \
           out(s, weft_scatter_add(s->a, s->index, weft_slice(s->b, NULL, (int64_t[]){5, 16}, NULL), 0)))    \
    GOLDEN(matmul_bias_relu, out(s, weft_relu(weft_add(weft_matmul(s->a, s->w),                              \
                                                       weft_slice(s->row, NULL, (int64_t[]){12}, NULL)))))   \
    GOLDEN(matmul_gradient,                                                                                  \
           with_gradients(s, weft_sum(weft_matmul(s->cube, s->w), -1, true), s->cube, s->w))                 \
    GOLDEN(attention, out(s, weft_attention(weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            weft_reshape(s->cube, SHAPE(3, 2, 4, 16)),                       \
                                            &(weft_attention_options){.causal = true})))                     \
    GOLDEN(update, out(s, weft_update(s->a, weft_slice(s->b, NULL, (int64_t[]){2, 16}, NULL),                \
                                      weft_scalar_of(s->ctx, WEFT_I32, 3), 0)))                              \
    GOLDEN(momentum, (assign(s, s->m, weft_add(weft_mul_scalar(s->m, 0.9), s->g)),                           \
                      assign(s, s->p,                                                                        \
                             weft_sub(s->p, weft_mul(weft_scalar(s->ctx, 1),                                 \
                                                     weft_add(weft_mul_scalar(s->m, 0.9), s->g))))))         \
    GOLDEN(swap, (assign(s, s->m, s->p), assign(s, s->p, s->m)))

#define GOLDEN(name, statement)                                                                              \
    static void graph_##name(golden_board *s) { statement; }
GRAPHS
#undef GOLDEN

const golden_graph golden_graphs[] = {
#define GOLDEN(name, statement) {#name, graph_##name},
    GRAPHS
#undef GOLDEN
};

const int golden_count = sizeof golden_graphs / sizeof *golden_graphs;

/* ---- inputs ---- */

/* A number of the sequence that begins with `state`. */
static unsigned next_number(unsigned *state) { return (*state = *state * 1664525 + 1013904223) >> 8; }

static void set_number(void *data, int64_t i, weft_dtype dtype, unsigned number) {
    const float real = (float)number / (1 << 23) - 1;
    const uint16_t half = (uint16_t)(0x3000 + number % 0x0c00); /* from 1/8 to 1 */
    const int32_t small = (int32_t)(number % 8);
    switch (dtype) {
    case WEFT_F32: memcpy((float *)data + i, &real, sizeof real); break;
    case WEFT_F16: memcpy((uint16_t *)data + i, &half, sizeof half); break;
    case WEFT_BOOL: ((uint8_t *)data)[i] = number % 2; break;
    default: memcpy((int32_t *)data + i, &small, sizeof small);
    }
}

/* Zeros, or numbers that depend on the order of the inputs alone. variable: its name, or NULL. */
static weft_tensor *make_named(golden_board *s, const char *variable, weft_dtype dtype, int rank,
                               const int64_t *shape) {
    unsigned state = (unsigned)++s->made;
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    void *data = calloc((size_t)n, 8);
    for (int64_t i = 0; i < n && s->values; i++) set_number(data, i, dtype, next_number(&state));
    weft_tensor *t = variable ? weft_variable_new(s->ctx, variable, dtype, rank, shape, data)
                              : weft_from(s->ctx, dtype, rank, shape, data);
    free(data);
    return t;
}

static weft_tensor *make(golden_board *s, weft_dtype dtype, int rank, const int64_t *shape) {
    return make_named(s, NULL, dtype, rank, shape);
}

void golden_fill(golden_board *s, bool values) {
    s->values = values;
    s->a = make(s, WEFT_F32, SHAPE(8, 16));
    s->b = make(s, WEFT_F32, SHAPE(8, 16));
    s->row = make(s, WEFT_F32, SHAPE(16));
    s->col = make(s, WEFT_F32, SHAPE(8, 1));
    s->cube = make(s, WEFT_F32, SHAPE(3, 8, 16));
    s->w = make(s, WEFT_F32, SHAPE(16, 12));
    s->big = make(s, WEFT_F32, SHAPE(4, 20000));
    s->tall = make(s, WEFT_F32, SHAPE(512, 16));
    s->up = make(s, WEFT_F32, SHAPE(512, 16));
    s->table = make(s, WEFT_F32, SHAPE(10240, 4));
    s->y = make(s, WEFT_F32, SHAPE(10240, 1));
    s->mask = make(s, WEFT_BOOL, SHAPE(8, 16));
    s->i = make(s, WEFT_I32, SHAPE(8, 16));
    s->index = make(s, WEFT_I32, SHAPE(5));
    s->half = make(s, WEFT_F16, SHAPE(8, 16));
    s->p = make_named(s, "p", WEFT_F32, SHAPE(64));
    s->m = make_named(s, "m", WEFT_F32, SHAPE(64));
    s->g = make(s, WEFT_F32, SHAPE(64));
}
