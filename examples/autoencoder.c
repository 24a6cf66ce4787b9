/* An autoencoder: it compresses images to a few numbers and reconstructs them. The input is also the
 * target.
 *
 *   autoencoder [IMAGES]
 *
 * IMAGES is an idx file in MNIST's format. Without it the program uses generated images of a spot. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { SIDE = 10, IMAGES = 400, CODE = 8, EPOCHS = 40, PIXELS_MOST = 64 * 64 };

static weft_status make_spots(weft_context *ctx, weft_array *x) {
    weft_status status = weft_array_new(ctx, WEFT_U8, 3, (int64_t[]){IMAGES, SIDE, SIDE}, x);
    if (status != WEFT_OK) return status;
    for (int i = 0; i < IMAGES; i++) {
        const double row = 4.5 + 3.5 * sin(i * 1.3), column = 4.5 + 3.5 * cos(i * 2.1);
        for (int p = 0; p < SIDE * SIDE; p++) {
            const double away = pow(p / SIDE - row, 2) + pow(p % SIDE - column, 2);
            ((uint8_t *)x->data)[i * SIDE * SIDE + p] = (uint8_t)(255 * exp(-away / 4));
        }
    }
    return WEFT_OK;
}

/* Prints an image next to its reconstruction, in shades. */
static void show(const float *image, const float *back, int64_t rows, int64_t columns) {
    static const char shades[] = " .:-=+*#%@";
    for (int64_t r = 0; r < rows; r++) {
        for (int k = 0; k < 2; k++) {
            for (int64_t c = 0; c < columns; c++) {
                const float v = (k ? back : image)[r * columns + c];
                putchar(shades[(int)(9.99F * fminf(fmaxf(v, 0), 1))]);
            }
            putchar(k ? '\n' : '|');
        }
    }
}

/* Copies the first image and its reconstruction. */
static weft_status look(weft_module *net, const weft_array *x, float *image, float *back) {
    const int64_t pixels = x->shape[1] * x->shape[2], shape[2] = {1, pixels};
    for (int64_t p = 0; p < pixels; p++) image[p] = (float)((const uint8_t *)x->data)[p] / 255;
    weft_module_set_training(net, false);
    weft_tensor *y = weft_forward(net, weft_from(weft_module_context(net), WEFT_F32, 2, shape, image));
    return weft_read(y, back, (size_t)pixels * sizeof *back);
}

static weft_status train(weft_context *ctx, weft_array *x, double *error) {
    const int64_t rows = x->shape[1], columns = x->shape[2], sizes[3] = {rows * columns, 64, CODE};
    weft_loader *loader = NULL;
    float image[PIXELS_MOST], back[PIXELS_MOST];
    if (sizes[0] > PIXELS_MOST) {
        fprintf(stderr, "autoencoder: give images of at most 64 x 64\n");
        return WEFT_ERR_SHAPE;
    }
    weft_status status =
        weft_loader_new(ctx, x, NULL, &(weft_loader_options){.batch = 32, .scale = 1.0 / 255}, &loader);
    if (status != WEFT_OK) return status;
    weft_module *net = weft_nn_autoencoder(ctx, sizes, 3, NULL);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 2e-3});
    const uint64_t epoch = (uint64_t)weft_loader_batches(loader), steps = EPOCHS * epoch;
    for (uint64_t step = 0; step < steps && status == WEFT_OK; step++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(ctx);
        status = weft_loader_get(loader, step, &batch);
        if (status == WEFT_OK) {
            weft_tensor *loss = weft_mse(weft_forward(net, batch.x), batch.x, WEFT_MEAN);
            status = weft_optimizer_step(adam, loss);
            if (status == WEFT_OK && (step + 1 == steps || step % (epoch * 10) == 0))
                printf("epoch %2llu  loss %.5f\n", (unsigned long long)(step / epoch),
                       *error = weft_item(loss));
        }
        weft_scope_close(scope);
    }
    if (status == WEFT_OK) status = look(net, x, image, back);
    if (status == WEFT_OK) show(image, back, rows, columns);
    weft_loader_free(loader);
    return status;
}

int main(int argc, char **argv) {
    weft_context *ctx = NULL;
    weft_array x = {0};
    double error = 1;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK) status = argc > 1 ? weft_read_idx(ctx, argv[1], &x) : make_spots(ctx, &x);
    const bool fits = status != WEFT_OK || (x.rank == 3 && x.dtype == WEFT_U8);
    if (!fits) fprintf(stderr, "autoencoder: give images (N, rows, columns) of bytes\n");
    if (status == WEFT_OK && fits) status = train(ctx, &x, &error);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_array_free(ctx, &x);
    weft_close(ctx);
    return status == WEFT_OK && fits && (argc > 1 || error < 0.005) ? 0 : 1;
}
