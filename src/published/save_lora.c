/* Writes the adapters of weft_gpt_lora as the Python package peft does. Must not know: training. Read next:
 * nn/lora.c, save.c. */
#include <string.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "nn/module.h"
#include "published/published.h"

enum { NAME_BYTES = 192 };

static const char prefix[] = "base_model.model.";

typedef struct adapters {
    weft_named_tensor *list;
    char *names; /* [count] of NAME_BYTES each */
    size_t count;
    int64_t blocks;  /* of the model */
    weft__lora form; /* of the last adapter; all have the same rank, scale and dropout */
    bool transposed; /* the published weights are (in, out) */
} adapters;

weft_status weft__lora_placed(const weft__published *p, weft_module *model, const weft_module *adapter,
                              weft__placed *out) {
    weft_parameter_info weight;
    weft__placed placed[WEFT__PARTS];
    const weft__lora form = weft__lora_form(adapter);
    const bool known = weft_parameter_find(model, adapter->parent->parameters[0].full, &weight);
    for (int i = 0, n = known ? weft__published_names(p, &weight, placed) : 0; i < n; i++)
        if (placed[i].first == form.first && placed[i].rows == form.rows) {
            *out = placed[i];
            return WEFT_OK;
        }
    return weft__fail(
        model->ctx, WEFT_ERR_UNSUPPORTED,
        "%s: a model of type %s keeps the weights of this target together with others in one "
        "tensor, to which this format cannot add the adapter: use --to huggingface or --to gguf, "
        "which write merged weights, or other targets",
        adapter->path, p->architecture->type);
}

/* Writes the name of the layer to which an adapter adds. */
static weft_status name_layer(const weft__published *p, weft_module *model, const weft_module *adapter,
                              adapters *a, char layer[NAME_BYTES]) {
    weft__placed placed;
    WEFT_TRY(weft__lora_placed(p, model, adapter, &placed));
    a->form = weft__lora_form(adapter);
    a->transposed = placed.part == WEFT__PART_TRANSPOSED;
    weft_text text = weft__text(layer, NAME_BYTES);
    weft__put(&text, "%s%.*s", p->prefix, (int)(strlen(placed.name) - strlen(".weight")), placed.name);
    return WEFT_OK;
}

/* Lists the tensors of all adapters under peft's names. */
static weft_status list_adapters(const weft__published *p, weft_module *model, adapters *a) {
    weft_parameter_info parameter;
    for (size_t i = 0; weft_parameter_get(model, i, &parameter); i++) {
        char layer[NAME_BYTES], *name = a->names + a->count * NAME_BYTES;
        if (!weft__published_added(&parameter)) continue;
        WEFT_TRY(name_layer(p, model, parameter.module->parent, a, layer));
        weft_text text = weft__text(name, NAME_BYTES);
        weft__put(&text, "%s%s.%s.weight", prefix, layer, parameter.module->name);
        a->list[a->count++] = (weft_named_tensor){.name = name, .tensor = parameter.tensor};
    }
    if (a->count > 0) return WEFT_OK;
    return weft__fail(model->ctx, WEFT_ERR_ARGUMENT, "weft_published_save_lora: the model has no adapters");
}

/* The layer of tensor i without the prefix, and the last part of its name. */
static const char *layer_of(const adapters *a, size_t i, char layer[NAME_BYTES]) {
    snprintf(layer, NAME_BYTES, "%s", a->names + i * NAME_BYTES + strlen(prefix));
    *strstr(layer, ".lora_") = '\0';
    const char *last = strrchr(layer, '.');
    return last ? last + 1 : layer;
}

/* Lists the layers that have adapters. If all layers of a name have them, this name is enough. */
static json_t *list_targets(const adapters *a) {
    json_t *targets = json_array();
    char layer[NAME_BYTES], other[NAME_BYTES];
    for (size_t i = 0; i < a->count; i += 2) { /* each adapter has two tensors */
        const char *last = layer_of(a, i, layer);
        int64_t alike = 0, before = 0;
        for (size_t k = 0; k < a->count; k += 2) {
            const bool same = strcmp(layer_of(a, k, other), last) == 0;
            alike += same;
            before += same && k < i;
        }
        if (alike < a->blocks)
            json_array_append_new(targets, json_string(layer));
        else if (before == 0)
            json_array_append_new(targets, json_string(last));
    }
    return targets;
}

/* Writes adapter_config.json. */
static weft_status save_config(weft_context *ctx, const adapters *a, const char *base, const char *to) {
    char path[4096], *text;
    size_t bytes = 0;
    weft__json json;
    WEFT_TRY(weft__published_path(ctx, to, "adapter_config.json", path));
    weft__json_build(&json, ctx);
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:f, s:f, s:o}", "peft_type", "LORA",
                             "task_type", "CAUSAL_LM", "base_model_name_or_path", base, "bias", "none",
                             "fan_in_fan_out", (int)a->transposed, "inference_mode", 1, "r",
                             (json_int_t)a->form.rank, "lora_alpha", a->form.scale * (double)a->form.rank,
                             "lora_dropout", a->form.dropout, "target_modules", list_targets(a));
    WEFT_TRY(weft__json_text(&json, root, JSON_INDENT(2), "adapter_config.json", &text, &bytes));
    const weft_status status = weft_write_file(ctx, path, text, bytes);
    weft__free(ctx, text);
    return status;
}

static weft_status save_all(weft_module *model, const weft__published *p, const char *base, const char *to,
                            adapters *a) {
    static const weft_metadata metadata = {"format", "pt"};
    weft_context *ctx = model->ctx;
    weft_entry *entries = NULL;
    char path[4096];
    WEFT_TRY(list_adapters(p, model, a));
    WEFT_TRY(weft_make_folder(ctx, to));
    WEFT_TRY(weft__published_path(ctx, to, "adapter_model.safetensors", path));
    weft_status status = weft_entries_new(ctx, a->list, a->count, &entries);
    if (status == WEFT_OK) status = weft_safetensors_write(ctx, path, entries, a->count, &metadata, 1);
    weft_entries_free(ctx, entries, a->count);
    return status == WEFT_OK ? save_config(ctx, a, base, to) : status;
}

weft_status weft_published_save_lora(weft_module *model, const char *from, const char *base, const char *to) {
    WEFT_NEED(NULL, model);
    weft_context *ctx = model->ctx;
    WEFT_NEED(ctx, from);
    WEFT_NEED(ctx, to);
    weft__published p;
    WEFT_TRY(weft_module_status(model));
    WEFT_TRY(weft__published_read(ctx, from, &p));
    WEFT_TRY(weft_module_prepare(model));
    const size_t most = weft_parameter_count(model) + 1;
    adapters a = {.list = weft__array(ctx, most, sizeof *a.list),
                  .names = weft__array(ctx, most, NAME_BYTES),
                  .blocks = weft__gpt_options_of(model) ? weft__gpt_options_of(model)->layers : 0};
    const weft_status status = a.list && a.names ? save_all(model, &p, base ? base : from, to, &a)
                                                 : weft__fail_oom(ctx, most * NAME_BYTES, "names");
    weft__free(ctx, a.list);
    weft__free(ctx, a.names);
    return status;
}
