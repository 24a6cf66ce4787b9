/* How to write your own training loop. It
 * - accumulates the gradients of several batches,
 * - uses a learning rate schedule,
 * - clips gradients and prints their norm,
 * - evaluates on held-back data, and stops when the loss there no longer falls (early stopping),
 * - keeps the best weights.
 *
 * weft_fit does all of this except early stopping and keeping the best weights. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

enum { POINTS = 512, HELD = 128, BATCH = 32, PARTS = 2, STEPS = 1500, EVERY = 50, PATIENCE = 5 };

/* Points of y = sin(3 x) with noise: x (count, 1), y (count, 1). */
static void make_points(int count, double phase, float *x, float *y) {
    for (int i = 0; i < count; i++) {
        x[i] = (float)sin(i * 0.61 + phase);
        y[i] = sinf(3 * x[i]) + 0.05F * (float)sin(i * i * 1.7 + phase);
    }
}

static weft_module *new_network(weft_context *ctx) {
    return weft_nn_mlp(ctx, (int64_t[]){1, 32, 32, 1}, 4, &(weft_mlp_options){.activation = WEFT_SILU});
}

/* One step of PARTS batches. *loss gets the loss of the last batch, unless `loss` is NULL.
 *
 * The loader knows that a step has PARTS batches. So weft_batch_loss makes the step that of one large batch,
 * also if POINTS is no multiple of PARTS * BATCH and some batches are padded. weft_mse knows no padding. */
static weft_status train_step(weft_module *net, weft_optimizer *opt, weft_loader *loader, uint64_t step,
                              double *loss) {
    for (int k = 0; k < PARTS; k++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(weft_module_context(net));
        weft_status status = weft_loader_get(loader, step * PARTS + (uint64_t)k, &batch);
        if (status == WEFT_OK) {
            weft_tensor *error = weft_batch_loss(WEFT_LOSS_MSE, weft_forward(net, batch.x), &batch);
            status = weft_optimizer_accumulate(opt, error, k, PARTS);
            if (status == WEFT_OK && loss && k + 1 == PARTS)
                *loss = weft_item(error); /* waits for the device */
        }
        weft_scope_close(scope);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* Trains until STEPS, or until PATIENCE evaluations in a row brought no lower loss. `best` gets the weights
 * with the lowest loss, *least. */
static weft_status train(weft_module *net, weft_module *best, weft_loader *loader, weft_loader *held,
                         double *least) {
    weft_optimizer *adamw =
        weft_adamw(net, &(weft_adam_options){.lr = 1e-2, .weight_decay = 1e-4, .clip = 1});
    weft_status status = weft_optimizer_schedule(
        adamw, &(weft_schedule){.kind = WEFT_SCHEDULE_COSINE, .lr = 1e-2, .warmup = 20, .steps = STEPS});
    int without = 0;
    *least = HUGE_VAL;
    for (uint64_t step = 0; step < STEPS && status == WEFT_OK && without < PATIENCE; step++) {
        double loss = 0, other = 0;
        const bool look = (step + 1) % EVERY == 0;
        const double rate = weft_optimizer_lr(adamw);
        status = train_step(net, adamw, loader, step, look ? &loss : NULL);
        if (status != WEFT_OK || !look) continue;
        status = weft_module_evaluate(net, held, WEFT_LOSS_MSE, &other, NULL);
        if (status != WEFT_OK) break;
        printf("step %4llu  rate %.5f  gradient %.4f  loss %.5f  held back %.5f%s\n",
               (unsigned long long)(step + 1), rate, weft_optimizer_grad_norm(adamw), loss, other,
               other < *least ? " *" : "");
        without = other < *least ? 0 : without + 1;
        if (other < *least) status = weft_module_copy(best, net), *least = other;
    }
    return status;
}

int main(void) {
    static float x[POINTS], y[POINTS], x_held[HELD], y_held[HELD];
    weft_context *ctx = NULL;
    weft_loader *loader = NULL, *held = NULL;
    double least = 1, loss = 1;
    make_points(POINTS, 0, x, y);
    make_points(HELD, 0.3, x_held, y_held);
    weft_array inputs = {.dtype = WEFT_F32, .rank = 2, .shape = {POINTS, 1}, .data = x, .bytes = sizeof x};
    weft_array targets = {.dtype = WEFT_F32, .rank = 2, .shape = {POINTS, 1}, .data = y, .bytes = sizeof y};
    weft_array others = {
        .dtype = WEFT_F32, .rank = 2, .shape = {HELD, 1}, .data = x_held, .bytes = sizeof x_held};
    weft_array wanted = {
        .dtype = WEFT_F32, .rank = 2, .shape = {HELD, 1}, .data = y_held, .bytes = sizeof y_held};
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK)
        status = weft_loader_new(ctx, &inputs, &targets,
                                 &(weft_loader_options){.batch = BATCH, .accumulate = PARTS}, &loader);
    if (status == WEFT_OK)
        status = weft_loader_new(ctx, &others, &wanted, &(weft_loader_options){.batch = HELD}, &held);
    if (status == WEFT_OK) {
        weft_module *net = new_network(ctx), *best = new_network(ctx);
        status = train(net, best, loader, held, &least);
        if (status == WEFT_OK) status = weft_module_evaluate(best, held, WEFT_LOSS_MSE, &loss, NULL);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    printf("the best network's loss on what was held back: %.5f\n", loss);
    weft_loader_free(held);
    weft_loader_free(loader);
    weft_close(ctx);
    return status == WEFT_OK && loss == least && loss < 0.02 ? 0 : 1;
}
