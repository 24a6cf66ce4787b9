/* Recurrent layers, cells and language models against PyTorch's (recurrent.inc, written by
 * make_recurrent.py): results, states, gradients, ten training steps with carried states. Other tests check
 * refusals and the commands of programs. */
#include <weft/recurrent.h>

#include "unit/core_help.h"
#include "unit/parity/recurrent.inc"

enum { B = 3, T = 6, IN = 3, H = 4 };
static const int64_t lengths[] = {6, 1, 4};

static void pattern(float *data, int64_t n, int by, float scale) {
    for (int64_t i = 0; i < n; i++) data[i] = (float)((i * by + 3) % 17 - 8) / scale;
}

static weft_tensor *given(weft_context *ctx, bool variable, int by, int rank, const int64_t *shape) {
    float data[512];
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    assert_true(n <= (int64_t)COUNT(data));
    pattern(data, n, by, 8);
    return variable ? weft_variable_new(ctx, "v", WEFT_F32, rank, shape, data)
                    : weft_from(ctx, WEFT_F32, rank, shape, data);
}

static void assert_numbers(const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("%s: element %zu of %zu is %.9g, PyTorch has %.9g", what, i, n, (double)got[i],
                     (double)want[i]);
}

static void assert_near(const char *what, weft_tensor *t, const float *want, size_t n) {
    float got[512];
    assert_int_equal(weft_numel(t), n);
    assert_ok(weft_read(t, got, n * sizeof *got));
    assert_numbers(what, got, want, n);
}

/* Fills the parameters like make_recurrent.py. */
static size_t fill(weft_module *m, weft_tensor **parameters) {
    const size_t n = weft_parameter_count(m);
    for (size_t k = 0; k < n; k++) {
        weft_parameter_info info;
        float data[512];
        assert_true(weft_parameter_get(m, k, &info));
        const int64_t count = weft_numel(info.tensor);
        assert_true(count <= (int64_t)COUNT(data));
        pattern(data, count, 5 + (int)(k % 3), 16);
        assert_ok(weft_write(info.tensor, data, (size_t)count * sizeof *data));
        parameters[k] = info.tensor;
    }
    return n;
}

/* Compares two numbers of each gradient. */
static void assert_digests(weft_tensor *const *grads, size_t n, const float *want) {
    for (size_t k = 0; k < n; k++) {
        float grad[512], by[512], two[2] = {0, 0};
        const int64_t count = weft_numel(grads[k]);
        assert_ok(weft_read(grads[k], grad, (size_t)count * sizeof *grad));
        for (int d = 0; d < 2; d++) {
            pattern(by, count, d ? 7 : 11, 8);
            for (int64_t i = 0; i < count; i++) two[d] += grad[i] * by[i];
        }
        assert_numbers("a parameter's gradient", two, want + 2 * k, 2);
    }
}

/* PyTorch's values for one layer; `c` is NULL if the layer has no cell state. */
typedef struct expected {
    const float *y, *x, *parameters, *last[2], *first[2];
    size_t n_parameters; /* count of numbers */
} expected;

static void check_layer(weft_module *m, bool packed, const expected *want) {
    weft_context *ctx = weft_module_context(m);
    weft_tensor *wrt[40], *grads[40];
    const size_t n = fill(m, wrt);
    assert_int_equal(2 * n, want->n_parameters);
    int64_t shape[3];
    assert_int_equal(weft_states_shape(m, B, shape), 3);
    const int64_t state = shape[0] * shape[1] * shape[2];
    weft_tensor *x = wrt[n] = given(ctx, true, 5, SHAPE(B, T, IN));
    weft_states states = {given(ctx, true, 3, 3, shape), NULL};
    size_t all = n + 2;
    if (weft_states_have_c(m)) wrt[all++] = states.c = given(ctx, true, 4, 3, shape);
    wrt[n + 1] = states.h;
    weft_tensor *y = weft_forward_from(m, x, &states, packed ? lengths : NULL),
                *last[2] = {states.h, states.c};
    weft_tensor *loss =
        weft_sum(weft_mul(y, given(ctx, false, 11, weft_rank(y), weft_shape(y))), WEFT_ALL_AXES, false);
    for (int k = 0; k < 2; k++)
        if (last[k])
            loss = weft_add(
                loss, weft_sum(weft_mul(last[k], given(ctx, false, 7, 3, shape)), WEFT_ALL_AXES, false));
    assert_ok(weft_gradient(loss, wrt, all, grads));
    assert_near("y", y, want->y, (size_t)weft_numel(y));
    assert_near("the gradient of x", grads[n], want->x, B * T * IN);
    for (int k = 0; k < 2; k++) {
        if (!last[k]) continue;
        assert_near(k ? "the last c" : "the last h", last[k], want->last[k], (size_t)state);
        assert_near("a first state's gradient", grads[n + 1 + (size_t)k], want->first[k], (size_t)state);
    }
    assert_digests(grads, n, want->parameters);
}

