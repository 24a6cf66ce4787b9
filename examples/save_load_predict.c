/* Trains a small classifier on points in the plane with weft_fit, saves it, loads it into a second network,
 * and predicts. The file holds only the weights, so both networks are made by the same function. The exit
 * status is 0 if the loaded network classifies at least nine points in ten correctly.
 *
 *   save_load_predict [FILE.safetensors]      where the network is saved; default: classify.safetensors */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { POINTS = 600, CLASSES = 3 };

/* Points on three arms of a spiral: x (POINTS, 2), y (POINTS). */
static void make_points(float *x, int32_t *y) {
    for (int i = 0; i < POINTS; i++) {
        double along = (double)(i / CLASSES) / (POINTS / CLASSES), turn = 4 * along + i % CLASSES * 2.0944;
        x[2 * i] = (float)((0.1 + along) * cos(turn));
        x[2 * i + 1] = (float)((0.1 + along) * sin(turn));
        y[i] = i % CLASSES;
    }
}

/* Two hidden layers of 32 units, and one logit for each class. */
static weft_module *new_network(weft_context *ctx) {
    return weft_nn_mlp(ctx, (int64_t[]){2, 32, 32, CLASSES}, 4, NULL);
}

/* Called by weft_fit after each epoch. Ends training when the loss is small. */
static weft_status report(void *user, const weft_fit_state *state, bool *stop) {
    (void)user;
    double mean;
    weft_status status = weft_fit_losses(state, NULL, &mean);
    if (status != WEFT_OK) return status;
    if ((int)state->epoch % 20 == 0) printf("epoch %3.0f  loss %.4f\n", state->epoch, mean);
    *stop = mean < 1e-3;
    return WEFT_OK;
}

/* Trains with cross-entropy, the default loss of weft_fit, and saves the weights. The loader reads x and y
 * until it is freed. */
static weft_status train(weft_context *ctx, float *x, int32_t *y, const char *path) {
    weft_array inputs = {
        .dtype = WEFT_F32, .rank = 2, .shape = {POINTS, 2}, .data = x, .bytes = POINTS * 2 * sizeof *x};
    weft_array targets = {
        .dtype = WEFT_I32, .rank = 1, .shape = {POINTS}, .data = y, .bytes = POINTS * sizeof *y};
    weft_loader *loader;
    weft_status status = weft_loader_new(ctx, &inputs, &targets,
                                         &(weft_loader_options){.batch = 60, .classes = CLASSES}, &loader);
    if (status != WEFT_OK) return status;
    weft_module *network = new_network(ctx);
    weft_optimizer *adam = weft_adam(network, &(weft_adam_options){.lr = 0.01});
    status = weft_fit(network, adam, loader, &(weft_fit_options){.epochs = 80, .on_epoch = report}, NULL);
    if (status == WEFT_OK) status = weft_module_save(network, path);
    weft_loader_free(loader);
    return status;
}

/* Counts the points that the saved network classifies correctly. */
static weft_status test(weft_context *ctx, const float *x, const int32_t *y, const char *path, int *right) {
    int32_t answers[POINTS];
    weft_module *network = new_network(ctx);
    weft_status status = weft_module_load(network, path);
    if (status != WEFT_OK) return status;
    weft_tensor *points = weft_from(ctx, WEFT_F32, 2, (int64_t[]){POINTS, 2}, x);
    status = weft_read(weft_argmax(weft_forward(network, points), -1, false), answers, sizeof answers);
    for (int i = 0; i < POINTS && status == WEFT_OK; i++) *right += answers[i] == y[i];
    return status;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "classify.safetensors";
    static float x[2 * POINTS];
    static int32_t y[POINTS];
    int right = 0;
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.seed = 1}, &ctx) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(NULL));
        return 1;
    }
    make_points(x, y);
    weft_status status = train(ctx, x, y, path);
    if (status == WEFT_OK) status = test(ctx, x, y, path, &right);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    printf("%d of %d points right\n", right, POINTS);
    weft_close(ctx);
    return status == WEFT_OK && right >= POINTS * 9 / 10 ? 0 : 1;
}
