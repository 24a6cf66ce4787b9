/* Trains a small regression on one device and uses it on another: weft_module_copy carries the weights over.
 * Ends with 0 when both predict the same.
 *
 *   devices [DEVICE]      where to train: opencl, opencl:1, gpu, ...; default: opencl, else the cpu */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { POINTS = 256, BATCH = 32 };

static weft_module *new_network(weft_context *ctx) {
    return weft_mlp(ctx, (int64_t[]){1, 32, 1}, 3, &(weft_mlp_options){.activation = WEFT_TANH});
}

static weft_status report(void *user, const weft_fit_state *state, bool *stop) {
    double loss;
    (void)user, (void)stop;
    if (state->step % 400 != 0) return WEFT_OK; /* the device goes on: nobody waits for it */
    weft_status status = weft_fit_losses(state, NULL, &loss);
    if (status == WEFT_OK) printf("step %4llu  loss %.5f\n", (unsigned long long)state->step, loss);
    return status;
}

/* Learns y = sin(3 x). */
static weft_status train(weft_context *ctx, weft_module *network, float *x, float *y) {
    weft_array inputs = {
        .dtype = WEFT_F32, .rank = 2, .shape = {POINTS, 1}, .data = x, .bytes = POINTS * sizeof *x};
    weft_array targets = {
        .dtype = WEFT_F32, .rank = 2, .shape = {POINTS, 1}, .data = y, .bytes = POINTS * sizeof *y};
    weft_loader *loader;
    weft_status status =
        weft_loader_new(ctx, &inputs, &targets, &(weft_loader_options){.batch = BATCH}, &loader);
    if (status != WEFT_OK) return status;
    weft_optimizer *adam = weft_adam(network, &(weft_adam_options){.lr = 0.01});
    status = weft_fit(network, adam, loader,
                      &(weft_fit_options){.loss = WEFT_LOSS_MSE, .steps = 2000, .on_step = report}, NULL);
    weft_loader_free(loader);
    return status;
}

static weft_status predict(weft_module *network, const float *x, float *answers) {
    weft_context *ctx = weft_module_context(network);
    weft_tensor *inputs = weft_from(ctx, WEFT_F32, 2, (int64_t[]){POINTS, 1}, x);
    weft_train(network, false);
    return weft_read(weft_forward(network, inputs), answers, POINTS * sizeof *answers);
}

static int fail(const weft_context *ctx) {
    fprintf(stderr, "%s\n", weft_last_error(ctx));
    return 1;
}

int main(int argc, char **argv) {
    static float x[POINTS], y[POINTS], there[POINTS], here[POINTS];
    weft_context *device, *cpu;
    double apart = 0, error = 0;
    for (int i = 0; i < POINTS; i++) x[i] = (float)i / (POINTS / 2) - 1, y[i] = sinf(3 * x[i]);
    if (weft_open(&(weft_open_options){.device = argc > 1 ? argv[1] : "opencl,cpu", .seed = 1}, &device) !=
        WEFT_OK)
        return fail(NULL);
    if (weft_open(&(weft_open_options){.device = "cpu"}, &cpu) != WEFT_OK) return fail(NULL);
    printf("training on %s\n", weft_device_of(device));
    weft_module *trained = new_network(device), *used = new_network(cpu);
    if (train(device, trained, x, y) != WEFT_OK || predict(trained, x, there) != WEFT_OK) return fail(device);
    if (weft_module_copy(used, trained) != WEFT_OK || predict(used, x, here) != WEFT_OK) return fail(cpu);
    weft_close(device); /* the weights are on the cpu now */
    for (int i = 0; i < POINTS; i++) {
        apart = fmax(apart, fabs((double)here[i] - (double)there[i]));
        error = fmax(error, fabs((double)here[i] - (double)y[i]));
    }
    printf("predictions on both are %.1e apart, and %.3f from the truth at most\n", apart, error);
    weft_close(cpu);
    return apart < 1e-5 && error < 0.1 ? 0 : 1;
}
