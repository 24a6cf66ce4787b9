/* Records what exported C source computes: the model between raw inputs and results for people. The
 * normalization is a part of the graph, so the compiler fuses and plans it with the model.
 * Must not know: source code. Read next: export_c.c. */
#include <float.h>
#include <math.h>

#include <weft/ops.h>
#include <weft/recurrent.h>

#include "nn/module.h"
#include "train/export/export.h"

/* Finds the first column whose numbers f32 cannot tell apart: the deviation is less than 100 steps of f32.
 * Returns `count` if there is none. */
static int64_t beyond_f32(int64_t count, const double *mean, const double *deviation) {
    int64_t i = 0;
    while (i < count && mean && fabs(mean[i]) * FLT_EPSILON * 100 <= deviation[i]) i++;
    return mean ? i : count;
}

weft_status weft__export_needs_f32(const weft__opened_model *opened, const char *format) {
    const weft__dataset *d = &opened->dataset;
    const int64_t input = beyond_f32(d->features, d->scaling.mean, d->scaling.deviation);
    const bool all = input == d->features;
    const int64_t output =
        all ? beyond_f32(d->outputs, d->scaling.target_mean, d->scaling.target_deviation) : 0;
    if (all && output == d->outputs) return WEFT_OK;
    const char *name = all ? d->table.target : d->table.inputs ? d->table.inputs[input] : NULL;
    return weft__fail(opened->model.ctx, WEFT_ERR_UNSUPPORTED,
                      "export: --to %s: %s %lld (%.60s) has the mean %.10g and the deviation %.3g, which the "
                      "floats of C source cannot tell apart: subtract a constant from it in the data, and "
                      "train again; or use weft_run_predict",
                      format, all ? "target" : "input", (long long)(all ? output : input),
                      name ? name : "without a name",
                      all ? d->scaling.target_mean[output] : d->scaling.mean[input],
                      all ? d->scaling.target_deviation[output] : d->scaling.deviation[input]);
}

/* Returns a constant of f32. */
static weft_tensor *constant(weft_context *ctx, int rank, const int64_t *shape, const float *values) {
    return weft_from(ctx, WEFT_F32, rank, shape, values);
}

/* The same of numbers in f64, which are rounded. `rest`: what rounding took from them. */
static weft_tensor *rounded(weft_context *ctx, int64_t count, const double *values, bool rest) {
    float *narrow = weft__array(ctx, (size_t)count, sizeof *narrow);
    if (!narrow) return weft__poison(ctx, "export", WEFT_ERR_OOM, "out of memory for the normalization");
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (float)(rest ? values[i] - (double)(float)values[i] : values[i]);
    weft_tensor *t = constant(ctx, 1, &count, narrow);
    weft__free(ctx, narrow);
    return t;
}

weft_tensor *weft__export_normalize(weft_tensor *x, int64_t count, const double *mean,
                                    const double *deviation) {
    weft_context *ctx = x->ctx;
    /* the rounding of a mean would shift all numbers */
    weft_tensor *middle =
        weft_sub(weft_sub(x, rounded(ctx, count, mean, false)), rounded(ctx, count, mean, true));
    return weft_div(middle, rounded(ctx, count, deviation, false));
}

weft_tensor *weft__export_normalized(const weft__dataset *d, weft_tensor *raw) {
    const int64_t channels[3] = {d->image[0], 1, 1},
                  images[4] = {weft_dim(raw, 0), d->image[0], d->image[1], d->image[2]};
    weft_tensor *x = raw;
    if (d->scaling.mean) x = weft__export_normalize(x, d->features, d->scaling.mean, d->scaling.deviation);
    if (d->scaling.factor != 0 && d->scaling.factor != 1) x = weft_mul_scalar(x, d->scaling.factor);
    if (d->image[0]) x = weft_reshape(x, 4, images);
    if (!d->scaling.pixel_mean) return x;
    x = weft_sub(x, constant(raw->ctx, 3, channels, d->scaling.pixel_mean));
    return weft_div(x, constant(raw->ctx, 3, channels, d->scaling.pixel_deviation));
}

