/* A convolutional network that classifies images of digits in MNIST's format (idx, plain or compressed by
 * gzip).
 *
 *   mnist_cnn [IMAGES LABELS [EPOCHS]]
 *
 * Without files it uses small generated images of horizontal, vertical and diagonal bars. */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

enum { SIDE = 12, IMAGES = 480, BARS = 3 };

/* Draws bars. Their position and the noise come from a fixed sequence. */
static weft_status make_bars(weft_context *ctx, weft_array *x, weft_array *y) {
    weft_status status = weft_array_new(ctx, WEFT_U8, 3, (int64_t[]){IMAGES, SIDE, SIDE}, x);
    if (status == WEFT_OK) status = weft_array_new(ctx, WEFT_U8, 1, (int64_t[]){IMAGES}, y);
    if (status != WEFT_OK) return status;
    uint32_t random = 1;
    for (int i = 0; i < IMAGES; i++) {
        uint8_t *image = (uint8_t *)x->data + i * SIDE * SIDE;
        for (int p = 0; p < SIDE * SIDE; p++) {
            random = random * 1664525 + 1013904223;
            image[p] = (uint8_t)(random >> 25);
        }
        const int kind = i % BARS, at = 2 + (int)(random >> 16) % (SIDE - 4);
        for (int p = 1; p < SIDE - 1; p++) {
            const int row = kind == 0 ? at : p, column = kind == 0 ? p : kind == 1 ? at : (p + at) % SIDE;
            image[row * SIDE + column] = 255;
        }
        ((uint8_t *)y->data)[i] = (uint8_t)kind;
    }
    return WEFT_OK;
}

static int64_t largest(const weft_array *labels) {
    int64_t most = 0;
    for (int64_t i = 0; i < labels->shape[0]; i++)
        if (((const uint8_t *)labels->data)[i] > most) most = ((const uint8_t *)labels->data)[i];
    return most;
}

/* Called by weft_fit after each epoch. */
static weft_status report(void *user, const weft_fit_state *state, bool *stop) {
    double mean;
    (void)user, (void)stop;
    weft_status status = weft_fit_losses(state, NULL, &mean);
    if (status == WEFT_OK)
        printf("epoch %.0f  loss %.4f  held back: accuracy %.2f %%\n", state->epoch, mean,
               100 * state->val_accuracy);
    return status;
}

/* Trains on the first five sixths of the images and evaluates on the rest. The two parts share the memory
 * of x and y: only the shapes and pointers differ. */
static weft_status train(weft_context *ctx, weft_array *x, weft_array *y, int64_t epochs, double *accuracy) {
    const int64_t rows = x->shape[1], columns = x->shape[2], held = x->shape[0] / 6,
                  first = x->shape[0] - held;
    const weft_loader_options options = {.batch = 32, .scale = 1.0 / 255, .classes = largest(y) + 1};
    weft_array x_held = *x, y_held = *y;
    weft_loader *loader = NULL, *validation = NULL;
    double loss;
    x_held.data = (uint8_t *)x->data + first * rows * columns;
    y_held.data = (uint8_t *)y->data + first;
    x_held.shape[0] = y_held.shape[0] = held;
    x_held.bytes = (size_t)(held * rows * columns);
    y_held.bytes = (size_t)held;
    weft_array x_seen = *x, y_seen = *y;
    x_seen.shape[0] = y_seen.shape[0] = first;
    x_seen.bytes -= x_held.bytes;
    y_seen.bytes -= y_held.bytes;
    x_seen.rank = x_held.rank = 2; /* pixels as one dimension, which the network takes as images */
    x_seen.shape[1] = x_held.shape[1] = rows * columns;
    weft_status status = weft_loader_new(ctx, &x_seen, &y_seen, &options, &loader);
    if (status == WEFT_OK) status = weft_loader_new(ctx, &x_held, &y_held, &options, &validation);
    if (status == WEFT_OK) {
        weft_module *net = weft_nn_cnn(ctx, &(weft_cnn_options){.channels = 1,
                                                                .rows = rows,
                                                                .columns = columns,
                                                                .classes = options.classes,
                                                                .filters = (int64_t[]){8, 16},
                                                                .filter_count = 2,
                                                                .hidden = 64});
        weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 3e-3});
        const weft_fit_options fit = {
            .loss = WEFT_LOSS_CROSS_ENTROPY, .epochs = epochs, .validation = validation, .on_epoch = report};
        status = weft_fit(net, adam, loader, &fit, NULL);
        if (status == WEFT_OK)
            status = weft_module_evaluate(net, validation, WEFT_LOSS_CROSS_ENTROPY, &loss, accuracy);
    }
    weft_loader_free(validation);
    weft_loader_free(loader);
    return status;
}

int main(int argc, char **argv) {
    weft_context *ctx = NULL;
    weft_array x = {0}, y = {0};
    double accuracy = 0;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK && argc > 2) {
        status = weft_read_idx(ctx, argv[1], &x);
        if (status == WEFT_OK) status = weft_read_idx(ctx, argv[2], &y);
    } else if (status == WEFT_OK) {
        status = make_bars(ctx, &x, &y);
    }
    const bool fits =
        status != WEFT_OK || (x.rank == 3 && y.rank == 1 && x.dtype == WEFT_U8 && y.dtype == WEFT_U8 &&
                              x.shape[0] == y.shape[0] && x.shape[0] >= 6);
    if (!fits) fprintf(stderr, "mnist_cnn: give images (N, rows, columns) and labels (N), both of bytes\n");
    if (status == WEFT_OK && fits)
        status = train(ctx, &x, &y, argc > 3 ? strtoll(argv[3], NULL, 10) : argc > 2 ? 1 : 6, &accuracy);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_array_free(ctx, &x);
    weft_array_free(ctx, &y);
    weft_close(ctx);
    return status == WEFT_OK && fits && (argc > 2 || accuracy > 0.9) ? 0 : 1;
}
