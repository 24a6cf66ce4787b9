/* Writes the metadata of a GGUF file as config.json, which the readers of config.c read. Must not know:
 * tensors' values. Read next: config.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/json.h"
#include "published/gguf.h"
#include "published/published.h"

static const weft__gguf_architecture architectures[] = {
#define GGUF_ARCHITECTURE(name, type, class, names) {name, type, class, names},
#include "published/architectures.def"
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const weft__gguf_architecture *weft__gguf_architecture_of(const char *type) {
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].type, type) == 0) return &architectures[i];
    return NULL;
}

void weft__gguf_types(char *out, size_t bytes) {
    weft_text text = weft__text(out, bytes);
    for (int i = 0; i < ARCHITECTURES; i++) weft__put(&text, "%s%s", i ? ", " : "", architectures[i].type);
}

/* Keys that follow the name of the architecture and a point, and the fields that they become. */
static const struct {
    const char *key, *field, *of_gpt2;
} fields[] = {
    {"context_length", "max_position_embeddings", "n_positions"},
    {"embedding_length", "hidden_size", "n_embd"},
    {"block_count", "num_hidden_layers", "n_layer"},
    {"feed_forward_length", "intermediate_size", "n_inner"},
    {"attention.head_count", "num_attention_heads", "n_head"},
    {"attention.head_count_kv", "num_key_value_heads", NULL},
    {"attention.key_length", "head_dim", NULL},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", NULL},
    {"attention.layer_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon"},
    {"attention.sliding_window", "sliding_window", NULL},
    {"rope.freq_base", "rope_theta", NULL},
    {"rope.freq_base_swa", "rope_local_base_freq", NULL},
    {"attn_logit_softcapping", "attn_logit_softcapping", NULL},
    {"final_logit_softcapping", "final_logit_softcapping", NULL},
    {"vocab_size", "vocab_size", "vocab_size"},
};

/* Finds ARCHITECTURE.key. */
static bool value_of(const weft__gguf *g, const char *architecture, const char *key,
                     weft__gguf_value *value) {
    char name[128];
    const int n = snprintf(name, sizeof name, "%s.%s", architecture, key);
    return n > 0 && (size_t)n < sizeof name && weft__gguf_find(g, name, value) && !value->array;
}

/* The same as a number. */
static bool number_of(const weft__gguf *g, const char *architecture, const char *key, double *number) {
    weft__gguf_value value;
    return value_of(g, architecture, key, &value) && weft__gguf_number(&value, number);
}

static json_t *json_count(double number) {
    return fabs(number) < 1e15 ? json_integer((json_int_t)number) : json_real(number);
}

/* Copies ARCHITECTURE.key, if the file has it, to a field: transformers tells 8 from 8.0. */
static void copy_number(const weft__gguf *g, const char *architecture, const char *key, json_t *object,
                        const char *field) {
    double number;
    weft__gguf_value value;
    if (!value_of(g, architecture, key, &value)) return;
    const bool real = value.kind == WEFT__GGUF_F32 || value.kind == WEFT__GGUF_F64;
    if (weft__gguf_number(&value, &number))
        json_object_set_new(object, field, real ? json_real(number) : json_count(number));
}

static const weft__gguf_tensor *tensor_of(const weft__gguf *g, const char *name) {
    for (size_t i = 0; i < weft__gguf_count(g); i++)
        if (strcmp(weft__gguf_tensor_at(g, i)->name, name) == 0) return weft__gguf_tensor_at(g, i);
    return NULL;
}

/* The numbers of a tensor as a list. */
static json_t *list_of(const weft__gguf_tensor *t) {
    float values[2 * WEFT__LONGROPE_MOST];
    json_t *list = json_array();
    if (t->rank != 1 || t->shape[0] > (int64_t)(sizeof values / sizeof *values) ||
        strcmp(t->type->name, "F32") != 0)
        return list; /* whose length the reader of config.json refuses */
    weft__block_unpack(t->type, t->data, t->shape[0], values);
    for (int64_t i = 0; i < t->shape[0]; i++) json_array_append_new(list, json_real((double)values[i]));
    return list;
}