/* Returns probabilities, or numbers in the units of the data. */
static weft_tensor *finish(const weft__opened_model *opened, weft_tensor *y) {
    const weft__dataset *d = &opened->dataset;
    weft_context *ctx = opened->model.ctx;
    if (opened->config.task == WEFT__TASK_CLASSIFICATION) {
        if (opened->model.loss != WEFT_LOSS_BCE) return weft_softmax(y, -1);
        return weft_concat((weft_tensor *[]){weft_sigmoid(weft_neg(y)), weft_sigmoid(y)}, 2, 1);
    }
    if (!d->scaling.target_mean) return y;
    y = weft_mul(y, rounded(ctx, d->outputs, d->scaling.target_deviation, false));
    return weft_add(y, rounded(ctx, d->outputs, d->scaling.target_mean, false));
}

/* ---- weights of convolutions ---- */

/* Programs read them with their channels last. Without this, each call would copy them into this order, and
 * the static memory would have room for the copies. Returns the weight (O, I, H, W) as a view of such an
 * array. */
static weft_tensor *lay(weft__export_graph *g, const weft_parameter_info *info) {
    weft_context *ctx = info->tensor->ctx;
    const int64_t *n = info->tensor->shape, pixels = n[2] * n[3], laid[4] = {n[0], n[2], n[3], n[1]};
    float *values = weft__array(ctx, (size_t)info->tensor->numel, 2 * sizeof *values);
    if (!values) return NULL;
    float *to = values, *from = values + info->tensor->numel;
    weft_tensor *view = NULL;
    if (weft_read(info->tensor, from, (size_t)info->tensor->numel * sizeof *from) == WEFT_OK) {
        for (int64_t o = 0; o < n[0]; o++)
            for (int64_t p = 0; p < pixels; p++)
                for (int64_t i = 0; i < n[1]; i++) *to++ = from[(o * n[1] + i) * pixels + p];
        weft_tensor *kept = weft_from(ctx, WEFT_F32, 4, laid, values);
        view = weft_permute(kept, (int[]){0, 3, 1, 2});
        if (weft_tensor_status(view) == WEFT_OK)
            g->laid[g->n_laid++] = (weft__export_laid){kept, info->name};
        else
            view = NULL;
    }
    weft__free(ctx, values);
    return view;
}

/* Exchanges the weights of convolutions, while the graph is recorded, with such views. A weight that has none
 * stays as it is. */
static void exchange(weft__export_graph *g, weft_module *m, weft_tensor **variables, bool back) {
    const size_t count = weft_parameter_count(m);
    for (size_t i = 0, n = 0; i < count && n < WEFT__EXPORT_STATES; i++) {
        weft_parameter_info info;
        if (!weft_parameter_get(m, i, &info) || info.tensor->rank != 4 || info.tensor->dtype != WEFT_F32)
            continue;
        weft_tensor *other = back ? variables[n] : lay(g, &info);
        for (size_t k = 0; k < info.module->n_parameters && other; k++)
            if (info.module->parameters[k].variable == info.tensor)
                info.module->parameters[k].variable = other;
        variables[n++] = info.tensor;
    }
}

static weft_tensor *export_forward(weft__opened_model *opened, weft__export_graph *g, weft_tensor *x) {
    weft_tensor *variables[WEFT__EXPORT_STATES];
    if (opened->model.optimizer)
        return weft_forward(opened->model.module, x); /* training changes the weights */
    exchange(g, opened->model.module, variables, false);
    weft_tensor *y = weft_forward(opened->model.module, x);
    exchange(g, opened->model.module, variables, true);
    return y;
}

static weft_status record_vectors(weft__opened_model *opened, weft__export_graph *g) {
    const weft__dataset *d = &opened->dataset;
    weft_context *ctx = opened->model.ctx;
    float *zeros = weft__array(ctx, (size_t)d->features, sizeof *zeros);
    if (!zeros) return weft__fail_oom(ctx, (size_t)d->features * sizeof *zeros, "the inputs");
    g->inputs = d->features;
    g->outputs = d->outputs;
    g->input = constant(ctx, 2, (int64_t[]){1, d->features}, zeros);
    weft__free(ctx, zeros);
    g->output = weft_reshape(finish(opened, export_forward(opened, g, weft__export_normalized(d, g->input))),
                             2, (int64_t[]){1, d->outputs});
    return weft_tensor_status(g->output);
}

