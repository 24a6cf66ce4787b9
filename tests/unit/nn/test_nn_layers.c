/* Layers: shapes, values compared with plain C, and the gradient of every layer. */
#include "unit/nn_help.h"
#include "gradcheck.h"

/* Values of parameter `name` of m. */
static double *parameter(weft_module *m, const char *name) {
    weft_parameter_info info;
    if (!weft_parameter_find(m, name, &info)) {
        print_error("no parameter '%s': %s\n", name, weft_last_error(NULL));
        fail();
    }
    return values_of(info.tensor);
}

/* ---- values ---- */

static void test_linear(void **state) {
    weft_context *ctx = *state;
    enum { B = 4, I = 3, O = 5 };
    weft_module *m = weft_nn_linear(ctx, I, O, &(weft_linear_options){.dtype = test_wide(ctx)});
    double x[B * I], wanted[B * O];
    fill(x, B * I, 1);
    double *w = parameter(m, "weight"), *b = parameter(m, "bias");
    for (int r = 0; r < B; r++)
        for (int o = 0; o < O; o++) {
            wanted[r * O + o] = b[o];
            for (int i = 0; i < I; i++) wanted[r * O + o] += x[r * I + i] * w[o * I + i];
        }
    weft_tensor *y = weft_forward(m, wide_from(ctx, SHAPE(2, 2, I), x));
    assert_shape(y, SHAPE(2, 2, O));
    double *got = values_of(y);
    assert_close(got, wanted, B * O, test_within(ctx, 1e-14, 2e-5));
    free(got);
    free(w);
    free(b);
    assert_poisoned(weft_forward(m, weft_full(ctx, test_wide(ctx), SHAPE(2, 4), 1.0)), WEFT_ERR_SHAPE,
                    "linear", "[2,4]");
    assert_poisoned(
        weft_forward(weft_nn_linear(ctx, 0, 2, NULL), weft_full(ctx, test_wide(ctx), SHAPE(2, 4), 1.0)),
        WEFT_ERR_ARGUMENT, "weft_nn_linear", "0 inputs");
}

/* An empty batch works like any other batch. */
static void test_empty_batch(void **state) {
    weft_context *ctx = *state;
    weft_module *m = weft_nn_autoencoder(ctx, (int64_t[]){12, 5, 2}, 3, NULL);
    assert_shape(weft_forward(m, weft_full(ctx, WEFT_F32, SHAPE(0, 3, 4), 0)), SHAPE(0, 3, 4));
    weft_module *flat = weft_nn_flatten(ctx);
    assert_shape(weft_forward(flat, weft_full(ctx, WEFT_F32, SHAPE(0, 3, 4), 0)), SHAPE(0, 12));
}

static void test_embedding(void **state) {
    weft_context *ctx = *state;
    weft_module *m = weft_nn_embedding(ctx, 6, 4, NULL);
    const int32_t ids[4] = {5, 0, 2, 5};
    double *w = parameter(m, "weight");
    weft_tensor *y = weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(2, 2), ids));
    assert_shape(y, SHAPE(2, 2, 4));
    double *got = values_of(y);
    for (int i = 0; i < 4; i++) assert_memory_equal(got + 4 * i, w + 4 * ids[i], 4 * sizeof *w);
    free(got);
    free(w);
    float out[16];
    weft_status status = weft_read(
        weft_forward(m, weft_from(ctx, WEFT_I32, SHAPE(4), (int32_t[]){0, 6, 0, 0})), out, sizeof out);
    if (status == WEFT_OK) status = weft_synchronize(ctx);
    assert_int_equal(status, WEFT_ERR_INDEX);
}

static void test_attention(void **state) {
    weft_context *ctx = *state;
    enum { B = 2, T = 5, H = 2, D = 3, W = H * D };
    weft_module *m = weft_nn_multihead_attention(
        ctx, W, H, &(weft_multihead_attention_options){.causal = true, .dtype = test_wide(ctx)});
    double x[B * T * W], packed[T][3 * W], mixed[T][W], wanted[B * T * W];
    fill(x, B * T * W, 2);
    double *w = parameter(m, "c_attn.weight"), *b = parameter(m, "c_attn.bias");
    double *pw = parameter(m, "c_proj.weight"), *pb = parameter(m, "c_proj.bias");
    for (int n = 0; n < B; n++) {
        for (int t = 0; t < T; t++)
            for (int o = 0; o < 3 * W; o++) {
                packed[t][o] = b[o];
                for (int i = 0; i < W; i++) packed[t][o] += x[(n * T + t) * W + i] * w[o * W + i];
            }
        for (int h = 0; h < H; h++)
            for (int t = 0; t < T; t++) {
                double p[T], sum = 0.0;
                for (int s = 0; s <= t; s++) {
                    double dot = 0.0;
                    for (int d = 0; d < D; d++) dot += packed[t][h * D + d] * packed[s][W + h * D + d];
                    sum += p[s] = exp(dot / sqrt(D));
                }
                for (int d = 0; d < D; d++) {
                    mixed[t][h * D + d] = 0.0;
                    for (int s = 0; s <= t; s++)
                        mixed[t][h * D + d] += p[s] / sum * packed[s][2 * W + h * D + d];
                }
            }
        for (int t = 0; t < T; t++)
            for (int o = 0; o < W; o++) {
                wanted[(n * T + t) * W + o] = pb[o];
                for (int i = 0; i < W; i++) wanted[(n * T + t) * W + o] += mixed[t][i] * pw[o * W + i];
            }
    }
    double *got = values_of(weft_forward(m, wide_from(ctx, SHAPE(B, T, W), x)));
    assert_close(got, wanted, B * T * W, test_within(ctx, 1e-13, 2e-5));
    free(got);
    free(w), free(b), free(pw), free(pb);
    assert_poisoned(weft_forward(m, weft_full(ctx, test_wide(ctx), SHAPE(2, 6), 1.0)), WEFT_ERR_SHAPE,
                    "attention", "[2,6]");
    assert_int_equal(weft_module_status(weft_nn_multihead_attention(ctx, 7, 2, NULL)), WEFT_ERR_ARGUMENT);
}

