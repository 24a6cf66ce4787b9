/* Models that others have published: folders with config.json and safetensors files, as Hugging Face's
 * transformers writes them, and GGUF files of llama.cpp. A function that takes a folder takes the path of a
 * GGUF file, too.
 *
 *     weft_module *model = weft_published_new(ctx, "SmolLM2-135M", NULL);
 *     weft_status status = weft_published_load(model, "SmolLM2-135M");
 *
 * The module is one of weft_nn_gpt: train it, or generate with it. docs/published.md
 * lists the architectures. */
#ifndef WEFT_PUBLISHED_H
#define WEFT_PUBLISHED_H

#include <weft/chat.h>
#include <weft/nn.h>
#include <weft/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_published_options {
    int64_t context;     /* longest sequence; 0: what the model was made for, at most 4096 */
    double dropout;      /* in training */
    int64_t head_chunks; /* as in weft_gpt_options */
    weft_dtype dtype;    /* of the weights in memory; 0: f32 */
    /* Matrices that a GGUF file holds in a weft_packed_format stay packed in memory (weft_module_pack). They
     * cannot be trained, but adapters beside them can (weft_gpt_lora). */
    bool packed;
    /* Makes a classifier of an encoder: with so many classes, and `classifies` of weft_encoder_options is
     * true. weft_published_load then leaves layers of the head random that the files do not have, and the
     * last one if it is for another number of classes. 0: as config.json says. Not for a gpt. */
    int64_t labels;
} weft_published_options;

/* Whether the folder holds a published model: it has a config.json. Of a file: it begins as a GGUF file. */
WEFT_API bool weft_published_is(const char *folder);

/* Makes the module that config.json describes. Its weights are random: weft_published_load fills them.
 * config.json may tie the head to the token table. If the files also have a head that differs from it, the
 * module has a head of its own, as in transformers. options may be NULL.
 *
 * The module is poisoned by WEFT_ERR_IO, or by WEFT_ERR_FORMAT, which names file and field: what is
 * malformed, an unknown architecture (the message lists those that Weft knows), or a value that Weft cannot
 * compute with. */
WEFT_API weft_module *weft_published_new(weft_context *ctx, const char *folder,
                                         const weft_published_options *options);

/* Fills a module of weft_published_new from model.safetensors, or from the files that
 * model.safetensors.index.json lists. Weights of any float dtype are converted to the module's, one block of
 * rows after the other.
 *
 * WEFT_ERR_FORMAT names a file that is missing, and a tensor that is missing, unexpected or of another shape;
 * then nothing is changed. */
WEFT_API WEFT_CHECKED weft_status weft_published_load(weft_module *model, const char *folder);

/* Loads the tokenizer of a published model: as weft_tokenizer_load, or that of a GGUF file, if it is
 * byte-level BPE or SentencePiece's BPE. */
WEFT_API WEFT_CHECKED weft_status weft_published_tokenizer(weft_context *ctx, const char *folder,
                                                           weft_tokenizer **out);

/* Loads the chat template of a published model: as weft_chat_template_load, or that of a GGUF file. */
WEFT_API WEFT_CHECKED weft_status weft_published_chat(weft_context *ctx, const char *folder,
                                                      weft_chat_template **out);

/* Writes the model as a folder `to` that transformers reads: model.safetensors with the published names, in
 * `dtype` (f32, bf16 or f16), and config.json. The other files of the folder `from`, from which the model
 * came, such as the tokenizer's, are copied. Existing files are replaced. */
WEFT_API WEFT_CHECKED weft_status weft_published_save(weft_module *model, const char *from, const char *to,
                                                      weft_dtype dtype);

/* Writes the adapters of weft_gpt_lora as a folder `to` that the Python package peft reads:
 * adapter_model.safetensors and adapter_config.json. `from` is the folder or GGUF file that describes the
 * model. `base` becomes base_model_name_or_path; NULL: `from`.
 *
 * WEFT_ERR_ARGUMENT: the model has no adapters. WEFT_ERR_UNSUPPORTED: an adapter changes a part of the rows
 * of a published tensor, as that of q_proj in GPT-2, which peft cannot express. */
WEFT_API WEFT_CHECKED weft_status weft_published_save_lora(weft_module *model, const char *from,
                                                           const char *base, const char *to);

/* Writes the same adapters as a GGUF file that llama.cpp adds to a model (its options --lora and
 * --lora-scaled). An existing file is replaced. The errors are those of weft_published_save_lora, and
 * WEFT_ERR_FORMAT for an architecture that Weft does not write to GGUF files. */
WEFT_API WEFT_CHECKED weft_status weft_published_save_gguf_lora(weft_module *model, const char *from,
                                                                const char *path);

/* Writes the model as a GGUF file that llama.cpp reads, with the tokenizer and the chat template of `from`, a
 * folder or a GGUF file. `format` is "f32", "f16", "bf16", "q8_0", "q6_k", "q5_0", "q4_k" or "q4_0".
 * docs/published.md says which tensors get another format. One parameter at a time is in memory as f32. An
 * existing file is replaced when the new one is complete.
 *
 * WEFT_ERR_ARGUMENT: an unknown format. WEFT_ERR_FORMAT: an architecture, a tokenizer or a weight that the
 * file cannot hold. */
WEFT_API WEFT_CHECKED weft_status weft_published_save_gguf(weft_module *model, const char *from,
                                                           const char *path, const char *format);

/* The same from the files of a published model, without loading it. */
WEFT_API WEFT_CHECKED weft_status weft_published_quantize(weft_context *ctx, const char *from,
                                                          const char *path, const char *format);

#ifdef __cplusplus
}
#endif
#endif