/* ---- texts ---- */

/* Adds a state, whose value after each token is next[i]. */
static weft_status add_state(weft__export_graph *g, weft_tensor *variable, weft_tensor *next,
                             weft_tensor **values) {
    WEFT_TRY(weft_tensor_status(variable));
    WEFT_TRY(weft_tensor_status(next));
    if (g->n_states == WEFT__EXPORT_STATES)
        return weft__fail(variable->ctx, WEFT_ERR_UNSUPPORTED, "export: the model has more than %d layers",
                          WEFT__EXPORT_STATES / 2);
    g->states[g->n_states] = variable;
    values[g->n_states++] = next;
    return WEFT_OK;
}

static weft_status record_gpt(weft__opened_model *opened, weft__export_graph *g, weft_tensor **values) {
    const int32_t zero = 0;
    weft_context *ctx = opened->model.ctx;
    weft_tensor *variable, *next;
    g->cache = weft_decode_state_new_sized(opened->model.module, opened->config.model_context);
    if (!g->cache) return weft_last_status(ctx);
    g->position = weft_from(ctx, WEFT_I32, 0, NULL, &zero);
    g->output = weft__gpt_cache_record(g->cache, g->input, g->position, NULL);
    WEFT_TRY(weft_tensor_status(g->output));
    for (int64_t i = 0; weft__gpt_cache_state(g->cache, i, &variable, &next); i++)
        WEFT_TRY(add_state(g, variable, next, values));
    return WEFT_OK;
}

static weft_status record_recurrent(weft__opened_model *opened, weft__export_graph *g, weft_tensor **values) {
    weft_context *ctx = opened->model.ctx;
    weft_module *m = opened->model.module;
    int64_t shape[3];
    const int rank = weft_states_shape(m, 1, shape);
    weft_tensor *h = weft_variable_new(ctx, "h", WEFT_F32, rank, shape, NULL);
    weft_tensor *c = weft_states_have_c(m) ? weft_variable_new(ctx, "c", WEFT_F32, rank, shape, NULL) : NULL;
    weft_states states = {h, c};
    g->output = weft_forward_from(m, g->input, &states, NULL);
    WEFT_TRY(weft_tensor_status(g->output));
    WEFT_TRY(add_state(g, h, states.h, values));
    return c ? add_state(g, c, states.c, values) : WEFT_OK;
}

static weft_status record_text(weft__opened_model *opened, weft__export_graph *g, weft_tensor **values) {
    const int32_t token = 0;
    g->inputs = 1;
    g->outputs = opened->model.rows;
    g->input = weft_from(opened->model.ctx, WEFT_I32, 2, (int64_t[]){1, 1}, &token);
    return weft__config_is(&opened->config, WEFT__TRAIT_PUBLISHED) ? record_gpt(opened, g, values)
                                                                   : record_recurrent(opened, g, values);
}

weft_status weft__export_graph_make(weft__opened_model *opened, weft__export_graph *g) {
    weft_tensor *values[WEFT__EXPORT_STATES];
    *g = (weft__export_graph){.scope = weft_scope_open(opened->model.ctx)};
    if (!g->scope) return weft__fail_oom(opened->model.ctx, 0, "a scope");
    if (opened->config.task == WEFT__TASK_LANGUAGE_MODEL)
        WEFT_TRY(record_text(opened, g, values));
    else
        WEFT_TRY(record_vectors(opened, g));
    WEFT_TRY(weft_compile(&g->output, 1, g->states, values, g->n_states, &g->program));
    return weft_program_run(g->program);
}

void weft__export_graph_free(weft__export_graph *g) {
    weft_program_free(g->program);
    weft_decode_state_free(g->cache);
    weft_scope_close(g->scope);
    *g = (weft__export_graph){0};
}
