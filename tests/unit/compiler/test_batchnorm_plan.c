/* The cost of a training pass of batch norm: the number of kernels, and how many of them run over the whole
 * input. */
#include <weft/nn.h>
#include <weft/optim.h>
#include "unit/core_help.h"

/* The number of kernels that read or write that many elements. */
static int kernels_over(const weft_program *program, int64_t elements) {
    int n = 0;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_kernel *kernel = program->commands.list[i].kernel;
        bool all = false;
        for (int k = 0; kernel && k < kernel->n_args; k++) all = all || kernel->args[k].elements == elements;
        n += all;
    }
    return n;
}

static void test_passes(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    const int64_t n = 4 * 16 * 16 * 8;
    weft_tensor *x = numbers(ctx, true, 1, SHAPE(4, 16, 16, 8)),
                *t = numbers(ctx, false, 2, SHAPE(4, 16, 16, 8));
    weft_module *m = weft_nn_batch_norm(ctx, 8, NULL);
    weft_tensor *y = weft_relu(weft_forward(m, weft_permute(x, (int[]){0, 3, 1, 2})));
    y = weft_permute(y, (int[]){0, 2, 3, 1}); /* the layout of convolutions */
    weft_tensor *loss = weft_sum(weft_mul(y, t), WEFT_ALL_AXES, false);
    weft_tensor *wrt[3] = {x, weft_parameter(m, "weight"), weft_parameter(m, "bias")}, *grads[3];
    assert_ok(weft_gradient(loss, wrt, 3, grads));
    assert_ok(weft_eval((weft_tensor *[]){y, grads[0], grads[1], grads[2]}, 4));
    assert_plan(newest(ctx), 7, 0);
    assert_int_equal(kernels_over(newest(ctx), n),
                     4); /* mean, variance, y with the sums of gradients, gradient of x */
    assert_int_equal(newest(ctx)->n_sinks, 2);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
