/* Image layers: shapes, parameters, refusals, and a small LeNet (LeCun et al. 1998) that learns to tell
 * bars from columns. They run on the device of the tests. */
#include "unit/nn_help.h"

static void assert_weight(weft_module *m, int rank, const int64_t *shape, size_t count) {
    weft_parameter_info info;
    assert_true(weft_parameter_find(m, "weight", &info));
    assert_shape(info.tensor, rank, shape);
    assert_int_equal(weft_parameter_count(m), count);
}

static void test_shapes(void **state) {
    weft_context *ctx = *state;
    weft_tensor *image = weft_full(ctx, WEFT_F32, SHAPE(2, 4, 9, 8), 1),
                *line = weft_full(ctx, WEFT_F32, SHAPE(2, 4, 9), 1);
    const weft_conv_layer_options two = {.conv = {.stride = {2, 2}, .groups = 2}};
    weft_module *m = weft_nn_conv2d(ctx, 4, 6, 3, 2, &two);
    assert_shape(weft_forward(m, image), SHAPE(2, 6, 4, 4));
    assert_weight(m, SHAPE(6, 2, 3, 2), 2);
    m = weft_nn_conv1d(ctx, 4, 6, 3, &(weft_conv_layer_options){.no_bias = true});
    assert_shape(weft_forward(m, line), SHAPE(2, 6, 7));
    assert_weight(m, SHAPE(6, 4, 3), 1);
    m = weft_nn_conv_transpose2d(ctx, 4, 6, 3, 2, &two);
    assert_shape(weft_forward(m, image), SHAPE(2, 6, 19, 16));
    assert_weight(m, SHAPE(4, 3, 3, 2), 2);
    m = weft_nn_conv_transpose1d(ctx, 4, 6, 3, NULL);
    assert_shape(weft_forward(m, line), SHAPE(2, 6, 11));
    const weft_pool_options pool = {.size = {3, 2}};
    assert_shape(weft_forward(weft_nn_max_pool2d(ctx, &pool), image), SHAPE(2, 4, 3, 4));
    assert_shape(weft_forward(weft_nn_avg_pool2d(ctx, &pool), image), SHAPE(2, 4, 3, 4));
    assert_shape(weft_forward(weft_nn_max_pool1d(ctx, &pool), line), SHAPE(2, 4, 3));
    assert_shape(weft_forward(weft_nn_avg_pool1d(ctx, &pool), line), SHAPE(2, 4, 3));
    m = weft_nn_group_norm(ctx, 2, 4, NULL);
    assert_shape(weft_forward(m, image), SHAPE(2, 4, 9, 8));
    assert_weight(m, SHAPE(4), 2);
    m = weft_nn_instance_norm(ctx, 4, NULL);
    assert_shape(weft_forward(m, image), SHAPE(2, 4, 9, 8));
    assert_weight(m, SHAPE(4), 2);
    assert_shape(weft_forward(weft_nn_adaptive_avg_pool2d(ctx, 1, 3), image), SHAPE(2, 4, 1, 3));
    assert_shape(weft_forward(weft_nn_adaptive_max_pool2d(ctx, 9, 5), image), SHAPE(2, 4, 9, 5));
    assert_shape(weft_forward(weft_nn_adaptive_avg_pool1d(ctx, 2), line), SHAPE(2, 4, 2));
    assert_shape(weft_forward(weft_nn_adaptive_max_pool1d(ctx, 1), line), SHAPE(2, 4, 1));
    const weft_interpolate_options grown = {.scale = {2, 1.5}, .mode = WEFT_LINEAR};
    assert_shape(weft_forward(weft_nn_interpolate2d(ctx, &grown), image), SHAPE(2, 4, 18, 12));
    assert_shape(weft_forward(weft_nn_interpolate1d(ctx, &grown), line), SHAPE(2, 4, 18));
    assert_shape(weft_forward(weft_nn_dropout2d(ctx, 0.5), image), SHAPE(2, 4, 9, 8));
    assert_shape(weft_forward(weft_nn_flatten(ctx), image), SHAPE(2, 288));
}