#define EXPECTED(name)                                                                                       \
    &(expected) {                                                                                            \
        name##_y, name##_x, name##_parameters, {name##_lasth}, {name##_firsth}, COUNT(name##_parameters)     \
    }
#define EXPECTED_C(name)                                                                                     \
    &(expected) {                                                                                            \
        name##_y, name##_x, name##_parameters, {name##_lasth, name##_lastc}, {name##_firsth, name##_firstc}, \
            COUNT(name##_parameters)                                                                         \
    }

static void test_layers(void **state) {
    (void)state;
    weft_context *ctx = open_device(test_device(), false);
    weft_recurrent_layer_options two = {.layers = 2}, two_ways = {.layers = 2, .bidirectional = true};
    check_layer(weft_nn_lstm(ctx, IN, H, &two), false, EXPECTED_C(lstm));
    if (test_on_cpu()) { /* other devices run the same operations with other sizes */
        check_layer(weft_nn_lstm(ctx, IN, H, &two_ways), true, EXPECTED_C(lstm_packed));
        check_layer(weft_nn_gru(ctx, IN, H, &two_ways), false, EXPECTED(gru));
        two_ways.no_bias = true;
        check_layer(weft_nn_rnn(ctx, IN, H, false, &two_ways), true, EXPECTED(rnn));
        check_layer(weft_nn_rnn(ctx, IN, H, true, NULL), false, EXPECTED(relu));
    }
    check_layer(weft_nn_gru(ctx, IN, H, NULL), true, EXPECTED(gru_packed));
    weft_close(ctx);
}

static void check_cell(weft_module *m, const float *y, const float *x, const float *parameters) {
    weft_context *ctx = weft_module_context(m);
    weft_tensor *wrt[8], *grads[8];
    const size_t n = fill(m, wrt);
    wrt[n] = given(ctx, true, 5, SHAPE(B, IN));
    weft_states states = {given(ctx, false, 3, SHAPE(B, H)), NULL};
    if (weft_states_have_c(m)) states.c = given(ctx, false, 4, SHAPE(B, H));
    weft_tensor *h = weft_forward_from(m, wrt[n], &states, NULL);
    weft_tensor *loss = weft_sum(weft_mul(h, given(ctx, false, 7, SHAPE(B, H))), WEFT_ALL_AXES, false);
    if (states.c)
        loss = weft_add(
            loss, weft_sum(weft_mul(states.c, given(ctx, false, 7, SHAPE(B, H))), WEFT_ALL_AXES, false));
    assert_ok(weft_gradient(loss, wrt, n + 1, grads));
    assert_near("h", h, y, B * H);
    assert_near("the gradient of x", grads[n], x, B * IN);
    assert_digests(grads, n, parameters);
}

static void test_cells(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    check_cell(weft_nn_lstm_cell(ctx, IN, H, NULL), lstm_cell_y, lstm_cell_x, lstm_cell_parameters);
    check_cell(weft_nn_gru_cell(ctx, IN, H, NULL), gru_cell_y, gru_cell_x, gru_cell_parameters);
    check_cell(weft_nn_rnn_cell(ctx, IN, H, false, NULL), rnn_cell_y, rnn_cell_x, rnn_cell_parameters);
    weft_close(ctx);
}

/* ---- training ---- */

static void train(weft_recurrent_kind kind, int threads, float losses[10]) {
    weft_context *ctx = NULL;
    assert_ok(test_open(&(weft_open_options){.device = test_device(), .threads = threads, .seed = 5}, &ctx));
    weft_module *m = weft_nn_recurrent_lm(
        ctx, &(weft_recurrent_lm_options){.kind = kind, .vocab = 7, .layers = 2, .width = 6, .embedding = 5});
    weft_optimizer *adam = weft_adam(m, &(weft_adam_options){.lr = 0.03});
    weft_tensor *parameters[40];
    fill(m, parameters);
    int64_t shape[3];
    weft_states states = {weft_full(ctx, WEFT_F32, weft_states_shape(m, 4, shape), shape, 0), NULL};
    if (kind == WEFT_LSTM) states.c = weft_full(ctx, WEFT_F32, 3, shape, 0);
    for (int step = 0; step < 10; step++) {
        int32_t x[4][8], y[4][8];
        for (int b = 0; b < 4; b++)
            for (int t = 0; t < 9; t++) {
                const int32_t id = (b * 3 + (step * 8 + t) * (step * 8 + t)) % 7;
                if (t < 8) x[b][t] = id;
                if (t > 0) y[b][t - 1] = id;
            }
        weft_scope *scope = weft_scope_open(ctx);
        weft_states last = {weft_detach(states.h), states.c ? weft_detach(states.c) : NULL};
        weft_tensor *logits = weft_forward_from(m, weft_from(ctx, WEFT_I32, SHAPE(4, 8), x), &last, NULL);
        weft_tensor *loss = weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, SHAPE(4, 8), y), NULL);
        weft_keep(last.h);
        if (last.c) weft_keep(last.c);
        assert_ok(weft_optimizer_step(adam, loss));
        losses[step] = (float)weft_item(loss);
        weft_free(states.h);
        if (states.c) weft_free(states.c);
        states = last;
        weft_scope_close(scope);
    }
    weft_close(ctx);
}