/* LongRoPE: the file has lists of divisors for short and for long texts. */
static void put_longrope(const weft__gguf_tensor *is_short, const weft__gguf_tensor *is_long,
                         double attention_factor, json_t *config) {
    json_t *scaling = json_pack("{s:s, s:o, s:o}", "rope_type", "longrope", "short_factor", list_of(is_short),
                                "long_factor", list_of(is_long));
    if (attention_factor > 0) json_object_set_new(scaling, "attention_factor", json_real(attention_factor));
    json_object_set_new(config, "rope_scaling", scaling);
}

/* Whether the divisors are those of the published models of Llama 3.1 and later: slow 1, fast 4, texts of
 * 8192 tokens, and the largest divisor as factor. */
static bool is_llama3(const weft__gguf_tensor *divisors, double base, double *factor) {
    float values[WEFT__GGUF_DIVISORS];
    const int64_t n = divisors->shape[0];
    if (divisors->rank != 1 || n > WEFT__GGUF_DIVISORS || strcmp(divisors->type->name, "F32") != 0)
        return false;
    weft__block_unpack(divisors->type, divisors->data, n, values);
    *factor = 1;
    for (int64_t i = 0; i < n; i++) *factor = fmax(*factor, (double)values[i]);
    for (int64_t i = 0; i < n; i++) {
        const double rotations = 8192 / (2 * acos(-1.0)) * pow(base, -(double)i / (double)n);
        const double kept = fmin(fmax((rotations - 1) / 3, 0), 1);
        if (!(fabs(1 / (double)values[i] - (kept + (1 - kept) / *factor)) <= 1e-4)) return false;
    }
    return true;
}

/* Llama 3: the file has the divisor of each rate, but not the numbers that they follow from. Divisors that
 * are not the published ones are LongRoPE's, for texts of any length. */
