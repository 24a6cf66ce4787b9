/* Folders of models that can become GGUF files: they have a tokenizer. And tensors of GGUF files. */
#ifndef WEFT_TESTS_GGUF_FOLDER_H
#define WEFT_TESTS_GGUF_FOLDER_H

#include "published/gguf.h"
#include "unit/published/models.h"

/* Byte-level BPE of a few letters; %s is the pre-tokenizer, %s the normalizer. */
#define TOKENIZER                                                                                            \
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["                           \
    "{\"id\":0,\"content\":\"<|end|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"             \
    "\"normalized\":false,\"special\":true},"                                                                \
    "{\"id\":9,\"content\":\"<tool>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"              \
    "\"normalized\":false,\"special\":false}],\"normalizer\":%s,\"pre_tokenizer\":%s,"                       \
    "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"                 \
    "\"trim_offsets\":true,\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"dropout\":null,"                \
    "\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"                     \
    "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{\"<|end|>\":0,"           \
    "\"a\":1,\"b\":2,\"c\":3,\"\\u0120\":4,\"ab\":5,\"\\u0120ab\":6,\"1\":7,\"abc\":8},"                     \
    "\"merges\":[[\"a\",\"b\"],[\"\\u0120\",\"ab\"],[\"ab\",\"c\"]]}}"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define DIGITS                                                                                               \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true}," BYTES "]}"
#define CONFIG                                                                                               \
    "{\"bos_token\":\"<|end|>\",\"eos_token\":{\"content\":\"<|end|>\"},\"add_bos_token\":true,"             \
    "\"chat_template\":\"{{ messages }}\"}"

static inline void write_tokenizer(const char *folder, const char *normalizer, const char *pre) {
    char text[4096];
    snprintf(text, sizeof text, TOKENIZER, normalizer, pre);
    write_text(folder, "tokenizer.json", text);
    write_text(folder, "tokenizer_config.json", CONFIG);
}

/* Makes the folder of a model of models/, with a tokenizer. */
static inline const char *model_folder(weft_context *ctx, json_t *root, const char *name) {
    const char *folder = make_folder(ctx, root, WEFT_F32, name);
    write_tokenizer(folder, "null", DIGITS);
    return folder;
}

static inline const weft__gguf_tensor *tensor_of(const weft__gguf *g, const char *name) {
    for (size_t i = 0; i < weft__gguf_count(g); i++)
        if (strcmp(weft__gguf_tensor_at(g, i)->name, name) == 0) return weft__gguf_tensor_at(g, i);
    fail_msg("no tensor %s", name);
    return NULL;
}

#endif