static void test_training(void **state) {
    (void)state;
    float losses[10], again[10];
    train(WEFT_LSTM, 1, losses);
    assert_numbers("lstm losses", losses, lstm_losses, 10);
    train(WEFT_LSTM, 3, again);
    assert_memory_equal(again, losses, sizeof losses);
    if (!test_on_cpu()) return;
    train(WEFT_GRU, 2, losses);
    assert_numbers("gru losses", losses, gru_losses, 10);
}

/* A stream continues from its own last step, even if the sequence is shorter than the window. */
static void test_streams(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_recurrent_lm_options options = {.kind = WEFT_GRU, .vocab = 7, .layers = 1, .width = 4, .streams = 2};
    weft_module *m = weft_nn_recurrent_lm(ctx, &options);
    const int64_t steps[2] = {1, 3};
    float logits[2][3][7], states[2][4], carried[2][4];
    weft_tensor *tokens = weft_from(ctx, WEFT_I32, SHAPE(2, 3), (int32_t[]){1, 6, 5, 2, 4, 3});
    weft_tensor *y = weft_forward_from(m, tokens, NULL, steps);
    assert_ok(weft_read(y, logits, sizeof logits));
    assert_ok(weft_read(weft_parameter(m, "h"), carried, sizeof carried));
    assert_memory_equal(logits[0][1], logits[0][2], sizeof logits[0][1]); /* states 0: the head's bias */
    weft_module_set_training(m, false);
    weft_states last = {NULL, NULL};
    assert_ok(weft_tensor_status(weft_forward_from(m, tokens, &last, steps)));
    assert_ok(weft_read(last.h, states, sizeof states));
    assert_memory_equal(states, carried, sizeof states);
    assert_ok(weft_streams_restart(m));
    assert_ok(weft_read(weft_parameter(m, "h"), carried, sizeof carried));
    for (int i = 0; i < 8; i++) assert_true(carried[i / 4][i % 4] == 0);
    assert_int_equal(weft_streams_restart(weft_nn_gru(ctx, IN, H, NULL)), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_streams_restart(NULL), WEFT_ERR_ARGUMENT);
    weft_close(ctx);
}

/* ---- programs ---- */

static int products(const weft_program *program) { return heavies(program, WEFT_HEAVY_MATMUL); }

