/* model.type lstm and gru. Must not know: the loop. Read next: weft/recurrent.h. */
#include <weft/recurrent.h>

#include "train/model/model_kind.h"

static weft_status model_recurrent_build(const weft__config *config, const weft__dataset *dataset,
                                         weft_dtype dtype, weft_recurrent_kind kind, weft__model *model) {
    WEFT_TRY(weft__model_take_tokens(config, dataset, model));
    if (config->data_streams && config->devices.count > 1)
        return weft__fail(
            model->ctx, WEFT_ERR_ARGUMENT,
            "data.streams: states are carried from batch to batch, which several devices cannot share; "
            "set it to false");
    model->module = weft_nn_recurrent_lm(
        model->ctx, &(weft_recurrent_lm_options){.kind = kind,
                                                 .vocab = model->rows,
                                                 .layers = config->model_layers,
                                                 .width = config->model_width,
                                                 .embedding = config->model_embedding,
                                                 .dropout = config->model_dropout,
                                                 .tied = !config->model_untied_head,
                                                 .dtype = dtype,
                                                 .streams = config->data_streams ? config->train_batch : 0});
    model->loss = WEFT_LOSS_CROSS_ENTROPY;
    return WEFT_OK;
}

static weft_status build_lstm(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                              weft__model *model) {
    return model_recurrent_build(config, dataset, dtype, WEFT_LSTM, model);
}

static weft_status build_gru(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                             weft__model *model) {
    return model_recurrent_build(config, dataset, dtype, WEFT_GRU, model);
}

static void model_recurrent_describe(const weft__config *config, const weft__dataset *dataset,
                                     weft_text *name) {
    (void)dataset;
    weft__put(name, "L%lld-E%lld", (long long)config->model_layers, (long long)config->model_width);
}

const weft__model_kind weft__model_lstm = {
    .rounds = true, .build = build_lstm, .describe = model_recurrent_describe};
const weft__model_kind weft__model_gru = {
    .rounds = true, .build = build_gru, .describe = model_recurrent_describe};
