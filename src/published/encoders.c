/* Reads config.json of encoders: BERT, RoBERTa and DistilBERT. Must not know: names of tensors. Read next:
 * names.c. */
#include <string.h>

#include "published/fields.h"

/* Whether the model classifies texts: architectures names a class of transformers. */
static bool classifies(const weft__fields *f) {
    static const char ending[] = "ForSequenceClassification";
    const char *name = json_string_value(json_array_get(json_object_get(f->root, "architectures"), 0));
    const size_t bytes = name ? strlen(name) : 0, of_ending = sizeof ending - 1;
    return bytes > of_ending && strcmp(name + bytes - of_ending, ending) == 0;
}

/* Sets what all encoders have. */
static void finish(weft__fields *f, weft__published *p) {
    weft_encoder_options *o = &p->encoder;
    const json_t *labels = json_object_get(f->root, "id2label");
    p->encodes = true;
    if (classifies(f)) o->labels = json_object_size(labels) ? (int64_t)json_object_size(labels) : 2;
    p->gpt = (weft_gpt_options){
        .vocab = o->vocab, .width = o->width, .heads = o->heads, .layers = o->layers, .hidden = o->hidden};
}

void weft__read_bert(weft__fields *f, weft__published *p) {
    weft_encoder_options *o = &p->encoder;
    const bool padded = p->architecture->traits & WEFT__PADDED;
    o->vocab = weft__field_int(f, "vocab_size", padded ? 50265 : 30522);
    o->width = weft__field_int(f, "hidden_size", 768);
    o->layers = weft__field_int(f, "num_hidden_layers", 12);
    o->heads = weft__field_int(f, "num_attention_heads", 12);
    o->hidden = weft__field_int(f, "intermediate_size", 3072);
    o->types = weft__field_int(f, "type_vocab_size", 2);
    o->eps = weft__field_number(f, "layer_norm_eps", 1e-12);
    o->activation = weft__field_activation(f, "hidden_act", "gelu");
    if (padded) o->first_position = (int64_t)weft__field_number(f, "pad_token_id", 1) + 1;
    p->context = weft__field_int(f, "max_position_embeddings", 512) - o->first_position;
    if (p->context < 1)
        weft__field_fail(f, WEFT_ERR_FORMAT, "max_position_embeddings", "no position is left for tokens");
    if (strcmp(weft__field_text(f, "position_embedding_type", "absolute"), "absolute") != 0)
        weft__field_fail(f, WEFT_ERR_FORMAT, "position_embedding_type", "Weft knows absolute");
    if (weft__field_bool(f, "is_decoder", false))
        weft__field_fail(f, WEFT_ERR_FORMAT, "is_decoder", "Weft computes only models where it is false");
    finish(f, p);
}

void weft__read_distilbert(weft__fields *f, weft__published *p) {
    weft_encoder_options *o = &p->encoder;
    o->vocab = weft__field_int(f, "vocab_size", 30522);
    o->width = weft__field_int(f, "dim", 768);
    o->layers = weft__field_int(f, "n_layers", 6);
    o->heads = weft__field_int(f, "n_heads", 12);
    o->hidden = weft__field_int(f, "hidden_dim", 3072);
    o->eps = 1e-12;
    o->activation = weft__field_activation(f, "activation", "gelu");
    o->pooler_activation = WEFT_RELU;
    p->context = weft__field_int(f, "max_position_embeddings", 512);
    finish(f, p);
}
