/* model.type encoder: a published encoder with a head for the classes of texts. Must not know: files of
 * weights. Read next: weft/nn.h. */
#include <weft/published.h>

#include "published/published.h"
#include "train/model/model_kind.h"

static weft_status model_encoder_build(const weft__config *config, const weft__dataset *dataset,
                                       weft_dtype dtype, weft__model *model) {
    model->loss = WEFT_LOSS_CROSS_ENTROPY;
    model->new_head = dataset->new_head;
    model->module =
        weft_published_new(model->ctx, config->published,
                           &(weft_published_options){
                               .dropout = config->model_dropout, .dtype = dtype, .labels = dataset->outputs});
    return weft_module_status(model->module);
}

/* The sizes are those of config.json. */
static void model_encoder_describe(const weft__config *config, const weft__dataset *dataset,
                                   weft_text *name) {
    weft__published p;
    (void)dataset;
    if (!config->published || weft__published_read(NULL, config->published, &p) != WEFT_OK) return;
    weft__put(name, "%s-L%lld-H%lld-E%lld", p.architecture->type, (long long)p.encoder.layers,
              (long long)p.encoder.heads, (long long)p.encoder.width);
}

const weft__model_kind weft__model_encoder = {
    .rounds = true, .build = model_encoder_build, .describe = model_encoder_describe};