/* ---- gradients of layers ---- */

typedef struct layer_case {
    weft_module *layer;
    weft_tensor *x; /* a variable, or data for layers that take integers */
} layer_case;

/* sum(sin(y) * y): without a symmetry that could hide an error. */
static weft_tensor *layer_loss(void *user) {
    layer_case *c = user;
    weft_tensor *y = weft_forward(c->layer, c->x);
    return weft_sum(weft_mul(y, weft_sin(y)), WEFT_ALL_AXES, false);
}

static void check_layer(weft_context *ctx, weft_module *layer, weft_tensor *x) {
    layer_case c = {layer, x};
    weft_tensor *variables[64];
    size_t n = 0;
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(layer, i, &info) && n < 60; i++) {
        double values[400]; /* of order one, and no norm of nearly equal values: both bend too much */
        int64_t size = weft_numel(info.tensor);
        assert_true(size <= 400);
        fill(values, size, (int)i + 5);
        for (int64_t j = 0; j < size; j++) values[j] *= 0.5;
        wide_write(info.tensor, values);
        variables[n++] = info.tensor;
    }
    if (weft_dtype_is_float(weft_dtype_of(x))) variables[n++] = x;
    double worst = gradcheck(ctx, layer_loss, &c, variables, n, 6);
    if (!(worst <= gradcheck_accepted(ctx))) print_error("layer %s: %g\n", weft_module_kind(layer), worst);
    assert_true(worst <= gradcheck_accepted(ctx));
}

static void test_gradients(void **state) {
    weft_context *ctx = *state;
    const weft_dtype d = test_wide(ctx);
    weft_tensor *flat = variable(ctx, 20, SHAPE(3, 6)), *cube = variable(ctx, 21, SHAPE(2, 4, 6));
    weft_tensor *ids =
        weft_variable_new(ctx, "ids", WEFT_I32, SHAPE(2, 4), (int32_t[8]){3, 1, 4, 1, 0, 4, 2, 3});
    check_layer(ctx, weft_nn_linear(ctx, 6, 4, &(weft_linear_options){.dtype = d}), flat);
    check_layer(ctx, weft_nn_linear(ctx, 6, 4, &(weft_linear_options){.dtype = d, .no_bias = true}), cube);
    check_layer(ctx, weft_nn_embedding(ctx, 5, 3, &(weft_embedding_options){.dtype = d}), ids);
    check_layer(ctx, weft_nn_layer_norm(ctx, 6, &(weft_norm_options){.dtype = d}), cube);
    check_layer(ctx, weft_nn_layer_norm(ctx, 6, &(weft_norm_options){.dtype = d, .no_affine = true}), flat);
    check_layer(ctx, weft_nn_rms_norm(ctx, 6, &(weft_norm_options){.dtype = d}), flat);
    check_layer(ctx, weft_nn_multihead_attention(ctx, 6, 2, &(weft_multihead_attention_options){.dtype = d}),
                cube);
    check_layer(ctx,
                weft_nn_multihead_attention(ctx, 6, 3,
                                            &(weft_multihead_attention_options){.dtype = d, .causal = true}),
                cube);
    check_layer(
        ctx,
        weft_nn_mlp(ctx, (int64_t[]){6, 5, 4}, 3, &(weft_mlp_options){.dtype = d, .activation = WEFT_TANH}),
        flat);
    check_layer(
        ctx,
        weft_nn_transformer_block(ctx, 6, 2, &(weft_transformer_block_options){.dtype = d, .causal = true}),
        cube);
    check_layer(ctx,
                weft_nn_gpt(ctx,
                            &(weft_gpt_options){
                                .vocab = 5, .context = 8, .layers = 2, .heads = 2, .width = 6, .dtype = d}),
                ids);
    check_layer(ctx,
                weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 5,
                                                     .context = 4,
                                                     .layers = 1,
                                                     .heads = 1,
                                                     .width = 6,
                                                     .dtype = d,
                                                     .no_bias = true,
                                                     .untied_head = true}),
                ids);
}

/* ---- dropout layers ---- */

static void test_dropout_modes(void **state) {
    weft_context *ctx = *state;
    weft_module *net =
        weft_nn_sequential(ctx, "net", weft_nn_dropout(ctx, 0.5), weft_nn_dropout(ctx, 0.5), NULL);
    weft_tensor *x = weft_full(ctx, test_wide(ctx), SHAPE(4000), 1.0);
    weft_seed(ctx, 5, 0);
    double *a = values_of(weft_forward(net, x));
    weft_seed(ctx, 5, 1);
    double *b = values_of(weft_forward(net, x));
    weft_seed(ctx, 5, 0);
    double *c = values_of(weft_forward(net, x));
    int kept = 0, differ = 0;
    for (int i = 0; i < 4000; i++) {
        kept += a[i] != 0.0;
        differ += a[i] != b[i];
    }
    assert_true(abs(kept - 1000) < 4 * 28); /* the two layers draw independently: a quarter is kept */
    assert_true(differ > 1000);             /* another step has another mask */
    assert_memory_equal(a, c, 4000 * sizeof *a);
    free(a), free(b), free(c);
    weft_module_set_training(net, false);
    assert_false(weft_module_is_training(net));
    assert_ptr_equal(weft_forward(net, x), x);
    weft_module_set_training(net, true);
    assert_true(weft_forward(net, x) != x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_linear, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_embedding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropout_modes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