static void put_rates(const weft__gguf_tensor *divisors, double base, json_t *config) {
    double factor;
    if (!is_llama3(divisors, base, &factor)) {
        put_longrope(divisors, divisors, 1, config);
        return;
    }
    json_object_set_new(config, "rope_scaling",
                        json_pack("{s:s, s:f, s:f, s:f, s:i}", "rope_type", "llama3", "factor", factor,
                                  "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                                  "original_max_position_embeddings", 8192));
}

/* Sets how positions are scaled. */
static void put_scaling(const weft__gguf *g, const char *architecture, json_t *config) {
    char name[128];
    const char *text;
    size_t bytes;
    double number, base = 10000;
    weft__gguf_value value;
    const weft__gguf_tensor *divisors = tensor_of(g, "rope_freqs.weight"),
                            *is_short = tensor_of(g, "rope_factors_short.weight"),
                            *is_long = tensor_of(g, "rope_factors_long.weight");
    number_of(g, architecture, "rope.freq_base", &base);
    if (divisors) {
        put_rates(divisors, base, config);
        return;
    }
    if (is_short && is_long) {
        if (!number_of(g, architecture, "rope.scaling.attn_factor", &number)) number = 0;
        put_longrope(is_short, is_long, number, config);
        copy_number(g, architecture, "rope.scaling.original_context_length", config,
                    "original_max_position_embeddings");
        return;
    }
    snprintf(name, sizeof name, "%.60s.rope.scaling.type", architecture);
    if (!weft__gguf_find(g, name, &value) || !weft__gguf_text(&value, &text, &bytes)) return;
    if (bytes == 4 && memcmp(text, "none", 4) == 0) return;
    json_t *scaling = json_pack("{s:s#}", "rope_type", text, (int)weft__smaller((int64_t)bytes, 32));
    if (number_of(g, architecture, "rope.scaling.factor", &number))
        json_object_set_new(scaling, "factor", json_real(number)); /* transformers wants a float */
    copy_number(g, architecture, "rope.scaling.original_context_length", scaling,
                "original_max_position_embeddings");
    json_object_set_new(config, "rope_scaling", scaling);
}

/* Sets the ids of special tokens: the defaults of transformers are those of other models. */
static void put_token_ids(const weft__gguf *g, json_t *config) {
    static const char *const fields_of_ids[][2] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                                   {"tokenizer.ggml.eos_token_id", "eos_token_id"},
                                                   {"tokenizer.ggml.padding_token_id", "pad_token_id"}};
    weft__gguf_value value;
    double id;
    for (size_t i = 0; i < sizeof fields_of_ids / sizeof *fields_of_ids; i++) {
        const bool known = weft__gguf_find(g, fields_of_ids[i][0], &value) && weft__gguf_number(&value, &id);
        json_object_set_new(config, fields_of_ids[i][1], known ? json_count(id) : json_null());
    }
}

/* Sets all fields of the configuration. */
static void put_fields(const weft__gguf *g, int which, json_t *config) {
    const char *architecture = architectures[which].name;
    const bool gpt2 = strcmp(architectures[which].type, "gpt2") == 0;
    const weft__gguf_tensor *table = tensor_of(g, "token_embd.weight");
    double number, width = 0, heads = 0, rotated;
    json_object_set_new(config, "architectures", json_pack("[s]", architectures[which].class_name));
    json_object_set_new(config, "model_type", json_string(architectures[which].type));
    put_token_ids(g, config);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *field = gpt2 ? fields[i].of_gpt2 : fields[i].field;
        if (field) copy_number(g, architecture, fields[i].key, config, field);
    }
    if (table && table->rank == 2) json_object_set_new(config, "vocab_size", json_integer(table->shape[0]));
    json_object_set_new(config, "tie_word_embeddings", json_boolean(!tensor_of(g, "output.weight")));
    if (gpt2) return;
    json_object_set_new(config, "attention_bias",
                        json_boolean(tensor_of(g, "blk.0.attn_output.bias") != NULL));
    json_object_set_new(config, "mlp_bias", json_boolean(tensor_of(g, "blk.0.ffn_gate.bias") != NULL));
    if (weft__architecture_find(architectures[which].type)->traits & WEFT__GEMMA)
        weft__gguf_gemma_config(config);
    number_of(g, architecture, "embedding_length", &width);
    number_of(g, architecture, "attention.head_count", &heads);
    if (number_of(g, architecture, "attention.key_length", &number)) width = number * heads;
    if (number_of(g, architecture, "rope.dimension_count", &rotated) && heads > 0 && width > 0)
        json_object_set_new(config, "partial_rotary_factor", json_real(fmin(rotated * heads / width, 1)));
    put_scaling(g, architecture, config);
}

static weft_status fail_architecture(weft_context *ctx, const char *path, const char *name) {
    char list[512];
    weft_text text = weft__text(list, sizeof list);
    for (int i = 0; i < ARCHITECTURES; i++) {
        bool listed = false;
        for (int j = 0; j < i; j++)
            listed = listed || strcmp(architectures[j].name, architectures[i].name) == 0;
        if (!listed) weft__put(&text, "%s%s", i ? ", " : "", architectures[i].name);
    }
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: general.architecture: Weft does not know '%.60s' in GGUF files; it knows %s", path,
                      name, list);
}

/* Finds the architecture. */
static weft_status find_architecture(weft_context *ctx, const char *path, const weft__gguf *g, int *which) {
    weft__gguf_value value;
    const char *text;
    char name[64];
    size_t bytes;
    if (!weft__gguf_find(g, "general.architecture", &value) || !weft__gguf_text(&value, &text, &bytes))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: general.architecture: the key is missing", path);
    snprintf(name, sizeof name, "%.*s", (int)weft__smaller((int64_t)bytes, 63), text);
    for (*which = 0; *which < ARCHITECTURES; ++*which)
        if (strcmp(architectures[*which].name, name) == 0) return WEFT_OK;
    return fail_architecture(ctx, path, name);
}

weft_status weft__gguf_config(weft_context *ctx, const char *path, const weft__gguf *g, unsigned *names,
                              char **text, size_t *bytes) {
    weft__json json;
    int which;
    WEFT_TRY(find_architecture(ctx, path, g, &which));
    *names = architectures[which].names;
    weft__json_build(&json, ctx);
    json_t *config = json_object();
    put_fields(g, which, config);
    return weft__json_text(&json, config, JSON_INDENT(2), "config.json", text, bytes);
}