static void test_refused(void **state) {
    weft_context *ctx = *state;
    weft_tensor *image = weft_full(ctx, WEFT_F32, SHAPE(2, 4, 9, 8), 1);
    const weft_conv_layer_options three = {.conv = {.groups = 3}};
    assert_poisoned(weft_forward(weft_nn_conv2d(ctx, 4, 6, 3, 3, &three), image), WEFT_ERR_ARGUMENT, "groups",
                    "3");
    assert_poisoned(weft_forward(weft_nn_conv2d(ctx, 4, 6, 0, 3, NULL), image), WEFT_ERR_ARGUMENT, "conv2d",
                    "size");
    assert_poisoned(weft_forward(weft_nn_conv2d(ctx, 3, 6, 3, 3, NULL), image), WEFT_ERR_SHAPE, "conv2d",
                    "[2,4,9,8]");
    assert_poisoned(weft_forward(weft_nn_max_pool2d(ctx, NULL), image), WEFT_ERR_ARGUMENT, "max_pool2d",
                    "NULL");
    assert_poisoned(weft_forward(weft_nn_group_norm(ctx, 3, 4, NULL), image), WEFT_ERR_ARGUMENT,
                    "weft_nn_group_norm", "3");
    assert_poisoned(weft_forward(weft_nn_group_norm(ctx, 3, 6, NULL), image), WEFT_ERR_SHAPE, "group_norm",
                    "6");
    assert_poisoned(weft_forward(weft_nn_instance_norm(ctx, 3, NULL), image), WEFT_ERR_SHAPE, "instance_norm",
                    "3");
    assert_poisoned(weft_forward(weft_nn_instance_norm(ctx, 0, NULL), image), WEFT_ERR_ARGUMENT,
                    "instance_norm", "positive");
    assert_poisoned(weft_forward(weft_nn_adaptive_avg_pool2d(ctx, 0, 1), image), WEFT_ERR_ARGUMENT,
                    "adaptive_avg_pool2d", "positive");
    assert_poisoned(weft_forward(weft_nn_interpolate2d(ctx, NULL), image), WEFT_ERR_ARGUMENT, "interpolate2d",
                    "NULL");
    assert_poisoned(weft_forward(weft_nn_dropout2d(ctx, 2), image), WEFT_ERR_ARGUMENT, "weft_nn_dropout2d",
                    "2");
    assert_poisoned(weft_forward(weft_nn_flatten(ctx), weft_scalar(ctx, 1)), WEFT_ERR_SHAPE, "flatten",
                    "scalar");
}

/* Eight images of 12 by 12, with a horizontal bar or a column at one of four places. */
static void test_lenet_learns(void **state) {
    weft_context *ctx = *state;
    enum { N = 8, SIDE = 12, STEPS = 60 };
    static float images[N * SIDE * SIDE];
    int32_t labels[N];
    for (int i = 0; i < N; i++) {
        labels[i] = i & 1;
        for (int k = 0; k < SIDE; k++) {
            const int at = 2 + 2 * (i / 2);
            images[i * SIDE * SIDE + (labels[i] ? k * SIDE + at : at * SIDE + k)] = 1;
        }
    }
    const weft_conv_layer_options same = {.conv = {.padding = {1, 1}}};
    const weft_pool_options half = {.size = {2, 2}};
    weft_module *net = weft_nn_sequential(
        ctx, "lenet", weft_nn_conv2d(ctx, 1, 4, 3, 3, &same), weft_nn_activation(ctx, WEFT_RELU),
        weft_nn_max_pool2d(ctx, &half), weft_nn_conv2d(ctx, 4, 8, 3, 3, NULL),
        weft_nn_group_norm(ctx, 2, 8, NULL), weft_nn_activation(ctx, WEFT_RELU),
        weft_nn_avg_pool2d(ctx, &half), weft_nn_flatten(ctx), weft_nn_linear(ctx, 32, 2, NULL), NULL);
    weft_optimizer *opt = weft_adamw(net, &(weft_adam_options){.lr = 0.01});
    double first = 0, last = 0;
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(N, 1, SIDE, SIDE), images);
        weft_tensor *loss =
            weft_cross_entropy(weft_forward(net, x), weft_from(ctx, WEFT_I32, SHAPE(N), labels), NULL);
        assert_int_equal(weft_optimizer_step(opt, loss), WEFT_OK);
        last = weft_item(loss);
        if (step == 0) first = last;
        weft_scope_close(scope);
    }
    if (!(first > 0.5 && last < 0.05)) fail_msg("the loss went from %g to %g", first, last);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_shapes, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_lenet_learns, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