static void test_programs(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_module *m = weft_nn_lstm(ctx, IN, H, &(weft_recurrent_layer_options){.layers = 2});
    weft_optimizer *sgd = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});
    weft_tensor *x = given(ctx, false, 5, SHAPE(B, T, IN));
    assert_ok(weft_optimizer_step(sgd, weft_mean(weft_forward(m, x), WEFT_ALL_AXES, false)));
    weft_program *step =
        newest(ctx); /* one matmul for the inputs and one for each gradient, none for each time step */
    assert_int_equal(heavies(step, WEFT_HEAVY_RECURRENT), 4);
    assert_int_equal(products(step), 2 + 2 + 3);
    weft_close(ctx);
}

/* ---- what is refused ---- */

static void assert_says(weft_tensor *t, weft_status status, const char *text) {
    assert_int_equal(weft_tensor_status(t), status);
    if (!strstr(weft_last_error(weft_context_of(t)), text))
        fail_msg("\"%s\" lacks \"%s\"", weft_last_error(weft_context_of(t)), text);
}

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_module *m = weft_nn_lstm(ctx, IN, H, NULL), *gru = weft_nn_gru(ctx, IN, H, NULL);
    weft_tensor *x = given(ctx, false, 5, SHAPE(B, T, IN));
    const int64_t none[] = {6, 0, 4}, long_ones[] = {6, 1, 7};
    weft_states wrong = {given(ctx, false, 3, SHAPE(1, B, H + 1)), NULL},
                c = {NULL, given(ctx, false, 3, SHAPE(1, B, H))};
    assert_says(weft_forward_from(m, x, NULL, none), WEFT_ERR_ARGUMENT, "sequence 1 has length 0");
    assert_says(weft_forward_from(m, x, NULL, long_ones), WEFT_ERR_ARGUMENT, "sequence 2 has length 7");
    assert_says(weft_forward(m, given(ctx, false, 5, SHAPE(B, 0, IN))), WEFT_ERR_SHAPE, "length 0");
    assert_says(weft_forward(m, given(ctx, false, 5, SHAPE(B, T, IN + 1))), WEFT_ERR_SHAPE, "input");
    assert_says(weft_forward_from(m, x, &wrong, NULL), WEFT_ERR_SHAPE, "state");
    assert_int_equal(weft_tensor_status(wrong.h), WEFT_ERR_SHAPE);
    assert_says(weft_forward_from(gru, x, &c, NULL), WEFT_ERR_ARGUMENT, "only an LSTM");
    weft_module *linear = weft_nn_linear(ctx, IN, H, NULL);
    assert_says(weft_forward_from(linear, x, NULL, NULL), WEFT_ERR_ARGUMENT, "no states");
    int64_t shape[3];
    assert_int_equal(weft_states_shape(linear, 1, shape), 0);
    assert_int_equal(weft_states_shape(NULL, 1, shape), 0);
    assert_false(weft_states_have_c(gru));
    assert_int_equal(weft_module_status(weft_nn_gru(ctx, 0, H, NULL)), WEFT_ERR_ARGUMENT);
    assert_int_equal(
        weft_module_status(weft_nn_rnn(ctx, IN, H, true, &(weft_recurrent_layer_options){.dropout = 1})),
        WEFT_ERR_ARGUMENT);
    weft_recurrent_lm_options lm = {
        .kind = WEFT_GRU, .vocab = 7, .layers = 1, .width = 6, .embedding = 5, .tied = true};
    weft_module *bad = weft_nn_recurrent_lm(ctx, &lm);
    assert_int_equal(weft_module_status(bad), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_tensor_status(weft_forward_from(bad, x, NULL, NULL)), WEFT_ERR_ARGUMENT);
    lm.embedding = 0;
    weft_module *tied = weft_nn_recurrent_lm(ctx, &lm);
    assert_false(weft_parameter_find(tied, "head.weight", &(weft_parameter_info){0}));
    assert_says(weft_forward(tied, x), WEFT_ERR_SHAPE, "tokens");
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),  cmocka_unit_test(test_cells),    cmocka_unit_test(test_training),
        cmocka_unit_test(test_streams), cmocka_unit_test(test_programs), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
