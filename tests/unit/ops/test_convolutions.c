/* Convolutions and pools against PyTorch's, with their gradients (convolutions.inc, written by
 * make_convolutions.py), and the commands of their programs. */
#include "unit/core_help.h"
#include "unit/parity/convolutions.inc"

static weft_tensor *pattern(weft_context *ctx, bool variable, int by, int rank, const int64_t *shape) {
    float data[256];
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    assert_true(n <= (int64_t)COUNT(data));
    for (int64_t i = 0; i < n; i++) data[i] = (float)((i * by + 3) % 17 - 8) / 8;
    weft_tensor *t = variable ? weft_variable_new(ctx, "v", WEFT_F32, rank, shape, data)
                              : weft_from(ctx, WEFT_F32, rank, shape, data);
    assert_ok(weft_tensor_status(t));
    return t;
}

static void assert_near(weft_tensor *t, const float *want, size_t n) {
    float got[256];
    assert_int_equal(weft_numel(t), n);
    assert_ok(weft_read(t, got, n * sizeof *got));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * fmaxf(1, fabsf(want[i]))))
            fail_msg("element %zu of %zu is %.9g, PyTorch has %.9g", i, n, (double)got[i], (double)want[i]);
}

static void check(weft_tensor *y, weft_tensor *const *in, size_t n, const float *const *want,
                  const size_t *count) {
    weft_context *ctx = weft_context_of(y);
    weft_tensor *grads[3];
    weft_tensor *loss =
        weft_sum(weft_mul(y, pattern(ctx, false, 11, weft_rank(y), weft_shape(y))), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, in, n, grads));
    assert_near(y, want[0], count[0]);
    for (size_t i = 0; i < n; i++) assert_near(grads[i], want[1 + i], count[1 + i]);
}

#define CONVOLUTION(name, x_shape, w_shape, channels, ...)                                                   \
    do {                                                                                                     \
        weft_tensor *in[3] = {pattern(ctx, true, 5, x_shape), pattern(ctx, true, 7, w_shape),                \
                              pattern(ctx, true, 3, SHAPE(channels))};                                       \
        weft_tensor *y = weft_##name(in[0], in[1], in[2], &(weft_conv_options){__VA_ARGS__});                \
        check(y, in, 3, (const float *[]){name##_y, name##_x, name##_w, name##_b},                           \
              (const size_t[]){COUNT(name##_y), COUNT(name##_x), COUNT(name##_w), COUNT(name##_b)});         \
    } while (0)

#define POOL(name, ...)                                                                                      \
    do {                                                                                                     \
        weft_tensor *x = pattern(ctx, true, 5, SHAPE(1, 2, 5, 6));                                           \
        weft_tensor *y = weft_##name(x, &(weft_pool_options){__VA_ARGS__});                                  \
        check(y, &x, 1, (const float *[]){name##_y, name##_x},                                               \
              (const size_t[]){COUNT(name##_y), COUNT(name##_x)});                                           \
    } while (0)

#define IMAGE(name, shape, ...)                                                                              \
    do {                                                                                                     \
        weft_tensor *x = pattern(ctx, true, 5, shape);                                                       \
        check(__VA_ARGS__, &x, 1, (const float *[]){name##_y, name##_x},                                     \
              (const size_t[]){COUNT(name##_y), COUNT(name##_x)});                                           \
    } while (0)

/* Resamples with extents that do not divide each other, by sizes and by scales. */
static void check_resampling(weft_context *ctx) {
    typedef weft_interpolate_options to;
    IMAGE(adaptive_avg_pool2d, SHAPE(1, 2, 5, 6), weft_adaptive_avg_pool2d(x, 3, 4));
    IMAGE(adaptive_max_pool2d, SHAPE(1, 2, 5, 6), weft_adaptive_max_pool2d(x, 3, 4));
    IMAGE(adaptive_avg_pool1d, SHAPE(2, 5, 6), weft_adaptive_avg_pool1d(x, 4));
    IMAGE(nearest_size, SHAPE(1, 2, 5, 6), weft_interpolate2d(x, &(to){.size = {7, 4}}));
    IMAGE(nearest_scale, SHAPE(1, 2, 5, 6), weft_interpolate2d(x, &(to){.scale = {2, 1.3}}));
    IMAGE(bilinear_size, SHAPE(1, 2, 5, 6),
          weft_interpolate2d(x, &(to){.size = {8, 4}, .mode = WEFT_LINEAR}));
    IMAGE(bilinear_scale, SHAPE(1, 2, 5, 6),
          weft_interpolate2d(x, &(to){.scale = {1.7, 2}, .mode = WEFT_LINEAR}));
    IMAGE(linear, SHAPE(2, 5, 6), weft_interpolate1d(x, &(to){.size = {9}, .mode = WEFT_LINEAR}));
    IMAGE(instance_norm, SHAPE(1, 2, 5, 6), weft_instance_norm(x, NULL, NULL, 1e-5));
}

static void check_device(const char *device) {
    weft_context *ctx = open_device(device, false);
    CONVOLUTION(conv1d, SHAPE(2, 2, 9), SHAPE(4, 1, 3), 4, .stride = {2}, .padding = {1}, .groups = 2);
    CONVOLUTION(conv2d, SHAPE(2, 2, 6, 5), SHAPE(3, 2, 3, 2), 3, .stride = {2, 1}, .padding = {1, 0},
                .dilation = {1, 2});
    CONVOLUTION(conv_transpose1d, SHAPE(1, 2, 5), SHAPE(2, 3, 3), 3, .stride = {2}, .padding = {1},
                .output_padding = {1});
    CONVOLUTION(conv_transpose2d, SHAPE(1, 2, 3, 4), SHAPE(2, 2, 2, 3), 4, .stride = {2, 1},
                .padding = {0, 1}, .groups = 2);
    POOL(max_pool2d, .size = {3, 3}, .stride = {2, 2}, .padding = {1, 1});
    POOL(avg_pool2d, .size = {3, 2}, .stride = {2, 2}, .padding = {1, 1});
    check_resampling(ctx);
    weft_close(ctx);
}

static void test_pytorch(void **state) {
    (void)state;
    check_device("cpu");
    check_device("interp");
}

/* Checks that programs contain no copies beyond the documented ones. */
static void test_plans(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(2, 3, 8, 9)), *w = numbers(ctx, true, 2, SHAPE(4, 3, 3, 3));
    weft_tensor *y = weft_sum(weft_unfold(weft_unfold(x, 2, 3, 1, 1), 3, 3, 2, 2), -1, false);
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 1, 0); /* the windows are views */
    y = weft_conv2d(x, w, NULL, &(weft_conv_options){.padding = {1, 1}});
    y = weft_conv2d(y, numbers(ctx, true, 3, SHAPE(5, 4, 1, 1)), NULL, NULL);
    assert_ok(weft_eval(&y, 1));
    assert_plan(newest(ctx), 3, 0); /* copies: x and w with channels last, the result with channels first */
    assert_int_equal(heavies(newest(ctx), WEFT_HEAVY_CONV), 2);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pytorch), cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
