/* Reads config.json of a published model. The first problem stays; later fields of a broken file are read as
 * their defaults. Must not know: names of tensors. Read next: names.c, load.c. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/data.h>

#include "base/option.h"
#include "base/text.h"
#include "io/json.h"
#include "published/fields.h"
#include "published/gguf.h"

#define CONFIG_MAX ((size_t)1 << 20) /* bytes of config.json */

/* ---- fields ---- */

void weft__field_fail(weft__fields *f, weft_status status, const char *name, const char *why) {
    if (f->status == WEFT_OK) f->status = weft__fail(f->ctx, status, "%s: %s: %s", f->path, name, why);
}

/* Returns a field, or NULL if it is missing or null. */
static const json_t *field(const weft__fields *f, const char *name) {
    const json_t *value = json_object_get(f->root, name);
    return value && !json_is_null(value) ? value : NULL;
}

/* The numbers that a field may have. */
static const struct {
    const char *name;
    double low, high;
} ranges[] = {
#define NUMBER(field, low, high) {#field, low, high},
#include "published/numbers.def"
};

/* Checks a number, and returns it; `otherwise` if it is missing or refused. */
static double in_range(weft__fields *f, const char *name, bool whole, double otherwise) {
    const json_t *value = field(f, name);
    double low = whole ? 1 : 0, high = whole ? INT32_MAX : DBL_MAX;
    char why[100];
    if (!value) return otherwise;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (strcmp(ranges[i].name, name) == 0) low = ranges[i].low, high = ranges[i].high;
    const double number = json_number_value(value);
    if ((whole ? json_is_integer(value) : json_is_number(value)) && number >= low && number <= high)
        return number;
    snprintf(why, sizeof why, "the value must be a %snumber from %.10g to %.10g", whole ? "whole " : "", low,
             high);
    weft__field_fail(f, WEFT_ERR_FORMAT, name, why);
    return otherwise;
}

int64_t weft__field_int(weft__fields *f, const char *name, int64_t otherwise) {
    if (!field(f, name) && otherwise < 0) weft__field_fail(f, WEFT_ERR_FORMAT, name, "the field is missing");
    return (int64_t)in_range(f, name, true, otherwise < 0 ? 1 : (double)otherwise);
}

double weft__field_number(weft__fields *f, const char *name, double otherwise) {
    const double number = in_range(f, name, false, otherwise);
    return field(f, name) ? weft__given(number) : number;
}

bool weft__field_bool(weft__fields *f, const char *name, bool otherwise) {
    const json_t *value = field(f, name);
    if (value && !json_is_boolean(value))
        weft__field_fail(f, WEFT_ERR_FORMAT, name, "the value must be true or false");
    return value ? json_is_true(value) : otherwise;
}

const char *weft__field_text(weft__fields *f, const char *name, const char *otherwise) {
    const json_t *value = field(f, name);
    if (value && !json_string_value(value))
        weft__field_fail(f, WEFT_ERR_FORMAT, name, "the value must be a text");
    return json_string_value(value) ? json_string_value(value) : otherwise;
}

weft_activation_kind weft__field_activation(weft__fields *f, const char *name, const char *otherwise) {
    static const struct {
        const char *name;
        weft_activation_kind kind;
    } known[] = {
        {"silu", WEFT_SILU},          {"swish", WEFT_SILU},          {"gelu", WEFT_GELU},
        {"gelu_new", WEFT_GELU_TANH}, {"gelu_fast", WEFT_GELU_TANH}, {"gelu_pytorch_tanh", WEFT_GELU_TANH},
        {"relu", WEFT_RELU}};
    const char *text = weft__field_text(f, name, otherwise);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, text) == 0) return known[i].kind;
    weft__field_fail(f, WEFT_ERR_FORMAT, name,
                     "Weft knows the activations silu, gelu, gelu_new, gelu_pytorch_tanh and relu");
    return WEFT_SILU;
}

/* ---- rotary positions ---- */

