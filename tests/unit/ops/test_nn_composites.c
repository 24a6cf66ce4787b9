/* Softmax and related functions, activations, norms, dropout: values compared with plain C, gradients, and
 * special cases. */
#include "unit/nn_help.h"
#include "gradcheck.h"

/* ---- softmax ---- */

static void test_softmax(void **state) {
    weft_context *ctx = *state;
    double x[2 * 3 * 4], y[24], l[24], s[24];
    fill(x, 24, 1);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 4; b++) { /* along axis 1 */
            double sum = 0.0;
            for (int i = 0; i < 3; i++) sum += exp(x[a * 12 + i * 4 + b]);
            for (int i = 0; i < 3; i++) {
                y[a * 12 + i * 4 + b] = exp(x[a * 12 + i * 4 + b]) / sum;
                l[a * 12 + i * 4 + b] = x[a * 12 + i * 4 + b] - log(sum);
            }
            s[a * 4 + b] = log(sum);
        }
    weft_tensor *t = wide_from(ctx, SHAPE(2, 3, 4), x);
    double *got = values_of(weft_softmax(t, 1));
    assert_close(got, y, 24, test_within(ctx, 1e-14, 2e-5));
    free(got);
    got = values_of(weft_log_softmax(t, -2));
    assert_close(got, l, 24, test_within(ctx, 1e-14, 2e-5));
    free(got);
    weft_tensor *kept = weft_logsumexp(t, 1, true), *dropped = weft_logsumexp(t, 1, false);
    assert_shape(kept, SHAPE(2, 1, 4));
    assert_shape(dropped, SHAPE(2, 4));
    got = values_of(dropped);
    assert_close(got, s, 8, test_within(ctx, 1e-14, 2e-5));
    free(got);
    assert_poisoned(weft_softmax(t, 3), WEFT_ERR_ARGUMENT, "softmax", "axis 3");
    assert_poisoned(weft_softmax(weft_full_i64(ctx, WEFT_I32, SHAPE(2), 1), 0), WEFT_ERR_DTYPE, "softmax",
                    "i32");
}

/* A fully masked row has softmax 0 and gradient 0, and does not affect other rows. Large logits do not
 * overflow. */
static void test_masked_rows(void **state) {
    weft_context *ctx = *state;
    const double inf = (double)INFINITY;
    const double large = test_within(ctx, 1e308, 1e38);
    double x[12] = {-inf, -inf, -inf, 1.0, -inf, 2.0, large, large, -large, 0.0, 0.0, 0.0};
    weft_tensor *v = wide_variable(ctx, SHAPE(4, 3), x), *grad;
    double e = exp(-1.0), p = e / (1.0 + e);
    double *y = values_of(weft_softmax(v, -1));
    double third = 1.0 / 3.0;
    assert_close(y, (double[]){0, 0, 0, p, 0, 1 - p, 0.5, 0.5, 0, third, third, third}, 12,
                 test_within(ctx, 1e-15, 2e-5));
    free(y);
    double *l = values_of(weft_logsumexp(v, -1, false));
    assert_true(l[0] == -inf);
    assert_close(l + 1, (double[]){2.0 + log1p(e), large, log(3.0)}, 3, test_within(ctx, 1e-15, 2e-5));
    free(l);
    weft_tensor *weights = variable(ctx, 2, SHAPE(4, 3));
    for (int which = 0; which < 2; which++) {
        weft_tensor *loss = which ? weft_sum(weft_logsumexp(v, -1, false), WEFT_ALL_AXES, false)
                                  : weft_sum(weft_mul(weft_softmax(v, -1), weights), WEFT_ALL_AXES, false);
        assert_ok(weft_gradient(loss, &v, 1, &grad));
        double *g = values_of(grad);
        for (int i = 0; i < 12; i++) assert_true(isfinite(g[i]));
        for (int i = 0; i < 3; i++) assert_true(g[i] == 0.0);
        assert_true(g[4] == 0.0);
        free(g);
    }
}

/* ---- gradients at the edges of functions ---- */

/* The gradient of sum(y * (1, 2, ...)) by x, which has n elements, is `wanted`. */
static void assert_gradient(weft_tensor *y, weft_tensor *x, int n, const double *wanted) {
    weft_context *ctx = weft_context_of(x);
    weft_tensor *weights = weft_arange(ctx, test_wide(ctx), 1, 1 + (double)weft_numel(y), 1), *grad;
    y = weft_reshape(y, SHAPE(weft_numel(y)));
    assert_ok(weft_gradient(weft_sum(weft_mul(y, weights), WEFT_ALL_AXES, false), &x, 1, &grad));
    double *got = values_of(grad);
    assert_close(got, wanted, n, test_within(ctx, 1e-14, 2e-5));
    free(got);
}

