/* How to write your own op as a scalar expression: the "snake" activation x + sin(a x)^2 / a (Ziyin et al.
 * 2020), whose frequency a is learned. The op runs and fuses on every device, and Weft derives its gradient
 * from the expression. The example fits a sine beyond the training data, which a ReLU network of this size
 * cannot. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { ROWS = 256, HIDDEN = 16 };

/* The forward function of the layer. The op is defined at the first call. It belongs to one context: a
 * program with several contexts needs one op for each. */
static weft_tensor *snake(weft_module *m, weft_tensor *x) {
    const weft_op_options options = {
        .name = "snake", .arity = 2, .expression = "a + w_sin(a * b) * w_sin(a * b) / b"};
    static weft_defined_op *op;
    if (!op && weft_op_define(weft_context_of(x), &options, &op) != WEFT_OK) return NULL;
    return weft_op_apply(op, ((weft_tensor *[]){x, weft_parameter(m, "frequency")}));
}

static weft_module *snake_layer(weft_context *ctx, int64_t width) {
    weft_module *m = weft_module_new(ctx, "snake", snake, NULL);
    const weft_init init = {.kind = WEFT_INIT_CONSTANT, .value = 1};
    (void)weft_module_parameter(m, "frequency", WEFT_F32, 1, &width,
                                &init); /* a failure poisons the module */
    return m;
}

int main(void) {
    static float x[ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[i] = (float)i / 16 - 8;
        y[i] = sinf(x[i]) + 0.2f * x[i];
    }
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.seed = 1}, &ctx) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(NULL));
        return 1;
    }
    weft_module *network =
        weft_nn_sequential(ctx, "wave", weft_nn_linear(ctx, 1, HIDDEN, NULL), snake_layer(ctx, HIDDEN),
                           weft_nn_linear(ctx, HIDDEN, 1, NULL), NULL);
    weft_optimizer *adam = weft_adam(network, &(weft_adam_options){.lr = 0.02});
    weft_tensor *inputs = weft_from(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 1}, x);
    weft_tensor *targets = weft_from(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 1}, y);
    double loss = 1;
    weft_status status = WEFT_OK;
    for (int step = 0; step < 500 && status == WEFT_OK; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *error = weft_mse(weft_forward(network, inputs), targets, WEFT_MEAN);
        status = weft_optimizer_step(adam, error);
        if (status == WEFT_OK) loss = weft_item(error);
        if (step % 100 == 0) printf("step %3d  loss %.5f\n", step, loss);
        weft_scope_close(scope);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    printf("loss %.5f\n", loss);
    weft_close(ctx);
    return status == WEFT_OK && loss < 0.01 ? 0 : 1;
}
