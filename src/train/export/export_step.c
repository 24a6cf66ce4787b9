/* Records the training step of exported C source. The step leads from a batch of raw inputs and targets to
 * the changed parameters, as training on this batch does. Must not know: source code. Read next:
 * export_learn.c. */
#include <weft/ops.h>

#include "nn/module.h"
#include "train/export/export.h"

/* Returns a tensor of zeros, which the program reads. */
static weft_tensor *step_input(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    float *zeros = weft__array(ctx, (size_t)count, sizeof *zeros); /* zeros of i32, too */
    if (!zeros) return NULL;
    weft_tensor *t = weft_from(ctx, dtype, rank, shape, zeros);
    weft__free(ctx, zeros);
    return t;
}

static void record_texts(weft__opened_model *opened, weft__export_step *s, weft_batch *batch) {
    s->window = opened->config.model_context + 1;
    s->kinds = opened->model.tokens;
    s->input = step_input(opened->model.ctx, WEFT_I32, 2, (int64_t[]){s->batch, s->window});
    if (!s->input) return;
    batch->x = weft_narrow(s->input, 1, 0, s->window - 1);
    batch->y = weft_narrow(s->input, 1, 1, s->window - 1);
}

static void record_samples(weft__opened_model *opened, weft__export_step *s, weft_batch *batch) {
    const weft__dataset *d = &opened->dataset;
    weft_context *ctx = opened->model.ctx;
    const int64_t numbers[2] = {s->batch, d->outputs};
    s->input = step_input(ctx, WEFT_F32, 2, (int64_t[]){s->batch, d->features});
    if (!s->input) return;
    batch->x = weft__export_normalized(d, s->input);
    if (weft__config_is(&opened->config, WEFT__TRAIT_NO_TARGETS)) {
        batch->y = batch->x;
        return;
    }
    if (opened->config.task == WEFT__TASK_CLASSIFICATION) {
        s->kinds = d->outputs;
        batch->y = s->target = step_input(ctx, WEFT_I32, 1, &s->batch);
        return;
    }
    batch->y = s->target = step_input(ctx, WEFT_F32, 2, numbers);
    if (s->target && d->scaling.target_mean)
        batch->y = weft__export_normalize(s->target, d->outputs, d->scaling.target_mean,
                                          d->scaling.target_deviation);
}

/* The run's states, of train.batch streams, stand aside for states of as many streams as the batch has. */
static weft_status begin_streams(weft__opened_model *opened, weft__export_step *s) {
    weft_module *m = opened->model.module;
    const bool carries = opened->config.task == WEFT__TASK_LANGUAGE_MODEL && opened->config.data_streams &&
                         !weft__config_is(&opened->config, WEFT__TRAIT_PUBLISHED);
    for (size_t i = 0; carries && i < m->n_parameters && i < 2; i++) {
        weft_tensor *old = m->parameters[i].variable;
        const int64_t shape[3] = {old->shape[0], s->batch, old->shape[2]};
        weft_tensor *states = weft_variable_new(m->ctx, old->name, WEFT_F32, 3, shape, NULL);
        WEFT_TRY(weft_tensor_status(states));
        s->carried[i] = old;
        m->parameters[i].variable = states;
    }
    return WEFT_OK;
}

static void end_streams(weft_module *m, weft__export_step *s) {
    for (size_t i = 0; i < 2; i++) {
        if (!s->carried[i]) continue;
        weft_free(m->parameters[i].variable);
        m->parameters[i].variable = s->carried[i];
    }
}

static weft_status record_step(weft__opened_model *opened, weft__export_step *s) {
    weft_batch batch = {.count = s->batch};
    if (opened->config.task == WEFT__TASK_LANGUAGE_MODEL)
        record_texts(opened, s, &batch);
    else
        record_samples(opened, s, &batch);
    if (!batch.x || !batch.y) return weft__fail_oom(opened->model.ctx, (size_t)s->batch * 4, "a batch");
    weft_module_set_training(opened->model.module, true);
    const weft_status status =
        weft__model_loss(&opened->model, &opened->config, &opened->dataset, &batch, &s->loss);
    weft_module_set_training(opened->model.module, false);
    return status;
}

weft_status weft__export_step_make(weft__opened_model *opened, int64_t batch, weft__export_step *s) {
    *s = (weft__export_step){.batch = batch, .scope = weft_scope_open(opened->model.ctx)};
    if (weft__source_of(&opened->config)->pairs)
        return weft__fail(
            opened->model.ctx, WEFT_ERR_UNSUPPORTED,
            "export --training: a training step on preferences cannot be written as C: leave out "
            "--training, or train further with weft train");
    if (!s->scope) return weft__fail_oom(opened->model.ctx, 0, "a scope");
    WEFT_TRY(begin_streams(opened, s));
    WEFT_TRY(record_step(opened, s));
    WEFT_TRY(weft_optimizer_hold(opened->model.optimizer, s->loss, &s->program));
    WEFT_TRY(weft__optimizer_inputs(opened->model.optimizer, s->program, &s->inputs, &s->n_inputs));
    return weft_program_run(s->program);
}

void weft__export_step_free(weft__opened_model *opened, weft__export_step *s) {
    weft_program_free(s->program);
    weft_scope_close(s->scope);
    end_streams(opened->model.module, s);
    weft__free(opened->model.ctx, s->inputs);
    *s = (weft__export_step){0};
}
