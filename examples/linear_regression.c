/* Linear regression by gradient descent on all rows at once. The columns are scaled to mean 0 and standard
 * deviation 1 first. At the end the coefficients are converted back to the units of the data.
 *
 *   linear_regression [FILE.csv]
 *
 * It predicts the last column of FILE.csv from the others. Without FILE.csv it uses a generated plane with
 * noise. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { ROWS = 200 };

/* y = 3 a - 2 b + 1, with noise. */
static weft_status make_plane(weft_context *ctx, weft_table *table) {
    weft_status status = weft_array_new(ctx, WEFT_F32, 2, (int64_t[]){ROWS, 2}, &table->features);
    if (status == WEFT_OK) status = weft_array_new(ctx, WEFT_F32, 1, (int64_t[]){ROWS}, &table->target);
    if (status != WEFT_OK) return status;
    float *x = table->features.data, *y = table->target.data;
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = 10 * sinf((float)i * 1.7F);
        x[2 * i + 1] = 5 + 3 * cosf((float)i * 0.9F);
        y[i] = 3 * x[2 * i] - 2 * x[2 * i + 1] + 1 + 0.14F * sinf((float)(i * i) * 0.37F);
    }
    return WEFT_OK;
}

/* Scales a column to mean 0 and standard deviation 1; its elements are `step` apart. */
static void standardise(float *x, int64_t rows, int64_t step, double *mean, double *deviation) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < rows; i++) sum += (double)x[i * step];
    *mean = sum / (double)rows;
    for (int64_t i = 0; i < rows; i++) squares += pow((double)x[i * step] - *mean, 2);
    *deviation = squares > 0 ? sqrt(squares / (double)rows) : 1;
    for (int64_t i = 0; i < rows; i++) x[i * step] = (float)(((double)x[i * step] - *mean) / *deviation);
}

static weft_status fit(weft_context *ctx, weft_table *t, double *r2) {
    const int64_t rows = t->features.shape[0], columns = t->features.shape[1];
    float *x = t->features.data, *y = t->target.data, weights[64], bias;
    double mean[65], deviation[65], loss = 1;
    if (columns > 64) {
        fprintf(stderr, "linear_regression: %lld columns are too many, 64 are enough\n", (long long)columns);
        return WEFT_ERR_SHAPE;
    }
    for (int64_t c = 0; c < columns; c++) standardise(x + c, rows, columns, &mean[c], &deviation[c]);
    standardise(y, rows, 1, &mean[columns], &deviation[columns]);
    weft_module *line = weft_nn_linear(ctx, columns, 1, NULL);
    weft_optimizer *sgd = weft_sgd(line, &(weft_sgd_options){.lr = 0.1, .momentum = 0.9});
    weft_tensor *inputs = weft_from(ctx, WEFT_F32, 2, (int64_t[]){rows, columns}, x);
    weft_tensor *targets = weft_from(ctx, WEFT_F32, 2, (int64_t[]){rows, 1}, y);
    for (int step = 0; step <= 200; step++) {
        weft_scope *scope = weft_scope_open(ctx); /* frees the tensors of this step when it closes */
        weft_tensor *error = weft_mse(weft_forward(line, inputs), targets, WEFT_MEAN);
        weft_status status = weft_optimizer_step(sgd, error);
        if (status == WEFT_OK) loss = weft_item(error);
        weft_scope_close(scope);
        if (status != WEFT_OK) return status;
        if (step % 50 == 0) printf("step %3d  loss %.6f\n", step, loss);
    }
    weft_status status =
        weft_read(weft_parameter(line, "weight"), weights, (size_t)columns * sizeof *weights);
    if (status == WEFT_OK) status = weft_read(weft_parameter(line, "bias"), &bias, sizeof bias);
    if (status != WEFT_OK) return status;
    double offset = mean[columns] + (double)bias * deviation[columns];
    for (int64_t c = 0; c < columns; c++) {
        double slope = (double)weights[c] * deviation[columns] / deviation[c];
        offset -= slope * mean[c];
        printf("%-12s %9.4f\n", t->columns ? t->columns[c] : c ? "b" : "a", slope);
    }
    printf("%-12s %9.4f\nR2 %.4f\n", "constant", offset, 1 - loss); /* the variance of the target is 1 */
    *r2 = 1 - loss;
    return WEFT_OK;
}

int main(int argc, char **argv) {
    weft_context *ctx = NULL;
    weft_table table = {0};
    double r2 = 0;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    const weft_csv_options options = {.target_column = -1, .target_type = WEFT_CSV_TARGET_NUMBER};
    if (status == WEFT_OK)
        status = argc > 1 ? weft_read_csv(ctx, argv[1], &options, &table) : make_plane(ctx, &table);
    if (status == WEFT_OK) status = fit(ctx, &table, &r2);
    if (status != WEFT_OK) fprintf(stderr, "%s: %s\n", weft_status_name(status), weft_last_error(ctx));
    weft_table_free(ctx, &table);
    weft_close(ctx);
    return status == WEFT_OK && (argc > 1 || r2 > 0.99) ? 0 : 1;
}