/* Reads {"rope_type": ..., "factor": ...}. Older files write "type". */
static void read_scaling(weft__fields *f, const json_t *scaling, int64_t context, weft_rotary_scaling *out) {
    weft__fields of = *f; /* the same file, another object */
    of.root = scaling;
    const char *type = weft__field_text(&of, "rope_type", weft__field_text(&of, "type", "default"));
    out->factor = weft__field_number(&of, "factor", 1);
    out->context = weft__field_int(&of, "original_max_position_embeddings", context);
    if (strcmp(type, "linear") == 0) {
        out->kind = WEFT_ROTARY_LINEAR;
    } else if (strcmp(type, "llama3") == 0) {
        out->kind = WEFT_ROTARY_LLAMA3;
        out->slow = weft__field_number(&of, "low_freq_factor", 1);
        out->fast = weft__field_number(&of, "high_freq_factor", 4);
        if (out->fast <= out->slow)
            weft__field_fail(&of, WEFT_ERR_FORMAT, "high_freq_factor", "it must be above low_freq_factor");
    } else if (strcmp(type, "yarn") == 0) {
        out->kind = WEFT_ROTARY_YARN;
        out->slow = weft__field_number(&of, "beta_slow", 1);
        out->fast = weft__field_number(&of, "beta_fast", 32);
        out->magnitude = weft__field_number(&of, "attention_factor", 0);
        if (field(&of, "mscale") || field(&of, "mscale_all_dim") || !weft__field_bool(&of, "truncate", true))
            weft__field_fail(&of, WEFT_ERR_FORMAT, "rope_scaling",
                             "Weft does not know mscale, mscale_all_dim and truncate");
    } else if (weft__is_longrope(type)) {
        out->kind = WEFT_ROTARY_LONG;
    } else if (strcmp(type, "default") != 0) {
        weft__field_fail(&of, WEFT_ERR_FORMAT, "rope_scaling",
                         "Weft knows the types default, linear, llama3, yarn and longrope");
    }
    f->status = of.status;
}

/* Reads one object of rope_parameters. */
static void read_rotation(weft__fields *f, const json_t *object, double base, int64_t context,
                          weft_rotary_options *out) {
    weft__fields of = *f;
    of.root = object;
    out->base = weft__field_number(&of, "rope_theta", base);
    f->share = weft__field_number(&of, "partial_rotary_factor", f->share);
    f->status = of.status;
    read_scaling(f, object, context, &out->scaling);
}

/* Reads rope_parameters, or the fields of older files: rope_theta, rope_scaling and rope_local_base_freq. */
void weft__field_rotation(weft__fields *f, double base, int64_t head_width, weft__published *p) {
    weft_gpt_options *o = &p->gpt;
    const json_t *all = field(f, "rope_parameters"), *scaling = field(f, "rope_scaling");
    const json_t *local = json_object_get(all, "sliding_attention");
    f->share = weft__field_number(f, "partial_rotary_factor", f->share);
    o->positions = WEFT_POSITION_ROTARY;
    if (local) {
        read_rotation(f, local, 10000, p->context, &o->window_rotation);
        read_rotation(f, json_object_get(all, "full_attention"), base, p->context, &o->rotation);
    } else if (json_is_object(all)) {
        read_rotation(f, all, base, p->context, &o->rotation);
    } else {
        o->rotation.base = weft__field_number(f, "rope_theta", base);
        if (json_is_object(scaling)) read_scaling(f, scaling, p->context, &o->rotation.scaling);
        o->window_rotation.base = weft__field_number(f, "rope_local_base_freq", 0);
    }
    o->rotation.channels = (int64_t)(f->share * (double)head_width);
    o->window_rotation.channels = o->rotation.channels;
    if (o->rotation.channels == 0) o->positions = WEFT_POSITION_NONE; /* as an option, 0 would be all */
    if (o->rotation.scaling.kind == WEFT_ROTARY_LONG)
        weft__field_longrope(f, json_is_object(all) ? all : scaling, p);
}

/* ---- sliding windows ---- */

static bool is_full(const json_t *type) {
    return json_is_string(type) && strcmp(json_string_value(type), "full_attention") == 0;
}

/* Sets the window of all layers, or of all but each N-th, from layer_types. */
static void read_layer_types(weft__fields *f, const json_t *types, int64_t window, weft_gpt_options *o) {
    const size_t count = json_array_size(types);
    size_t first = 0;
    while (first < count && !is_full(json_array_get(types, first))) first++;
    bool regular = count == (size_t)o->layers, any = first > 0;
    for (size_t i = 0; i < count; i++) {
        const bool full = is_full(json_array_get(types, i));
        regular = regular && full == (first < count && (i + 1) % (first + 1) == 0);
        any = any || !full;
    }
    if (!any) return;
    if (!regular)
        weft__field_fail(f, WEFT_ERR_FORMAT, "layer_types",
                         "Weft knows windows in all layers, or in all but each N-th");
    o->form.window = window;
    o->window_except = first < count ? (int64_t)first + 1 : 0;
}

