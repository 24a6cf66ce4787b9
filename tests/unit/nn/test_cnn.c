/* Training a convolutional net: ten steps against PyTorch's from the same weights (cnn.inc, written by
 * make_cnn.py). Then convolutions of many shapes, with first and second gradients: the CPU with one and two
 * threads, and interp with and without expansion, must all agree. */
#include <weft/fit.h>
#include "unit/core_help.h"
#include "interp/interp.h"

#include "unit/parity/cnn.inc"

/* ---- PyTorch ---- */

enum { BATCH = 16, PIXELS = 28 * 28 };

/* n hash values in -bound..bound, with the same bits as in Python. */
static void spread(int64_t n, uint32_t salt, float bound, float *to) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)i + salt * 1000003U;
        x ^= x >> 16;
        x *= 0x7feb352dU;
        x ^= x >> 15;
        x *= 0x846ca68bU;
        x ^= x >> 16;
        to[i] = ((float)(x >> 8) * 0x1p-23F - 1) * bound;
    }
}

static void set_parameters(weft_module *net) {
    static const float bounds[] = {0.33F, 0.059F, 0.018F, 0.088F};
    weft_parameter_info info;
    assert_int_equal(weft_parameter_count(net), COUNT(cnn_means));
    for (size_t i = 0; i < COUNT(cnn_means); i++) {
        assert_true(weft_parameter_get(net, i, &info));
        const int64_t n = weft_numel(info.tensor);
        float *data = malloc((size_t)n * sizeof *data);
        spread(n, (uint32_t)i, bounds[i / 2], data);
        assert_ok(weft_write(info.tensor, data, (size_t)n * sizeof *data));
        free(data);
    }
}

static double step(weft_context *ctx, weft_module *net, weft_optimizer *adam, uint32_t number) {
    static float x[BATCH * PIXELS];
    int32_t labels[BATCH];
    spread(BATCH * PIXELS, 100 + number, 1, x);
    for (int i = 0; i < BATCH * PIXELS; i++) x[i] = fabsf(x[i]);
    for (int i = 0; i < BATCH; i++) {
        labels[i] = i * 7 % 10;
        for (int j = 0; j < 28; j++) x[i * PIXELS + labels[i] * 2 * 28 + j] += 1;
    }
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *loss =
        weft_cross_entropy(weft_forward(net, weft_from(ctx, WEFT_F32, SHAPE(BATCH, 1, 28, 28), x)),
                           weft_from(ctx, WEFT_I32, SHAPE(BATCH), labels), NULL);
    assert_ok(weft_optimizer_step(adam, loss));
    const double value = weft_item(loss);
    weft_scope_close(scope);
    return value;
}

static void test_pytorch(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft_module *net =
        weft_nn_cnn(ctx, &(weft_cnn_options){.channels = 1, .rows = 28, .columns = 28, .classes = 10});
    set_parameters(net);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 1e-3});
    weft_parameter_info info;
    for (size_t i = 0; i < COUNT(cnn_losses); i++) {
        const double loss = step(ctx, net, adam, (uint32_t)i);
        if (!(fabs(loss - cnn_losses[i]) <= 1e-5))
            fail_msg("loss %zu is %.9g, PyTorch's %.9g", i, loss, cnn_losses[i]);
    }
    for (size_t i = 0; i < COUNT(cnn_means); i++) {
        assert_true(weft_parameter_get(net, i, &info));
        const double mean = weft_item(weft_mean(weft_abs(info.tensor), WEFT_ALL_AXES, false));
        if (!(fabs(mean - cnn_means[i]) <= 1e-5))
            fail_msg("parameter %zu: mean size %.9g, PyTorch's %.9g", i, mean, cnn_means[i]);
    }
    weft_close(ctx);
}

/* Images change their layout only where they are flattened, once for the matmul and its gradient. Both
 * passes of a pool are one map each. */
static void test_plan(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_module *net =
        weft_nn_cnn(ctx, &(weft_cnn_options){.channels = 1, .rows = 28, .columns = 28, .classes = 10});
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 1e-3});
    step(ctx, net, adam, 0);
    const weft_program *program = newest(ctx);
    int large = 0;
    assert_int_equal(heavies(program, WEFT_HEAVY_CONV), 5); /* the images get no gradient */
    for (int i = 0; i < program->commands.count; i++) {
        const weft_kernel *kernel = program->commands.list[i].kernel;
        if (program->commands.list[i].kind != WEFT_COMMAND_KERNEL) continue;
        for (int v = 0; v < kernel->n_views; v++) assert_int_equal(kernel->views[v].count, 1);
        large += weft__kernel_rows(kernel) * weft__kernel_row_length(kernel) >= BATCH * 3136;
    }
    assert_int_equal(large, 8); /* 2 pools forward, flatten, 2 pools backward, 2 biases, update */
    weft_close(ctx);
}

/* ---- different computations of the same convolutions ---- */

typedef struct geometry {
    int64_t x[4], w[4];
    weft_conv_options o;
} geometry;

/* These shapes cover bands of rows, split sums, several vector calls, pixels without taps, and ranges of
 * channels. */
