/* Trains one network on each device of this machine, with the same steps, and prints time and loss. Then
 * training moves from each device to the next one half-way: parameters, optimizer state and random streams
 * move with it, and the result must be as if it had stayed. The exit status is 0 if all losses agree.
 *
 *   devices [STEPS]      default: 40 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

enum { POINTS = 256, DEVICES_MOST = 8 };

typedef struct training {
    const char *device;
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    weft_tensor *x, *y;
} training;

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A small network with dropout learns y = sin(3 x). */
static weft_status begin(training *t) {
    static float x[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = (float)i / (POINTS / 2) - 1, y[i] = sinf(3 * x[i]);
    weft_status status = weft_open(&(weft_open_options){.device = t->device, .seed = 1}, &t->ctx);
    if (status != WEFT_OK) return status;
    const weft_mlp_options options = {.activation = WEFT_TANH, .dropout = 0.05};
    t->net = weft_nn_mlp(t->ctx, (int64_t[]){1, 64, 64, 1}, 4, &options);
    t->opt = weft_adam(t->net, &(weft_adam_options){.lr = 0.01});
    t->x = weft_from(t->ctx, WEFT_F32, 2, (int64_t[]){POINTS, 1}, x);
    t->y = weft_from(t->ctx, WEFT_F32, 2, (int64_t[]){POINTS, 1}, y);
    return WEFT_OK;
}

static weft_status train(training *t, int steps, double *loss) {
    weft_status status = WEFT_OK;
    for (int step = 0; step < steps && status == WEFT_OK; step++) {
        weft_scope *scope = weft_scope_open(t->ctx);
        weft_tensor *error = weft_mse(weft_forward(t->net, t->x), t->y, WEFT_MEAN);
        status = weft_optimizer_step(t->opt, error);
        if (status == WEFT_OK && step + 1 == steps) *loss = weft_item(error);
        weft_scope_close(scope);
    }
    return status;
}

/* Makes all steps on one device. The first step also compiles. */
static weft_status stay(const char *device, int steps, double *loss) {
    training t = {.device = device};
    double started = now(), compiled = 0;
    weft_status status = begin(&t);
    if (status == WEFT_OK) status = train(&t, 1, loss);
    compiled = now();
    if (status == WEFT_OK) status = train(&t, steps - 1, loss);
    if (status == WEFT_OK)
        printf("%-10s  %7.2f s to the first step  %8.1f us a step  loss %.7f\n", device, compiled - started,
               1e6 * (now() - compiled) / (steps - 1), *loss);
    else
        fprintf(stderr, "%s: %s\n", device, weft_last_error(t.ctx));
    weft_close(t.ctx);
    return status;
}

/* Makes half of the steps on one device and the other half on the next. */
static weft_status move(const char *from, const char *to, int steps, double *loss) {
    training first = {.device = from}, then = {.device = to};
    weft_status status = begin(&first);
    if (status == WEFT_OK) status = begin(&then);
    if (status == WEFT_OK) status = train(&first, steps / 2, loss);
    if (status == WEFT_OK) status = weft_optimizer_copy(then.opt, first.opt);
    weft_close(first.ctx);
    if (status == WEFT_OK) status = train(&then, steps - steps / 2, loss);
    if (status == WEFT_OK)
        printf("%s, then %s: loss %.7f\n", from, to, *loss);
    else
        fprintf(stderr, "%s to %s: %s\n", from, to, weft_last_error(NULL));
    weft_close(then.ctx);
    return status;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 40;
    const char *devices[DEVICES_MOST];
    int count = 0;
    double wanted = 0, loss = 0, apart = 0;
    if (steps < 2) {
        fprintf(stderr, "devices: give at least 2 steps\n");
        return 2;
    }
    for (int i = 0; i < weft_device_count() && count < DEVICES_MOST; i++) {
        weft_device_description d;
        if (!weft_device_info(i, &d) || !d.present) continue;
        if (strcmp(d.name, "null") == 0 || strcmp(d.name, "interp") == 0)
            continue; /* these devices are for tests */
        devices[count++] = d.name;
    }
    for (int i = 0; i < count; i++) {
        if (stay(devices[i], steps, &loss) != WEFT_OK) return 1;
        if (i == 0) wanted = loss;
        apart = fmax(apart, fabs(loss - wanted));
    }
    for (int i = 0; i < count; i++) {
        if (move(devices[i], devices[(i + 1) % count], steps, &loss) != WEFT_OK) return 1;
        apart = fmax(apart, fabs(loss - wanted));
    }
    printf("losses are %.1e apart at most\n", apart);
    return count > 0 && apart < 1e-4 ? 0 : 1;
}