static void read_window(weft__fields *f, int every, weft_gpt_options *o) {
    const int64_t window = weft__field_int(f, "sliding_window", 0);
    const json_t *types = field(f, "layer_types");
    if (window == 0 || !weft__field_bool(f, "use_sliding_window", true)) return;
    if (json_is_array(types)) {
        read_layer_types(f, types, window, o);
        return;
    }
    if (field(f, "max_window_layers"))
        weft__field_fail(f, WEFT_ERR_FORMAT, "max_window_layers",
                         "Weft knows windows in all layers, or in all but each N-th");
    o->form.window = window;
    o->window_except = weft__field_int(f, "sliding_window_pattern", every);
}

/* ---- readers ---- */

void weft__read_gpt2(weft__fields *f, weft__published *p) {
    weft_gpt_options *o = &p->gpt;
    p->context = weft__field_int(f, "n_positions", weft__field_int(f, "n_ctx", 1024));
    o->vocab = weft__field_int(f, "vocab_size", 50257);
    o->width = weft__field_int(f, "n_embd", 768);
    o->layers = weft__field_int(f, "n_layer", 12);
    o->heads = weft__field_int(f, "n_head", 12);
    o->hidden = weft__field_int(f, "n_inner", 0);
    o->eps = weft__field_number(f, "layer_norm_epsilon", 1e-5);
    o->activation = weft__field_activation(f, "activation_function", "gelu_new");
    o->untied_head = !weft__field_bool(f, "tie_word_embeddings", true);
    if (!weft__field_bool(f, "scale_attn_weights", true)) o->form.scale = 1;
    if (weft__field_bool(f, "scale_attn_by_inverse_layer_idx", false) ||
        weft__field_bool(f, "add_cross_attention", false))
        weft__field_fail(f, WEFT_ERR_FORMAT, "scale_attn_by_inverse_layer_idx, add_cross_attention",
                         "Weft computes only models where both are false");
}

void weft__read_neox(weft__fields *f, weft__published *p) {
    weft_gpt_options *o = &p->gpt;
    p->context = weft__field_int(f, "max_position_embeddings", 2048);
    o->vocab = weft__field_int(f, "vocab_size", -1);
    o->width = weft__field_int(f, "hidden_size", -1);
    o->layers = weft__field_int(f, "num_hidden_layers", -1);
    o->heads = weft__field_int(f, "num_attention_heads", -1);
    o->hidden = weft__field_int(f, "intermediate_size", -1);
    o->eps = weft__field_number(f, "layer_norm_eps", 1e-5);
    o->activation = weft__field_activation(f, "hidden_act", "gelu");
    o->untied_head = !weft__field_bool(f, "tie_word_embeddings", false);
    o->parallel = weft__field_bool(f, "use_parallel_residual", true);
    f->share = weft__field_number(f, "rotary_pct", 0.25);
    weft__field_rotation(f, weft__field_number(f, "rotary_emb_base", 10000), o->width / o->heads, p);
    if (!weft__field_bool(f, "attention_bias", true))
        weft__field_fail(f, WEFT_ERR_FORMAT, "attention_bias", "Weft computes only models where it is true");
}

static void read_gemma(weft__fields *f, weft__published *p) {
    weft_gpt_options *o = &p->gpt;
    o->branch_norms = o->norm_plus_one = true;
    o->embedding_scale = sqrt((double)o->width);
    o->form.scale = 1 / sqrt(weft__field_number(f, "query_pre_attn_scalar", 256));
    o->form.softcap = weft__field_number(f, "attn_logit_softcapping", 0);
    o->logit_softcap = weft__field_number(f, "final_logit_softcapping", 0);
    o->activation = weft__field_activation(f, "hidden_activation", "gelu_pytorch_tanh");
    if (weft__field_bool(f, "use_bidirectional_attention", false))
        weft__field_fail(f, WEFT_ERR_FORMAT, "use_bidirectional_attention",
                         "Weft computes only models where it is false");
}

