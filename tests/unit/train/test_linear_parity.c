/* Linear and logistic regression: two classes, and three with class weights, with a ridge. The losses of
 * ten steps from the same weights must be PyTorch's (make_linear_parity.py), to 1e-5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include <weft/weft.h>

enum { N = 24, COLUMNS = 5, STEPS = 10, MOST = 3 };

typedef struct reference {
    weft_loss_kind kind;
    int outputs;
    bool adam;
    double losses[STEPS];
} reference;

static const reference references[] = {{WEFT_LOSS_MSE,
                                        2,
                                        false,
                                        {4.45345926, 2.51649117, 2.03930998, 1.97512472, 1.9605583,
                                         1.94925404, 1.94286633, 1.93975174, 1.93785143, 1.93646336}},
                                       {WEFT_LOSS_MSE,
                                        2,
                                        true,
                                        {4.45345926, 2.96733284, 2.14320636, 1.94003499, 2.1354773,
                                         2.42932391, 2.58441091, 2.55765104, 2.40170789, 2.1996634}},
                                       {WEFT_LOSS_BCE,
                                        1,
                                        false,
                                        {0.895268142, 0.846879959, 0.799851, 0.759824693, 0.728241444,
                                         0.704446375, 0.686986744, 0.674319983, 0.665124118, 0.658381283}},
                                       {WEFT_LOSS_BCE,
                                        1,
                                        true,
                                        {0.895268142, 0.736153424, 0.662041962, 0.643589675, 0.647220612,
                                         0.656697214, 0.664901674, 0.669275939, 0.668762267, 0.663527608}},
                                       {WEFT_LOSS_CROSS_ENTROPY,
                                        3,
                                        false,
                                        {1.73660088, 1.58006179, 1.42057765, 1.2788887, 1.16415763,
                                         1.07748139, 1.01482749, 0.97020781, 0.93804431, 0.914129913}},
                                       {WEFT_LOSS_CROSS_ENTROPY,
                                        3,
                                        true,
                                        {1.73660088, 1.25146019, 0.941681862, 0.857666433, 0.893867493,
                                         0.920729697, 0.896931767, 0.838578165, 0.771591783, 0.71552366}}};

typedef struct numbers {
    float x[N * COLUMNS], y[N * MOST], weight[MOST * COLUMNS], bias[MOST];
    int32_t classes[N];
} numbers;

static void make(const reference *r, numbers *n) {
    for (int k = 0; k < r->outputs; k++) {
        n->bias[k] = (float)(k + 1) / 8;
        for (int j = 0; j < COLUMNS; j++)
            n->weight[k * COLUMNS + j] = (float)(nearbyint(cos(k * 2.1 + j * 1.3) * 64) / 128);
    }
    for (int i = 0; i < N; i++) {
        n->classes[i] = r->outputs == 1 ? (i * i + i) % 3 == 0 : (i * i + i) % 7 % r->outputs;
        for (int j = 0; j < COLUMNS; j++)
            n->x[i * COLUMNS + j] = (float)(nearbyint(sin(i * 1.7 + j * 0.9) * 64) / 32);
        for (int k = 0; k < r->outputs; k++)
            n->y[i * r->outputs + k] = (float)(nearbyint(cos(i * 0.6 + k) * 64) / 32);
    }
}

static weft_module *layer_of(weft_context *ctx, const reference *r, const numbers *n) {
    weft_parameter_info info;
    weft_module *layer = weft_nn_linear(ctx, COLUMNS, r->outputs, NULL);
    assert_true(weft_parameter_find(layer, "weight", &info));
    assert_int_equal(weft_write(info.tensor, n->weight, (size_t)(r->outputs * COLUMNS) * sizeof(float)),
                     WEFT_OK);
    assert_true(weft_parameter_find(layer, "bias", &info));
    assert_int_equal(weft_write(info.tensor, n->bias, (size_t)r->outputs * sizeof(float)), WEFT_OK);
    return layer;
}

static weft_optimizer *optimizer_of(const reference *r, weft_module *layer) {
    if (r->adam)
        return weft_adam(
            layer, &(weft_adam_options){.lr = 0.125, .weight_decay = 0.125, .decay_matrices_only = true});
    return weft_sgd(layer, &(weft_sgd_options){.lr = 0.0625,
                                               .momentum = 0.5,
                                               .nesterov = true,
                                               .weight_decay = 0.125,
                                               .decay_matrices_only = true});
}

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    double *losses = user;
    (void)stop;
    return weft_fit_losses(state, &losses[state->step - 1], NULL);
}

static void ten_steps_are_pytorchs(void **state) {
    (void)state;
    static const double weights[] = {0.5, 2, 1.25};
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        const reference *r = &references[i];
        numbers n;
        double losses[STEPS], mean = 0;
        float factors[MOST];
        weft_context *ctx;
        weft_loader *loader;
        make(r, &n);
        /* PyTorch divides by the weights of the batch, here of all samples; weft_fit divides by their number
         */
        for (int k = 0; k < N; k++) mean += weights[n.classes[k]] / N;
        for (int k = 0; k < MOST; k++) factors[k] = (float)(weights[k] / mean);
        assert_int_equal(weft_open(&(weft_open_options){.seed = 1}, &ctx), WEFT_OK);
        weft_module *layer = layer_of(ctx, r, &n);
        const bool regression = r->kind == WEFT_LOSS_MSE, weighted = r->kind == WEFT_LOSS_CROSS_ENTROPY;
        const weft_array x = {WEFT_F32, 2, {N, COLUMNS}, n.x, 0}, y = {WEFT_F32, 2, {N, r->outputs}, n.y, 0},
                         classes = {WEFT_I32, 1, {N}, n.classes, 0};
        assert_int_equal(
            weft_loader_new(ctx, &x, regression ? &y : &classes, &(weft_loader_options){.batch = N}, &loader),
            WEFT_OK);
        assert_int_equal(weft_fit(layer, optimizer_of(r, layer), loader,
                                  &(weft_fit_options){.loss = r->kind,
                                                      .steps = STEPS,
                                                      .class_weights = weighted ? factors : NULL,
                                                      .n_classes = weighted ? r->outputs : 0,
                                                      .on_step = on_step,
                                                      .user = losses},
                                  NULL),
                         WEFT_OK);
        for (int k = 0; k < STEPS; k++)
            if (!(fabs(losses[k] - r->losses[k]) <= 1e-5 * fabs(r->losses[k])))
                fail_msg("case %zu, step %d: loss %.9g, PyTorch's is %.9g", i, k + 1, losses[k],
                         r->losses[k]);
        weft_loader_free(loader);
        weft_close(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_steps_are_pytorchs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
