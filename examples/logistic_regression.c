/* Logistic regression: one linear layer with cross-entropy predicts classes from numbers, in mini-batches.
 *
 *   logistic_regression [FILE.csv]
 *
 * The last column of FILE.csv holds the classes. Without FILE.csv it uses three clouds of points. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { ROWS = 300, CLASSES = 3 };

static weft_status make_clouds(weft_context *ctx, weft_table *table) {
    weft_status status = weft_array_new(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 2}, &table->features);
    if (status == WEFT_OK) status = weft_array_new(ctx, WEFT_I32, 1, (int64_t[]){ROWS}, &table->target);
    if (status != WEFT_OK) return status;
    float *x = table->features.data;
    int32_t *y = table->target.data;
    for (int i = 0; i < ROWS; i++) {
        const float angle = 2.1F * (float)(i % CLASSES), far = 0.9F * fabsf(sinf((float)i * 0.7F));
        y[i] = i % CLASSES;
        x[2 * i] = 2 * cosf(angle) + far * cosf((float)i);
        x[2 * i + 1] = 2 * sinf(angle) + far * sinf((float)i);
    }
    table->class_count = CLASSES;
    return WEFT_OK;
}

/* Scales each column to mean 0 and standard deviation 1, so that one learning rate suits all columns. */
static void standardise(weft_array *features) {
    const int64_t rows = features->shape[0], columns = features->shape[1];
    for (int64_t c = 0; c < columns; c++) {
        float *x = (float *)features->data + c;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < rows; i++) sum += (double)x[i * columns];
        for (int64_t i = 0; i < rows; i++) squares += pow((double)x[i * columns] - sum / (double)rows, 2);
        const double deviation = squares > 0 ? sqrt(squares / (double)rows) : 1;
        for (int64_t i = 0; i < rows; i++)
            x[i * columns] = (float)(((double)x[i * columns] - sum / (double)rows) / deviation);
    }
}

/* Called by weft_fit after each epoch. */
static weft_status report(void *user, const weft_fit_state *state, bool *stop) {
    double mean;
    (void)user, (void)stop;
    weft_status status = weft_fit_losses(state, NULL, &mean);
    if (status == WEFT_OK && (int)state->epoch % 10 == 0)
        printf("epoch %2.0f  loss %.4f\n", state->epoch, mean);
    return status;
}

static weft_status fit(weft_context *ctx, weft_table *t, double *accuracy) {
    const int64_t classes = (int64_t)t->class_count;
    const weft_loader_options options = {.batch = 32, .classes = classes};
    weft_loader *loader = NULL;
    double loss;
    standardise(&t->features);
    weft_status status = weft_loader_new(ctx, &t->features, &t->target, &options, &loader);
    if (status != WEFT_OK) return status;
    weft_module *net = weft_nn_linear(ctx, t->features.shape[1], classes, NULL);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 0.02, .weight_decay = 1e-3});
    status = weft_fit(net, adam, loader,
                      &(weft_fit_options){.loss = WEFT_LOSS_CROSS_ENTROPY, .epochs = 40, .on_epoch = report},
                      NULL);
    if (status == WEFT_OK)
        status = weft_module_evaluate(net, loader, WEFT_LOSS_CROSS_ENTROPY, &loss, accuracy);
    if (status == WEFT_OK) printf("loss %.4f, accuracy %.1f %%\n", loss, 100 * *accuracy);
    weft_loader_free(loader);
    return status;
}

int main(int argc, char **argv) {
    weft_context *ctx = NULL;
    weft_table table = {0};
    double accuracy = 0;
    const weft_csv_options options = {.target_column = -1, .target_type = WEFT_CSV_TARGET_CLASS};
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK)
        status = argc > 1 ? weft_read_csv(ctx, argv[1], &options, &table) : make_clouds(ctx, &table);
    if (status == WEFT_OK) status = fit(ctx, &table, &accuracy);
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_table_free(ctx, &table);
    weft_close(ctx);
    return status == WEFT_OK && (argc > 1 || accuracy > 0.97) ? 0 : 1;
}
