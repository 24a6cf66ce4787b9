/* model.type gpt. Must not know: the loop. Read next: weft/nn.h. */
#include <weft/published.h>

#include "base/option.h"
#include "train/model/model_kind.h"

/* The choices of model.mlp and model.rotary_pairs in config_keys.def. The choices of norms and positions have
 * the values of the library's enums. */
enum { GELU, SWIGLU };
enum { HALVES, NEIGHBOURS };

/* Adds the adapters that the configuration asks for. */
static weft_status add_adapters(const weft__config *config, weft_module *gpt) {
    if (config->lora_rank == 0) return weft_module_status(gpt);
    const weft_lora_options options = {.rank = config->lora_rank,
                                       .alpha = config->lora_alpha,
                                       .dropout = config->lora_dropout,
                                       .targets = (const char *const *)config->lora_targets.values,
                                       .target_count = (int)config->lora_targets.count};
    return weft_gpt_lora(gpt, &options);
}

static weft_status model_gpt_build(const weft__config *config, const weft__dataset *dataset, weft_dtype dtype,
                                   weft__model *model) {
    WEFT_TRY(weft__model_take_tokens(config, dataset, model));
    model->loss = dataset->chats.pairs ? WEFT_LOSS_DPO : WEFT_LOSS_CROSS_ENTROPY;
    model->beta = config->dpo_beta;
    if (config->published) {
        /* a run keeps config.json, which does not tell how weights are packed */
        const char *from = model->packed && config->lora_rank > 0 ? config->model_init : config->published;
        /* shorter texts in training take no positions from the model */
        const int64_t context = config->positions ? config->positions : config->model_context;
        model->module = weft_published_new(model->ctx, from,
                                           &(weft_published_options){.context = context,
                                                                     .dropout = config->model_dropout,
                                                                     .head_chunks = config->train_head_chunks,
                                                                     .dtype = dtype,
                                                                     .packed = model->packed});
        return add_adapters(config, model->module);
    }
    model->module = weft_nn_gpt(
        model->ctx,
        &(weft_gpt_options){.vocab = model->rows,
                            .context = config->model_context,
                            .layers = config->model_layers,
                            .heads = config->model_heads,
                            .width = config->model_width,
                            .dropout = config->model_dropout,
                            .no_bias = !config->model_bias,
                            .untied_head = config->model_untied_head,
                            .head_chunks = config->train_head_chunks,
                            .dtype = dtype,
                            .tokens = model->tokens,
                            .norm = (weft_norm_kind)config->model_norm,
                            .positions = (weft_position_kind)config->model_positions,
                            .gated = config->model_mlp == SWIGLU,
                            .kv_heads = config->model_kv_heads,
                            .hidden = config->model_mlp_width,
                            .eps = weft__given(config->model_norm_eps),
                            .rotation = {.base = config->model_rotary_base,
                                         .interleaved = config->model_rotary_pairs == NEIGHBOURS}});
    return config->lora_rank == 0
               ? WEFT_OK
               : weft__fail(model->ctx, WEFT_ERR_ARGUMENT,
                            "lora.rank: adapters are for a published model, and model.init names a file of "
                            "weights: name the folder or GGUF file of a published model");
}

void weft__describe_blocks(const weft__config *config, const weft__dataset *dataset, weft_text *name) {
    (void)dataset;
    weft__put(name, "L%lld-H%lld-E%lld", (long long)config->model_layers, (long long)config->model_heads,
              (long long)config->model_width);
}

const weft__model_kind weft__model_gpt = {
    .rounds = true, .build = model_gpt_build, .describe = weft__describe_blocks};
