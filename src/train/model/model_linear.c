/* model.type linear and logistic: one layer, whose weights `weft show` explains. Must not know: how data are
 * normalized (dataset.h). Read next: weft/nn.h. */
#include "train/model/model_kind.h"

/* Makes the only layer. Least squares and logistic regression have a single solution, so the weights begin
 * with 0. The optimizer adds the gradient of the ridge penalty. The penalty belongs to the sum of losses, but
 * training uses the mean, so the ridge is divided by the weight of all samples, which is their number if they
 * have no weights. */
static weft_status build_one(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                             int64_t outputs, double ridge, weft__model *model) {
    const double samples = weft__dataset_weight(dataset);
    if (dtype != WEFT_F32)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "train.precision: linear and logistic are trained in f32, bf16 or f16");
    const weft_init zeros = {.kind = WEFT_INIT_ZEROS};
    model->module =
        weft_linear(model->ctx, dataset->features, outputs,
                    &(weft_linear_options){
                        .no_bias = !config->model_bias, .weight = zeros, .bias = zeros, .dtype = dtype});
    model->ridge = samples > 0 ? ridge / samples : 0;
    return WEFT_OK;
}

static weft_status build_linear(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                weft__model *model) {
    model->loss = WEFT_LOSS_MSE; /* the mean is also over the outputs */
    return build_one(config, dataset, dtype, dataset->outputs,
                     2 * config->model_ridge / (double)dataset->outputs, model);
}

static weft_status build_logistic(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                  weft__model *model) {
    const bool binary = dataset->outputs == 2; /* two classes need one logit, that of class 1 */
    model->loss = binary ? WEFT_LOSS_BCE : WEFT_LOSS_CROSS_ENTROPY;
    return build_one(config, dataset, dtype, binary ? 1 : dataset->outputs, config->model_ridge, model);
}

static void model_linear_describe(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    (void)config;
    weft__put(name, "%lld-%lld", (long long)dataset->features, (long long)dataset->outputs);
}

const weft__model_kind weft__model_linear = {.build = build_linear, .describe = model_linear_describe};
const weft__model_kind weft__model_logistic = {.build = build_logistic, .describe = model_linear_describe};
