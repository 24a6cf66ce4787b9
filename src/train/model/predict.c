/* Applies a trained model to inputs, batch by batch, on one device or several. Must not know: files,
 * terminals. Read next: run.c, cli/predict.c. */
#include <math.h>
#include <string.h>

#include "base/each.h"
#include "train/model/predict.h"

/* Most inputs of a batch, most texts, and most numbers, unless one input has more. */
enum { BATCH = 256, TEXTS = 16, NUMBERS = 1 << 24 };

weft_status weft__model_predicts(const weft__model *model, const weft__dataset *dataset) {
    if (dataset->task != WEFT__TASK_LANGUAGE_MODEL) return WEFT_OK;
    return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                      "predict: the run's model is a language model: generate text with it instead");
}

/* Turns logits (count) into probabilities, in place. */
static void softmax(double *values, int64_t count) {
    double sum = 0, most = values[0];
    for (int64_t i = 1; i < count; i++) most = fmax(most, values[i]);
    for (int64_t i = 0; i < count; i++) sum += exp(values[i] - most);
    for (int64_t i = 0; i < count; i++) values[i] = exp(values[i] - most) / sum;
}

/* Turns the model's outputs for some inputs into answers. Two classes may have one logit, that of the second
 * class. */
static void put_answers(const weft__model *model, const weft__dataset *d, const float *out, int64_t rows,
                        double *answers) {
    const bool pairs = model->loss == WEFT_LOSS_BCE;
    for (int64_t i = 0; i < rows; i++) {
        double *to = answers + i * d->outputs;
        if (pairs) to[0] = 0, to[1] = (double)out[i];
        for (int64_t c = 0; c < d->outputs && !pairs; c++) to[c] = (double)out[i * d->outputs + c];
        if (d->task == WEFT__TASK_CLASSIFICATION) softmax(to, d->outputs);
    }
    if (d->task == WEFT__TASK_REGRESSION) weft__dataset_unscale(d, answers, rows);
}

/* What all devices share. */
typedef struct predicting {
    const weft__model *const *models;
    const weft__dataset *dataset;
    const weft__inputs *inputs;
    double *answers;
    weft__each devices;
} predicting;

/* Computes the batches `index`, index + devices, ... of the loader. `out` has room for the outputs of one. */
static weft_status predict_batches(const predicting *p, size_t index, weft_loader *loader, float *out) {
    const weft__model *model = p->models[index];
    const weft__dataset *d = p->dataset;
    const int64_t rows = weft_loader_batch_size(loader), count = p->inputs->x.shape[0],
                  width = model->loss == WEFT_LOSS_BCE ? 1 : d->outputs;
    const int64_t batches = weft__ceil_div(count, rows);
    weft_status status = WEFT_OK;
    for (int64_t b = (int64_t)index; status == WEFT_OK && b < batches && !p->devices.failed;
         b += (int64_t)p->devices.count) {
        const int64_t first = b * rows, real = weft__smaller(count - first, rows);
        weft_batch batch;
        weft_scope *scope = weft_scope_open(model->ctx);
        status =
            scope ? weft_loader_get(loader, (uint64_t)b, &batch) : weft__fail_oom(model->ctx, 0, "a scope");
        if (status == WEFT_OK)
            status = weft_read(weft_forward(model->module, batch.x), out,
                               (size_t)rows * (size_t)width * sizeof *out);
        weft_scope_close(scope);
        if (status == WEFT_OK) put_answers(model, d, out, real, p->answers + first * d->outputs);
    }
    return status;
}

static weft_status predict_on(void *user, size_t index) {
    const predicting *p = user;
    const weft__dataset *dataset = p->dataset;
    const weft__inputs *inputs = p->inputs;
    const weft_array *x = &inputs->x;
    weft__image_places places = {
        .members = x->data ? NULL : inputs->members, .shards = inputs->shards, .sample = inputs->sample};
    if (!x->data && !inputs->members) places.files = (const char *const *)inputs->files;
    weft_context *ctx = p->models[index]->ctx;
    weft_loader *loader = NULL;
    const int64_t fit = dataset->features < NUMBERS ? NUMBERS / dataset->features : 1,
                  most = dataset->texts.rows ? TEXTS : weft__smaller(fit, BATCH);
    const weft_loader_options options = {.batch = x->shape[0] < most ? x->shape[0] : most,
                                         .in_order = true,
                                         .scale = dataset->scaling.factor,
                                         .lengths = inputs->lengths.data,
                                         .images = weft__dataset_images(dataset, &places)};
    WEFT_TRY(weft_loader_new(ctx, x, NULL, &options, &loader));
    float *out = weft__array(ctx, (size_t)options.batch * (size_t)dataset->outputs, sizeof *out);
    const weft_status status =
        out ? predict_batches(p, index, loader, out) : weft__fail_oom(ctx, 0, "predictions");
    weft__free(ctx, out);
    weft_loader_free(loader);
    return status;
}

weft_status weft__model_predict_on(const weft__model *const *models, size_t count,
                                   const weft__dataset *dataset, const weft__inputs *inputs,
                                   double *answers) {
    predicting p = {.models = models, .dataset = dataset, .inputs = inputs, .answers = answers};
    p.devices.count = count;
    p.devices.task = predict_on;
    p.devices.user = &p;
    for (size_t i = 0; i < count; i++) p.devices.names[i] = weft_device_of(models[i]->ctx);
    return weft__each_run(&p.devices);
}

weft_status weft__model_predict(const weft__model *model, const weft__dataset *dataset,
                                const weft__inputs *inputs, double *answers) {
    return weft__model_predict_on(&model, 1, dataset, inputs, answers);
}