static const geometry geometries[] = {
    {{3, 5, 17, 19}, {35, 5, 3, 3}, {.padding = {1, 1}}},
    {{2, 70, 9, 8}, {20, 70, 3, 3}, {.padding = {1, 0}, .stride = {2, 1}}},
    {{2, 6, 12, 13}, {8, 3, 2, 3}, {.groups = 2, .stride = {3, 4}, .padding = {0, 2}}},
    {{1, 3, 70, 150}, {5, 3, 5, 7}, {.stride = {2, 2}, .padding = {2, 3}, .dilation = {2, 1}}},
    {{2, 40, 6, 6}, {130, 40, 1, 1}, {.groups = 1}},
    {{2, 33, 9, 9}, {33, 1, 3, 3}, {.groups = 33, .padding = {1, 1}}},
    {{2, 18, 9, 9}, {36, 1, 3, 3}, {.groups = 18, .padding = {1, 1}, .stride = {2, 2}}},
    {{2, 20, 11, 12}, {20, 1, 3, 4}, {.groups = 20, .padding = {2, 3}, .stride = {2, 3}, .dilation = {2, 3}}},
    {{1, 2, 8, 9}, {2, 1, 20, 21}, {.groups = 2, .padding = {10, 10}}},
    {{2, 2, 8, 3}, {2, 1, 4, 2}, {.groups = 2, .padding = {4, 3}, .stride = {2, 1}, .dilation = {1, 2}}},
    {{2, 6, 5, 4}, {6, 3, 2, 2}, {.groups = 2, .padding = {4, 5}}}, /* windows that cover only padding */
    {{1, 2, 1, 420}, {2, 1, 1, 400}, {.groups = 2, .padding = {0, 20}}},
    {{2, 33, 9, 9}, {66, 33, 1, 1}, {.groups = 1}},
    {{9, 8, 4, 4}, {4, 8, 4, 4}, {.groups = 1}},
    {{1, 2, 3, 500}, {3, 2, 1, 9}, {.dilation = {1, 3}, .padding = {0, 12}}},
};

enum { RESULTS = 6 };

static weft_tensor *squares(weft_tensor *t) {
    return weft_sum(weft_mul(t, weft_mul(t, t)), WEFT_ALL_AXES, false);
}

/* Computes y, its gradients, and the gradients of a function of those gradients. */
static void compute(weft_context *ctx, const geometry *g, bool up, float *out[RESULTS], int64_t *count) {
    weft_tensor *x = numbers(ctx, true, 1, 4, g->x), *w = numbers(ctx, true, 2, 4, g->w), *all[RESULTS];
    weft_tensor *bias = numbers(ctx, false, 3, 1, &g->w[up ? 1 : 0]);
    if (up && g->o.groups > 1) bias = NULL;
    all[0] = up ? weft_conv_transpose2d(x, w, bias, &g->o) : weft_conv2d(x, w, bias, &g->o);
    assert_ok(weft_gradient(squares(all[0]), (weft_tensor *[]){x, w}, 2, &all[1]));
    weft_tensor *both = weft_add(squares(all[1]), weft_mul_scalar(squares(all[2]), 1e-6));
    assert_ok(weft_gradient(both, (weft_tensor *[]){x, w}, 2, &all[3]));
    all[5] = weft_relu(all[0]);
    assert_ok(weft_eval(all, RESULTS));
    for (int i = 0; i < RESULTS; i++) {
        count[i] = weft_numel(all[i]);
        out[i] = malloc((size_t)count[i] * sizeof(float));
        assert_ok(weft_read(all[i], out[i], (size_t)count[i] * sizeof(float)));
    }
}

static void compare(const float *got, const float *want, int64_t n, double relative, const char *what, int g,
                    int result) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= relative * most))
            fail_msg("geometry %d, result %d, %s: element %lld is %.9g, not %.9g (most %.3g)", g, result,
                     what, (long long)i, (double)got[i], (double)want[i], most);
}

static void test_agree(void **state) {
    (void)state;
    weft_context *ctx[4] = {open_device("interp", false), open_device("interp", true),
                            open_device("cpu", false), NULL};
    weft__interp_decline(ctx[1]->device, 1U << WEFT_HEAVY_CONV);
    assert_ok(weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx[3]));
    static const char *const what[] = {"", "expanded", "cpu", "two threads"};
    for (int up = 0; up < 2; up++)
        for (size_t g = 0; g < COUNT(geometries); g++) {
            geometry one = geometries[g];
            if (up) { /* x has the shape of the convolution's result */
                one.x[1] = one.w[0];
                one.x[2] = one.x[2] / 2 + 1, one.x[3] = one.x[3] / 2 + 1;
                if (one.o.padding[0] * 2 >= one.x[2]) continue;
            }
            float *out[4][RESULTS];
            int64_t count[RESULTS];
            for (int c = 0; c < 4; c++) compute(ctx[c], &one, up, out[c], count);
            for (int r = 0; r < RESULTS; r++) {
                for (int c = 1; c < 3; c++) compare(out[c][r], out[0][r], count[r], 2e-5, what[c], (int)g, r);
                assert_memory_equal(out[3][r], out[2][r], (size_t)count[r] * sizeof(float));
                for (int c = 0; c < 4; c++) free(out[c][r]);
            }
        }
    for (int c = 0; c < 4; c++) weft_close(ctx[c]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pytorch), cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
