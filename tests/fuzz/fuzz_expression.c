/* The first byte selects what the rest is: the expression of an op, the gradient of an op, or an equation
 * of einsum. An accepted text is computed, and so is its gradient. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/op.h>
#include <weft/weft.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static weft_tensor *variable(weft_context *ctx, int rank, const int64_t *shape) {
    static const float numbers[6] = {1, -2, 0.5f, 3, 0, -0.25f};
    return weft_variable_new(ctx, "v", WEFT_F32, rank, shape, numbers);
}

static weft_tensor *defined(weft_context *ctx, unsigned how, const char *text, weft_tensor *const *in) {
    weft_op_options options = {.name = "op", .arity = 1 + (int)(how % 3), .expression = text};
    weft_defined_op *op;
    if (how / 3 % 2) options.expression = "a", options.gradients[0] = text;
    return weft_op_define(ctx, &options, &op) == WEFT_OK ? weft_op_apply(op, in) : NULL;
}

static void compute(weft_context *ctx, weft_tensor *y, weft_tensor **in) {
    weft_tensor *grads[3];
    if (weft_tensor_status(y) != WEFT_OK) return;
    if (weft_eval(&y, 1) != WEFT_OK) abort();
    if (weft_dtype_of(y) != WEFT_F32) return;
    if (weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), in, 3, grads) == WEFT_OK &&
        weft_eval(grads, 3) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(ctx));
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_context *ctx;
    if (size == 0 || weft_open(&(weft_open_options){.device = "interp"}, &ctx) != WEFT_OK) return 0;
    char *text = malloc(size);
    if (!text) abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    const unsigned how = data[0];
    weft_tensor *matrices[3] = {variable(ctx, 2, (int64_t[]){2, 3}), variable(ctx, 2, (int64_t[]){3, 2}),
                                variable(ctx, 1, (int64_t[]){2})};
    weft_tensor *rows[3] = {matrices[0], variable(ctx, 1, (int64_t[]){3}),
                            variable(ctx, 2, (int64_t[]){2, 1})};
    if (how & 1)
        compute(ctx, weft_einsum(text, matrices, 1 + (int)(how / 2 % 3)), matrices);
    else
        compute(ctx, defined(ctx, how / 2, text, rows), rows);
    free(text);
    weft_close(ctx);
    return 0;
}
