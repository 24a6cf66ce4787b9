/* Exports a gpt in GPT-2's published format, with the config.json that transformers needs beside the weights.
 * Must not know: how weights are named (weft_gpt_save). Read next: weft/nn.h. */
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/json.h"
#include "nn/module.h"
#include "train/export/export.h"

/* Finds the path of config.json, in the folder of the weights. An existing file may be replaced if it
 * describes a gpt2. */
static weft_status config_path(const char *out, char path[WEFT__EXPORT_PATH]) {
    const char *slash = strrchr(out, '/');
    const int n =
        snprintf(path, WEFT__EXPORT_PATH, "%.*sconfig.json", slash ? (int)(slash - out) + 1 : 0, out);
    weft_bytes bytes;
    weft__json json;
    json_error_t error;
    json_t *object;
    if (n < 0 || n >= WEFT__EXPORT_PATH)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", out);
    if (access(path, F_OK) != 0) return WEFT_OK;
    WEFT_TRY(weft_read_file(NULL, path, 1u << 20, &bytes));
    weft__json_open(&json, NULL);
    const weft_status status =
        weft__json_load(&json, (const char *)bytes.data, bytes.size, 0, &error, &object);
    const char *type = json_string_value(json_object_get(object, "model_type"));
    const bool same = type && strcmp(type, "gpt2") == 0;
    weft__json_close(&json);
    weft_bytes_free(NULL, &bytes);
    if (status == WEFT_ERR_OOM) return status;
    return same ? WEFT_OK
                : weft__fail(NULL, WEFT_ERR_ARGUMENT,
                             "export: %s exists already and is not an export for GPT-2: choose another "
                             "folder for --out",
                             path);
}

/* The name of an activation in config.json. */
static const char *activation_of(weft_activation_kind kind) {
    switch ((int)kind) {
    case WEFT_GELU: return "gelu";
    case WEFT_RELU: return "relu";
    case WEFT_SILU: return "silu";
    default: return "gelu_new";
    }
}

static weft_status write_config(const weft__use *use, const char *path) {
    const weft__config *c = &use->config;
    const weft_gpt_options *o = weft__gpt_options_of(use->model.module);
    const int64_t vocabulary = o->tokens, positions = o->context;
    const double dropout = c->model_dropout;
    const int64_t width = c->model_mlp_width; /* 0, which GPT-2 writes as null: four times n_embd */
    weft__json json;
    char *text;
    size_t bytes = 0;
    weft__json_build(&json, NULL);
    /* the token between the texts of GPT-2 */
    json_t *last = vocabulary == 50257 ? json_integer(50256) : json_null();
    json_t *object =
        json_pack("{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:b, s:O, "
                  "s:o, s:b, s:b, s:s}",
                  "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function",
                  activation_of(o->activation), "vocab_size", (json_int_t)vocabulary, "n_positions",
                  (json_int_t)positions, "n_ctx", (json_int_t)positions, "n_embd", (json_int_t)c->model_width,
                  "n_layer", (json_int_t)c->model_layers, "n_head", (json_int_t)c->model_heads, "n_inner",
                  width ? json_integer((json_int_t)width) : json_null(), "attn_pdrop", dropout, "embd_pdrop",
                  dropout, "resid_pdrop", dropout, "layer_norm_epsilon", c->model_norm_eps,
                  "initializer_range", 0.02, "scale_attn_weights", 1, "bos_token_id", last, "eos_token_id",
                  last, "tie_word_embeddings", !c->model_untied_head, "use_cache", 1, "torch_dtype",
                  c->train_precision == WEFT__PRECISION_F64 ? "float64" : "float32");
    WEFT_TRY(weft__json_text(&json, object, JSON_INDENT(2), "config.json", &text, &bytes));
    weft_status status = weft_write_file(NULL, path, text, bytes);
    weft__free(NULL, text);
    return status;
}

weft_status weft__export_gpt2(weft__use *use, const char *path, weft__exported *exported) {
    char folder[WEFT__EXPORT_PATH];
    WEFT_TRY(config_path(path, exported->files[1]));
    WEFT_TRY(weft_gpt_save(use->model.module, path));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    WEFT_TRY(write_config(use, exported->files[1]));
    const size_t bytes = strlen(exported->files[1]) - strlen("config.json");
    snprintf(folder, sizeof folder, "%.*s", (int)bytes, exported->files[1]);
    const weft_status status = weft__export_check(use->model.module, NULL, bytes ? folder : ".", path, "f32");
    if (status != WEFT_OK) unlink(exported->files[1]);
    return weft__export_keep(use->model.ctx, status, path);
}