/* As in PyTorch, the gradient is 0 at a limit of clamp, and for a standard deviation of 0. */
static void test_edges(void **state) {
    weft_context *ctx = *state;
    const double inf = (double)INFINITY, d = sqrt(2.0) / 2;
    weft_tensor *x = wide_variable(ctx, SHAPE(5), (double[]){-2, -1, 0, 1, 2});
    assert_gradient(weft_clamp(x, -1, 1), x, 5, (double[]){0, 0, 3, 0, 0});
    assert_gradient(weft_clamp(x, -HUGE_VAL, 1), x, 5, (double[]){1, 2, 3, 0, 0});
    weft_tensor *rows = wide_variable(ctx, SHAPE(2, 2), (double[]){3, 3, 4, 2});
    assert_gradient(weft_std(rows, -1, 1, false), rows, 4, (double[]){0, 0, 2 * d, -2 * d});
    assert_gradient(weft_std(rows, -1, 0, false), rows, 4, (double[]){0, 0, 1, -1});
    const weft_pool_options far = {.size = {2}, .stride = {3}}, once = {.size = {2}, .stride = {INT64_MAX}};
    assert_gradient(weft_max_pool1d(x, &far), x, 5, (double[]){0, 1, 0, 0, 2});
    assert_gradient(weft_max_pool1d(x, &once), x, 5, (double[]){0, 1, 0, 0, 0});
    const double large[6] = {inf, 1, inf, inf, -inf, -inf};
    double *y = values_of(weft_logsumexp(wide_from(ctx, SHAPE(3, 2), large), -1, false));
    assert_true(y[0] == inf && y[1] == inf && y[2] == -inf);
    free(y);
}

/* ---- activations ---- */

static double reference(int which, double x) {
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    switch (which) {
    case WEFT_IDENTITY: return x;
    case WEFT_RELU: return x > 0 ? x : 0.0;
    case WEFT_LEAKY_RELU: return x > 0 ? x : 0.01 * x;
    case WEFT_GELU: return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    case WEFT_GELU_TANH: return 0.5 * x * (1.0 + tanh(u));
    case WEFT_SILU: return x / (1.0 + exp(-x));
    case WEFT_TANH: return tanh(x);
    case WEFT_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case WEFT_SOFTPLUS: return log1p(exp(-fabs(x))) + (x > 0 ? x : 0.0);
    default: return x > 0 ? x : expm1(x);
    }
}

typedef struct activation_case {
    weft_module *layer;
    weft_tensor *x;
} activation_case;

static weft_tensor *activation_loss(void *user) {
    activation_case *c = user;
    weft_tensor *y = weft_forward(c->layer, c->x);
    return weft_sum(weft_mul(y, y), WEFT_ALL_AXES, false);
}

static void test_activations(void **state) {
    weft_context *ctx = *state;
    enum { M = 43 };
    double x[M], wanted[M];
    fill(x, M, 3);
    x[0] = 30.0, x[1] = -30.0, x[2] = 700.0, x[3] = -700.0;
    for (int which = WEFT_IDENTITY; which < WEFT_ACTIVATION_COUNT; which++) {
        weft_activation_kind kind = (weft_activation_kind)which, parsed;
        assert_true(weft_activation_parse(weft_activation_name(kind), &parsed) && parsed == kind);
        weft_module *layer = weft_nn_activation(ctx, kind);
        for (int i = 0; i < M; i++) wanted[i] = reference(which, x[i]);
        double *got = values_of(weft_forward(layer, wide_from(ctx, SHAPE(M), x)));
        assert_close(got, wanted, M, test_within(ctx, 1e-13, 2e-5));
        free(got);
        activation_case c = {layer, variable(ctx, 4, SHAPE(3, 7))};
        double worst = gradcheck(ctx, activation_loss, &c, &c.x, 1, 30);
        if (!(worst <= gradcheck_accepted(ctx))) print_error("%s\n", weft_activation_name(kind));
        assert_true(worst <= gradcheck_accepted(ctx));
    }
    assert_poisoned(weft_forward(weft_nn_activation(ctx, (weft_activation_kind)77),
                                 weft_full(ctx, WEFT_F32, SHAPE(1), 0.0)),
                    WEFT_ERR_ARGUMENT, "activation", "77");
}

