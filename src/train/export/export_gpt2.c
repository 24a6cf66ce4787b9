/* Exports a gpt in GPT-2's published format, with the config.json that transformers needs beside the weights.
 * Must not know: how weights are named (weft_gpt_save). Read next: weft/nn.h. */
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/json.h"
#include "io/publish.h"
#include "nn/module.h"
#include "train/export/export.h"

#define WRITTEN_BY "{\n  \"written_by\": \"weft export\"" /* the beginning of config.json */

bool weft__export_gpt2_wrote(const char *path) { return weft__file_begins(path, WRITTEN_BY); }

/* Finds the path of config.json, in the folder of the weights; "" if these go to a pipe. */
static weft_status config_path(const char *out, const weft__output *config, char path[WEFT__EXPORT_PATH]) {
    const char *slash = strrchr(out, '/');
    path[0] = '\0';
    if (weft__is_stream(out)) return WEFT_OK;
    const int n =
        snprintf(path, WEFT__EXPORT_PATH, "%.*sconfig.json", slash ? (int)(slash - out) + 1 : 0, out);
    if (n < 0 || n >= WEFT__EXPORT_PATH)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", out);
    return weft__output_file(config, path);
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

static weft_status write_config(const weft__opened_model *opened, const char *path) {
    const weft__config *c = &opened->config;
    const weft_gpt_options *o = weft__gpt_options_of(opened->model.module);
    const int64_t vocabulary = o->tokens, positions = o->context;
    const double dropout = c->model_dropout;
    const int64_t width = c->model_mlp_width; /* 0, which GPT-2 writes as null: four times n_embd */
    weft__json json;
    char *text;
    size_t bytes = 0;
    weft__json_build(&json, NULL);
    /* the token between the texts of GPT-2 */
    json_t *last = vocabulary == 50257 ? json_integer(50256) : json_null();
    json_t *object = json_pack(
        "{s:s, s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:b, s:O, "
        "s:o, s:b, s:b, s:s}",
        "written_by", "weft export", "architectures", "GPT2LMHeadModel", "model_type", "gpt2",
        "activation_function", activation_of(o->activation), "vocab_size", (json_int_t)vocabulary,
        "n_positions", (json_int_t)positions, "n_ctx", (json_int_t)positions, "n_embd",
        (json_int_t)c->model_width, "n_layer", (json_int_t)c->model_layers, "n_head",
        (json_int_t)c->model_heads, "n_inner", width ? json_integer((json_int_t)width) : json_null(),
        "attn_pdrop", dropout, "embd_pdrop", dropout, "resid_pdrop", dropout, "layer_norm_epsilon",
        c->model_norm_eps, "initializer_range", 0.02, "scale_attn_weights", 1, "bos_token_id", last,
        "eos_token_id", last, "tie_word_embeddings", !c->model_untied_head, "use_cache", 1, "torch_dtype",
        c->train_precision == WEFT__PRECISION_F64 ? "float64" : "float32");
    WEFT_TRY(weft__json_text(&json, object, JSON_INDENT(2), "config.json", &text, &bytes));
    weft_status status = weft_write_file(NULL, path, text, bytes);
    weft__free(NULL, text);
    return status;
}

weft_status weft__export_gpt2(weft__opened_model *opened, const char *path, const weft__output *config,
                              weft__exported *exported) {
    char folder[WEFT__EXPORT_PATH];
    WEFT_TRY(config_path(path, config, exported->files[1]));
    WEFT_TRY(weft_gpt_save(opened->model.module, path));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    if (!exported->files[1][0]) return WEFT_OK; /* a pipe cannot be read back */
    WEFT_TRY(write_config(opened, exported->files[1]));
    const size_t bytes = strlen(exported->files[1]) - strlen("config.json");
    snprintf(folder, sizeof folder, "%.*s", (int)bytes, exported->files[1]);
    const weft_status status =
        weft__export_check(opened->model.module, NULL, bytes ? folder : ".", path, "f32");
    if (status != WEFT_OK) unlink(exported->files[1]);
    return weft__export_keep(opened->model.ctx, status, path);
}
