/* How to write your own layer: a gated linear unit (Dauphin et al. 2017), y = (x W) * sigmoid(x V). It
 * consists of tensor functions, so you need not write its gradient. The example learns to multiply two
 * numbers. */
#include <stdio.h>
#include <weft/weft.h>

enum { ROWS = 256, HIDDEN = 32 };

/* The forward function of the layer. It only records ops; the optimizer's step computes them. */
static weft_tensor *gate(weft_module *m, weft_tensor *x) {
    weft_tensor *value = weft_matmul(x, weft_parameter(m, "value"));
    weft_tensor *open = weft_sigmoid(weft_matmul(x, weft_parameter(m, "gate")));
    return weft_mul(value, open);
}

static weft_module *gated_linear(weft_context *ctx, int64_t in, int64_t out) {
    weft_module *m = weft_module_new(ctx, "gated_linear", gate, NULL);
    const weft_init init = {.kind = WEFT_INIT_NORMAL, .value = 0.5};
    int64_t shape[] = {in, out};
    /* Errors need no check here: a failure poisons the module, and the first step reports it. */
    (void)weft_module_parameter(m, "value", WEFT_F32, 2, shape, &init);
    (void)weft_module_parameter(m, "gate", WEFT_F32, 2, shape, &init);
    return m;
}

int main(void) {
    static float x[2 * ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = (float)(i % 16) / 8 - 1;
        x[2 * i + 1] = (float)(i / 16) / 8 - 1;
        y[i] = x[2 * i] * x[2 * i + 1];
    }
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.seed = 1}, &ctx) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(NULL));
        return 1;
    }
    char table[2000];
    weft_module *network = weft_nn_sequential(ctx, "product", gated_linear(ctx, 2, HIDDEN),
                                              weft_nn_linear(ctx, HIDDEN, 1, NULL), NULL);
    weft_optimizer *adam = weft_adam(network, &(weft_adam_options){.lr = 0.02});
    weft_tensor *inputs = weft_from(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 2}, x);
    weft_tensor *targets = weft_from(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 1}, y);

    double loss = 1;
    weft_status status = WEFT_OK;
    for (int step = 0; step < 300 && status == WEFT_OK; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *error = weft_mse(weft_forward(network, inputs), targets, WEFT_MEAN);
        status = weft_optimizer_step(adam, error);
        if (status == WEFT_OK) loss = weft_item(error);
        if (step % 50 == 0) printf("step %3d  loss %.5f\n", step, loss);
        weft_scope_close(scope);
    }
    if (status == WEFT_OK && weft_summary(network, table, sizeof table) > 0) printf("%s", table);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    printf("loss %.5f\n", loss);
    weft_close(ctx);
    return status == WEFT_OK && loss < 0.01 ? 0 : 1;
}
