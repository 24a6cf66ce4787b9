/* model.type encoder: a published encoder with a head for the classes of texts. Must not know: files of
 * weights. Read next: weft/nn.h. */
#include <weft/published.h>

#include "train/model/model_kind.h"

static weft_status model_encoder_build(const weft__config *config, const weft__dataset *dataset,
                                       weft_dtype dtype, weft__model *model) {
    model->loss = WEFT_LOSS_CROSS_ENTROPY;
    model->new_head = dataset->texts.new_head;
    model->module =
        weft_published_new(model->ctx, config->published,
                           &(weft_published_options){
                               .dropout = config->model_dropout, .dtype = dtype, .labels = dataset->outputs});
    return weft_module_status(model->module);
}

const weft__model_kind weft__model_encoder = {
    .rounds = true, .build = model_encoder_build, .describe = weft__describe_blocks};
