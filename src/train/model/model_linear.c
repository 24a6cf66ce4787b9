/* model.type linear and logistic: one layer, whose weights `weft show` explains. Must not know: how data are
 * normalized (dataset.h). Read next: weft/nn.h. */
#include "train/model/model_kind.h"

/* Makes the only layer. Least squares and logistic regression have a single solution, so the weights begin
 * with 0. The optimizer adds the gradient of the ridge penalty, and makes the proximal step of the lasso
 * penalty. Both penalties are those of the mean loss. */
static weft_status build_one(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                             int64_t outputs, double ridge, double lasso, weft__model *model) {
    if (dtype != WEFT_F32)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "train.precision: linear and logistic are trained in f32, bf16 or f16");
    const weft_init zeros = {.kind = WEFT_INIT_ZEROS};
    model->module =
        weft_nn_linear(model->ctx, dataset->features, outputs,
                       &(weft_linear_options){
                           .no_bias = !config->model_bias, .weight = zeros, .bias = zeros, .dtype = dtype});
    model->ridge = ridge;
    model->lasso = lasso;
    return WEFT_OK;
}

/* Returns the penalty of the mean loss that belongs to a penalty of the sum of losses. The mean divides by
 * the weight of all samples, which is their number if they have no weights. */
static double of_mean(const weft__dataset *dataset, double penalty) {
    const double samples = weft__dataset_weight(dataset);
    return samples > 0 ? penalty / samples : 0;
}

/* The loss is the mean of the squared errors over samples and outputs. */
static weft_status build_linear(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                weft__model *model) {
    const double factor = 2 / (double)dataset->outputs;
    model->loss = WEFT_LOSS_MSE;
    return build_one(config, dataset, dtype, dataset->outputs, of_mean(dataset, factor * config->model_ridge),
                     factor * config->model_lasso, model);
}

static weft_status build_logistic(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                  weft__model *model) {
    const bool binary = dataset->outputs == 2; /* two classes need one logit, that of class 1 */
    model->loss = binary ? WEFT_LOSS_BCE : WEFT_LOSS_CROSS_ENTROPY;
    return build_one(config, dataset, dtype, binary ? 1 : dataset->outputs,
                     of_mean(dataset, config->model_ridge), of_mean(dataset, config->model_lasso), model);
}

static void model_linear_describe(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    (void)config;
    weft__put(name, "%lld-%lld", (long long)dataset->features, (long long)dataset->outputs);
}

const weft__model_kind weft__model_linear = {.build = build_linear, .describe = model_linear_describe};
const weft__model_kind weft__model_logistic = {.build = build_logistic, .describe = model_linear_describe};
