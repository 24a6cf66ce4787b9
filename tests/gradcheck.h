/* Gradient check: compares weft_gradient with finite differences of fourth order, in f64. Include this header
 * after cmocka.h. */
#ifndef WEFT_TESTS_GRADCHECK_H
#define WEFT_TESTS_GRADCHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/tensor.h>

/* Records a loss (one f64) from variables that the caller passes in `user`. */
typedef weft_tensor *(*gradcheck_loss)(void *user);

static double gradcheck_value(weft_context *ctx, gradcheck_loss loss, void *user) {
    weft_scope *scope = weft_scope_open(ctx);
    double value = weft_item(loss(user));
    weft_scope_close(scope);
    return value;
}

/* The derivative with respect to element i of a variable with the values x[0..bytes): (8 (f(+h) - f(-h)) -
 * (f(+2h) - f(-2h))) / 12h. */
static double gradcheck_difference(weft_context *ctx, gradcheck_loss loss, void *user, weft_tensor *variable,
                                   double *x, size_t bytes, int64_t i) {
    static const double steps[4] = {1.0, -1.0, 2.0, -2.0}, weights[4] = {8.0, -8.0, -1.0, 1.0};
    double h = 2e-4, before = x[i], sum = 0.0;
    for (int k = 0; k < 4; k++) {
        x[i] = before + steps[k] * h;
        if (weft_write(variable, x, bytes) != WEFT_OK) return (double)NAN;
        sum += weights[k] * gradcheck_value(ctx, loss, user);
    }
    x[i] = before;
    if (weft_write(variable, x, bytes) != WEFT_OK) return (double)NAN;
    return sum / (12.0 * h);
}

/* The largest |analytic - numeric| / max(1, |analytic|, |numeric|) over at most `most` elements of each
 * variable. After an error, prints it and returns NaN. */
static double gradcheck(weft_context *ctx, gradcheck_loss loss, void *user, weft_tensor *const *variables,
                        size_t count, int64_t most) {
    double worst = 0.0;
    double **analytic = calloc(count, sizeof *analytic);
    weft_tensor **grads = calloc(count, sizeof *grads);
    weft_scope *scope = weft_scope_open(ctx);
    weft_status status = weft_gradient(loss(user), variables, count, grads);
    for (size_t v = 0; v < count; v++) {
        size_t bytes = (size_t)weft_numel(variables[v]) * sizeof(double);
        analytic[v] = calloc(bytes + 1, 1);
        if (status == WEFT_OK) status = weft_read(grads[v], analytic[v], bytes);
    }
    weft_scope_close(scope);
    if (status != WEFT_OK) {
        printf("gradcheck: %s\n", weft_last_error(ctx));
        worst = (double)NAN;
    }
    for (size_t v = 0; v < count && status == WEFT_OK; v++) {
        int64_t n = weft_numel(variables[v]), stride = n > most ? n / most : 1;
        size_t bytes = (size_t)n * sizeof(double);
        double *x = calloc(bytes + 1, 1);
        status = weft_read(variables[v], x, bytes);
        for (int64_t i = 0; i < n && status == WEFT_OK; i += stride) {
            double numeric = gradcheck_difference(ctx, loss, user, variables[v], x, bytes, i),
                   a = analytic[v][i];
            double scale = fmax(1.0, fmax(fabs(a), fabs(numeric))), error = fabs(a - numeric) / scale;
            if (!(error <= 1e-7))
                printf("gradcheck: variable %zu element %lld: analytic %.12g, numeric %.12g\n", v,
                       (long long)i, a, numeric);
            if (!(error <= worst)) worst = error;
        }
        free(x);
    }
    for (size_t v = 0; v < count; v++) free(analytic[v]);
    free(analytic);
    free(grads);
    return worst;
}

#endif
