/* model.type cnn, resnet and autoencoder. Must not know: the loop. Read next: weft/nn.h. */
#include "train/model/model_kind.h"

/* Returns the loss of the task. Models of images can also predict numbers. */
static weft_loss_kind loss_of(const weft__config *config) {
    return config->task == WEFT__TASK_REGRESSION ? WEFT_LOSS_MSE : WEFT_LOSS_CROSS_ENTROPY;
}

static weft_status check_dtype(weft_context *ctx, weft_dtype dtype) {
    if (dtype == WEFT_F32) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "train.precision: image models are trained in f32, bf16 or f16");
}

static weft_status build_cnn(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                             weft__model *model) {
    weft_activation_kind activation = WEFT_RELU;
    WEFT_TRY(check_dtype(model->ctx, dtype));
    WEFT_TRY(weft__model_activation(config, model->ctx, &activation));
    model->loss = loss_of(config);
    model->module =
        weft_nn_cnn(model->ctx, &(weft_cnn_options){.channels = dataset->image[0],
                                                    .rows = dataset->image[1],
                                                    .columns = dataset->image[2],
                                                    .classes = dataset->outputs,
                                                    .filters = config->model_filters.values,
                                                    .filter_count = (int)config->model_filters.count,
                                                    .size = config->model_kernel,
                                                    .hidden = config->model_hidden.values[0],
                                                    .activation = activation,
                                                    .dropout = config->model_dropout,
                                                    .no_bias = !config->model_bias,
                                                    .dtype = dtype});
    return weft_module_status(model->module);
}

static void describe_cnn(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    weft__put(name, "%lldx%lldx%lld", (long long)dataset->image[0], (long long)dataset->image[1],
              (long long)dataset->image[2]);
    for (size_t i = 0; i < config->model_filters.count && name->length < 44; i++)
        weft__put(name, "-%lld", (long long)config->model_filters.values[i]);
}

const weft__model_kind weft__model_cnn = {.build = build_cnn, .describe = describe_cnn};

static weft_status build_resnet(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                weft__model *model) {
    if (config->model_dropout > 0)
        return weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                          "model.dropout: a resnet has no dropout: it uses batch norm and "
                          "data.shift instead");
    WEFT_TRY(check_dtype(model->ctx, dtype));
    model->loss = loss_of(config);
    model->module = weft_nn_resnet(model->ctx, &(weft_resnet_options){.channels = dataset->image[0],
                                                                      .rows = dataset->image[1],
                                                                      .columns = dataset->image[2],
                                                                      .classes = dataset->outputs,
                                                                      .depth = config->model_depth,
                                                                      .width = config->model_width,
                                                                      .dtype = dtype});
    return weft_module_status(model->module);
}

static void describe_resnet(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    weft__put(name, "%lld-%lldx%lldx%lld", (long long)config->model_depth, (long long)dataset->image[0],
              (long long)dataset->image[1], (long long)dataset->image[2]);
}

const weft__model_kind weft__model_resnet = {.build = build_resnet, .describe = describe_resnet};

static weft_status build_autoencoder(const weft__config *config, const weft__dataset *dataset,
                                     weft_dtype dtype, weft__model *model) {
    int64_t sizes[WEFT__LIST_MAX + 1] = {dataset->features};
    weft_activation_kind activation = WEFT_RELU;
    int count = 1;
    WEFT_TRY(check_dtype(model->ctx, dtype));
    WEFT_TRY(weft__model_activation(config, model->ctx, &activation));
    for (size_t i = 0; i < config->model_hidden.count; i++) sizes[count++] = config->model_hidden.values[i];
    model->loss = WEFT_LOSS_MSE;
    model->module = weft_nn_autoencoder(model->ctx, sizes, count,
                                        &(weft_mlp_options){.activation = activation,
                                                            .no_bias = !config->model_bias,
                                                            .dropout = config->model_dropout,
                                                            .dtype = dtype});
    return weft_module_status(model->module);
}

static void describe_autoencoder(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    weft__put(name, "%lld", (long long)dataset->features);
    for (size_t i = 0; i < config->model_hidden.count && name->length < 44; i++)
        weft__put(name, "-%lld", (long long)config->model_hidden.values[i]);
}

const weft__model_kind weft__model_autoencoder = {.build = build_autoencoder,
                                                  .describe = describe_autoencoder};