/* Gradients where naive formulas give NaN or the wrong sign: far from 0, and exactly at 0. */
static void test_activation_gradients_at(void **state) {
    weft_context *ctx = *state;
    double x[3] = {0.0, 800.0, -800.0};
    weft_tensor *v = wide_variable(ctx, SHAPE(3), x), *grad;
    const struct {
        weft_tensor *y;
        double wanted[3];
    } cases[] = {{weft_softplus(v), {0.5, 1.0, 0.0}},
                 {weft_elu(v, 2.0), {2.0, 1.0, 0.0}},
                 {weft_silu(v), {0.5, 1.0, 0.0}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_ok(weft_gradient(weft_sum(cases[i].y, WEFT_ALL_AXES, false), &v, 1, &grad));
        double *g = values_of(grad);
        assert_close(g, cases[i].wanted, 3, test_within(ctx, 1e-15, 2e-5));
        free(g);
    }
}

/* ---- norms ---- */

static void test_norms(void **state) {
    weft_context *ctx = *state;
    enum { R = 5, W = 9 };
    double x[R * W], gamma[W], beta[W], wanted[R * W], rms[R * W];
    fill(x, R * W, 5);
    fill(gamma, W, 6);
    fill(beta, W, 7);
    for (int i = 0; i < W; i++) x[i] += 1e3; /* a large mean, for which a one-pass variance fails */
    for (int r = 0; r < R; r++) {
        double mean = 0.0, var = 0.0, square = 0.0;
        for (int i = 0; i < W; i++) mean += x[r * W + i] / (double)W;
        for (int i = 0; i < W; i++) var += (x[r * W + i] - mean) * (x[r * W + i] - mean) / (double)W;
        for (int i = 0; i < W; i++) square += x[r * W + i] * x[r * W + i] / (double)W;
        for (int i = 0; i < W; i++) {
            wanted[r * W + i] = (x[r * W + i] - mean) / sqrt(var + 1e-5) * gamma[i] + beta[i];
            rms[r * W + i] = x[r * W + i] / sqrt(square + 1e-5) * gamma[i];
        }
    }
    weft_tensor *t = wide_from(ctx, SHAPE(R, W), x), *g = wide_from(ctx, SHAPE(W), gamma),
                *b = wide_from(ctx, SHAPE(W), beta);
    double *got = values_of(weft_layer_norm(t, g, b, 1e-5));
    assert_close(got, wanted, R * W, test_within(ctx, 1e-11, 1e-3));
    free(got);
    got = values_of(weft_rms_norm(t, g, 1e-5));
    assert_close(got, rms, R * W, test_within(ctx, 1e-13, 2e-5));
    free(got);
    /* f32 keeps the digits of its input: the bound of class E for a mean of 1000 deviations */
    got = values_of(
        weft_layer_norm(weft_cast(t, WEFT_F32), weft_cast(g, WEFT_F32), weft_cast(b, WEFT_F32), 1e-5));
    assert_close(got, wanted, R * W, 1e-3);
    free(got);
    assert_poisoned(weft_layer_norm(t, weft_narrow(g, 0, 0, 3), b, 1e-5), WEFT_ERR_SHAPE, "gamma", "[3]");
    assert_poisoned(weft_rms_norm(t, g, -1.0), WEFT_ERR_ARGUMENT, "eps", NULL);
}

typedef struct norm_case {
    weft_tensor *in[3];
    bool rms;
} norm_case;

static weft_tensor *norm_loss(void *user) {
    norm_case *c = user;
    weft_tensor *y = c->rms ? weft_rms_norm(c->in[0], c->in[1], 1e-5)
                            : weft_layer_norm(c->in[0], c->in[1], c->in[2], 1e-5);
    return weft_sum(weft_mul(y, weft_sin(y)), WEFT_ALL_AXES, false);
}

static void test_norm_gradients(void **state) {
    weft_context *ctx = *state;
    norm_case c = {
        .in = {variable(ctx, 8, SHAPE(3, 6)), variable(ctx, 9, SHAPE(6)), variable(ctx, 10, SHAPE(6))}};
    assert_true(gradcheck(ctx, norm_loss, &c, c.in, 3, 20) <= gradcheck_accepted(ctx));
    c.rms = true;
    assert_true(gradcheck(ctx, norm_loss, &c, c.in, 2, 20) <= gradcheck_accepted(ctx));
}

/* ---- dropout ---- */

static void test_dropout(void **state) {
    weft_context *ctx = *state;
    enum { M = 20000 };
    double *ones = calloc(M, sizeof *ones);
    for (int i = 0; i < M; i++) ones[i] = 1.0;
    weft_tensor *x = wide_variable(ctx, SHAPE(M), ones), *grad;
    weft_tensor *y = weft_dropout(x, 0.3), *z = weft_dropout(x, 0.3);
    assert_ok(weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &x, 1, &grad));
    double *a = values_of(y), *b = values_of(z), *g = values_of(grad);
    int zeros = 0, differ = 0;
    for (int i = 0; i < M; i++) {
        assert_true(a[i] == 0.0 || fabs(a[i] - 1.0 / 0.7) < test_within(ctx, 1e-15, 2e-7));
        assert_true(g[i] == a[i]); /* the backward pass uses the same mask */
        zeros += a[i] == 0.0;
        differ += a[i] != b[i];
    }
    assert_true(abs(zeros - 6000) < 4 * 65); /* four standard deviations */
    assert_true(differ > M / 3);             /* another draw */
    free(a);
    free(b);
    free(g);
    free(ones);
    assert_ptr_equal(weft_dropout(x, 0.0), x);
    assert_true(weft_item(weft_sum(weft_dropout(x, 1.0), WEFT_ALL_AXES, false)) == 0.0);
    assert_poisoned(weft_dropout(x, 1.5), WEFT_ERR_ARGUMENT, "dropout", "1.5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_softmax, setup, teardown),
        cmocka_unit_test_setup_teardown(test_masked_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_activations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_activation_gradients_at, setup, teardown),
        cmocka_unit_test_setup_teardown(test_norms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_norm_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropout, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
