/* The smallest useful network: XOR with two layers and Adam. The step is compiled once with
 * weft_optimizer_hold and then run 100 times in each call. This is the fastest way to repeat a step on the
 * same inputs. custom_layer.c has the usual loop with weft_optimizer_step. The exit status is 0 if all four
 * answers are right. */
#include <stdio.h>
#include <weft/weft.h>

int main(void) {
    static const float x[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, y[4] = {0, 1, 1, 0};
    float answers[4] = {0};
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.seed = 1}, &ctx) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(NULL));
        return 1;
    }
    weft_module *net =
        weft_nn_mlp(ctx, (int64_t[]){2, 8, 1}, 3, &(weft_mlp_options){.activation = WEFT_TANH});
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 0.05});
    weft_tensor *inputs = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 2}, x);
    weft_tensor *targets = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 1}, y);
    weft_tensor *loss = weft_bce_with_logits(weft_forward(net, inputs), targets, WEFT_MEAN);

    weft_program *step = NULL;
    weft_status status = weft_optimizer_hold(adam, loss, &step);
    for (int i = 0; i < 5 && status == WEFT_OK; i++) {
        status = weft_optimizer_run_many(adam, step, 100);
        if (status == WEFT_OK) printf("step %3d  loss %.5f\n", 100 * (i + 1), weft_item(loss));
    }
    if (status == WEFT_OK)
        status = weft_read(weft_sigmoid(weft_forward(net, inputs)), answers, sizeof answers);
    int right = 0;
    for (int i = 0; i < 4 && status == WEFT_OK; i++) {
        printf("%.0f xor %.0f: %.3f\n", (double)x[i][0], (double)x[i][1], (double)answers[i]);
        right += (answers[i] > 0.5F) == (y[i] > 0.5F);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_program_free(step);
    weft_close(ctx);
    return right == 4 ? 0 : 1;
}
