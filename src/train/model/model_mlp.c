/* model.type mlp. Must not know: the loop. Read next: weft/nn.h. */
#include "train/model/model_kind.h"

static weft_status model_mlp_build(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                   weft__model *model) {
    int64_t sizes[WEFT__LIST_MAX + 2];
    int count = 0;
    weft_activation_kind activation = WEFT_RELU;
    sizes[count++] = dataset->features;
    for (size_t i = 0; i < config->model_hidden.count; i++) sizes[count++] = config->model_hidden.values[i];
    sizes[count++] = dataset->outputs;
    WEFT_TRY(weft__model_activation(config, model->ctx, &activation));
    if (dtype != WEFT_F32)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "train.precision: an mlp is trained in f32, bf16 or f16");
    model->module = weft_nn_mlp(model->ctx, sizes, count,
                                &(weft_mlp_options){.activation = activation,
                                                    .no_bias = !config->model_bias,
                                                    .dropout = config->model_dropout,
                                                    .dtype = dtype});
    model->loss = config->task == WEFT__TASK_REGRESSION ? WEFT_LOSS_MSE : WEFT_LOSS_CROSS_ENTROPY;
    return WEFT_OK;
}

static void model_mlp_describe(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    weft__put(name, "%lld", (long long)dataset->features);
    for (size_t i = 0; i < config->model_hidden.count && name->length < 40; i++)
        weft__put(name, "-%lld", (long long)config->model_hidden.values[i]);
    weft__put(name, "-%lld", (long long)dataset->outputs);
}

const weft__model_kind weft__model_mlp = {.build = model_mlp_build, .describe = model_mlp_describe};