void weft__read_llama(weft__fields *f, weft__published *p) {
    weft_gpt_options *o = &p->gpt;
    const int traits = p->architecture->traits;
    const bool gemma = traits & WEFT__GEMMA, gemma3 = gemma && traits & WEFT__QK_NORM;
    p->context = weft__field_int(f, "max_position_embeddings", 2048);
    o->vocab = weft__field_int(f, "vocab_size", -1);
    o->width = weft__field_int(f, "hidden_size", -1);
    o->layers = weft__field_int(f, "num_hidden_layers", -1);
    o->heads = weft__field_int(f, "num_attention_heads", -1);
    o->kv_heads = weft__field_int(f, "num_key_value_heads", o->heads);
    o->hidden = weft__field_int(f, "intermediate_size", -1);
    o->form.head_width = weft__field_int(f, "head_dim", o->width / o->heads);
    o->norm = WEFT_NORM_RMS;
    o->eps = weft__field_number(f, "rms_norm_eps", 1e-6);
    o->gated = o->no_bias = true;
    o->form.out_bias = weft__field_bool(f, "attention_bias", false);
    o->form.qkv_bias = traits & WEFT__QKV_BIAS || o->form.out_bias;
    o->mlp_bias = weft__field_bool(f, "mlp_bias", false);
    o->form.qk_norm = traits & WEFT__QK_NORM;
    o->untied_head = !weft__field_bool(f, "tie_word_embeddings", gemma);
    if (gemma)
        read_gemma(f, p);
    else
        o->activation = weft__field_activation(f, "hidden_act", "silu");
    if (traits & WEFT__WINDOW) read_window(f, gemma3 ? 6 : gemma ? 2 : 0, o);
    weft__field_rotation(f, gemma3 ? 1e6 : 10000, o->form.head_width, p);
}

/* ---- the table ---- */

static const weft__architecture architectures[] = {
#define ARCHITECTURE(type, reader, prefix, names, traits) {#type, prefix, names, traits, weft__read_##reader},
#include "published/architectures.def"
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const weft__architecture *weft__architecture_find(const char *type) {
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].type, type) == 0) return &architectures[i];
    return NULL;
}

static weft_status fail_unknown(const weft__fields *f, const char *type) {
    char list[512];
    weft_text text = weft__text(list, sizeof list);
    for (int i = 0; i < ARCHITECTURES; i++) weft__put(&text, "%s%s", i ? ", " : "", architectures[i].type);
    return weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: model_type: Weft does not know '%.60s'; it knows %s",
                      f->path, type, list);
}

weft_status weft__published_path(weft_context *ctx, const char *folder, const char *file, char out[4096]) {
    if (weft__join(out, 4096, folder, file)) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%.60s...: the path is too long", folder);
}

/* Finds the architecture, and lets its reader fill *p. */
static weft_status interpret(weft__fields *f, weft__published *p) {
    const char *type = weft__field_text(f, "model_type", "");
    if (f->status == WEFT_OK && !type[0])
        weft__field_fail(f, WEFT_ERR_FORMAT, "model_type", "the field is missing: is this file of a model?");
    if (f->status != WEFT_OK) return f->status;
    p->architecture = weft__architecture_find(type);
    if (!p->architecture) return fail_unknown(f, type);
    p->names = p->architecture->names;
    p->prefix = p->architecture->prefix;
    p->architecture->read(f, p);
    return f->status;
}

bool weft__is_gguf(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* Reads a text of JSON. */
static weft_status read_text(weft__fields *f, const char *text, size_t bytes, weft__published *p) {
    static const weft__json_limits limits = {.depth = 16, .values = 100000, .items = 100000};
    char problem[256];
    weft__json json;
    json_t *root;
    weft__json_open(&json, f->ctx);
    weft_status status = weft__json_parse(&json, text, bytes, &limits, problem, &root);
    f->root = root;
    if (status == WEFT_OK)
        status = interpret(f, p);
    else if (status == WEFT_ERR_FORMAT)
        status = weft__fail(f->ctx, status, "%s: %s", f->path, problem);
    weft__json_close(&json);
    return status;
}

static weft_status read_gguf(weft__fields *f, const char *path, weft__published *p) {
    weft__gguf *gguf;
    char *text;
    size_t bytes = 0;
    unsigned names = 0;
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "%.60s...: the path is too long", path);
    WEFT_TRY(weft__gguf_open(f->ctx, path, &gguf));
    weft_status status = weft__gguf_config(f->ctx, path, gguf, &names, &text, &bytes);
    weft__gguf_close(gguf);
    if (status != WEFT_OK) return status;
    status = read_text(f, text, bytes, p);
    weft__free(f->ctx, text);
    p->names = names;
    p->prefix = "";
    return status;
}

weft_status weft__published_read(weft_context *ctx, const char *path, weft__published *p) {
    weft__fields f = {.ctx = ctx, .share = 1};
    weft_bytes file;
    memset(p, 0, sizeof *p);
    if (weft__is_gguf(path)) return read_gguf(&f, path, p);
    WEFT_TRY(weft__published_path(ctx, path, "config.json", f.path));
    WEFT_TRY(weft_read_file(ctx, f.path, CONFIG_MAX, &file));
    const weft_status status = read_text(&f, (const char *)file.data, file.size, p);
    weft_bytes_free(ctx, &file);
    return status == WEFT_OK ? weft__published_untie(ctx, path, p) : status;
}
