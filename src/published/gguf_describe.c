/* Writes what config.json says of a model as the metadata of a GGUF file: the inverse of gguf_config.c. Must
 * not know: tokenizers, tensors' values. Read next: gguf_vocabulary.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "nn/module.h"
#include "published/gguf_write.h"
#include "published/published.h"

typedef struct describing {
    weft_context *ctx;
    const char *path;
    const weft__published *p;
    const weft__gguf_architecture *architecture;
    weft__gguf_header *h;
} describing;

static weft_status describe_fail(const describing *d, const char *what) {
    return weft__fail(d->ctx, WEFT_ERR_FORMAT, "%s: GGUF files of the architecture %s cannot hold %s",
                      d->path, d->architecture->name, what);
}

/* ---- keys that begin with the name of the architecture ---- */

static const char *gguf_key_of(const describing *d, const char *key, char out[128]) {
    snprintf(out, 128, "%s.%s", d->architecture->name, key);
    return out;
}

static void put_count(const describing *d, const char *key, int64_t value) {
    char name[128];
    weft__gguf_put_u32(d->h, gguf_key_of(d, key, name), (uint32_t)value);
}

static void put_real(const describing *d, const char *key, double value) {
    char name[128];
    weft__gguf_put_f32(d->h, gguf_key_of(d, key, name), value);
}

/* ---- positions ---- */

/* Whether a model of Llama's architecture has the same divisors for texts of any length, as rope_freqs.weight
 * says it. */
static bool are_rates(const weft__published *p) {
    const weft__gguf_architecture *a = weft__gguf_architecture_of(p->architecture->type);
    return a && a->names & GGUF_TURNED && p->gpt.rotation.scaling.magnitude == 1 &&
           memcmp(p->longrope[WEFT__LONGROPE_SHORT], p->longrope[WEFT__LONGROPE_LONG],
                  (size_t)weft__longrope_count(p) * sizeof(float)) == 0;
}

static weft_status put_scaling(const describing *d) {
    const weft_rotary_scaling *s = &d->p->gpt.rotation.scaling;
    const bool yarn = s->kind == WEFT_ROTARY_YARN, is_phi3 = strcmp(d->architecture->name, "phi3") == 0;
    char name[128];
    if (s->kind == WEFT_ROTARY_LLAMA3 && strcmp(d->architecture->name, "llama") != 0)
        return describe_fail(d, "positions scaled as in Llama 3");
    if (yarn && (s->slow != 1 || s->fast != 32 || s->magnitude != 0))
        return describe_fail(d, "YaRN with beta_slow, beta_fast or attention_factor");
    if (s->kind == WEFT_ROTARY_LONG && !is_phi3 && !are_rates(d->p))
        return describe_fail(d, "positions scaled as in LongRoPE");
    if (s->kind == WEFT_ROTARY_LONG && is_phi3) {
        put_count(d, "rope.scaling.original_context_length", s->context);
        put_real(d, "rope.scaling.attn_factor", s->magnitude);
    }
    if (!yarn && s->kind != WEFT_ROTARY_LINEAR) return WEFT_OK; /* the others' divisors are tensors */
    const char *type = yarn ? "yarn" : "linear";
    weft__gguf_put_text(d->h, gguf_key_of(d, "rope.scaling.type", name), type, strlen(type));
    put_real(d, "rope.scaling.factor", s->factor);
    if (yarn) put_count(d, "rope.scaling.original_context_length", s->context);
    return WEFT_OK;
}

static weft_status put_rotation(const describing *d) {
    const weft_gpt_options *o = &d->p->gpt;
    const int64_t width = weft__head_width(&o->form, o->width, o->heads);
    const int64_t channels = o->rotation.channels > 0 ? o->rotation.channels : width;
    if (d->architecture->names & GGUF_TURNED && channels != width)
        return describe_fail(d, "heads of which only a part is rotated");
    put_count(d, "rope.dimension_count", channels);
    put_real(d, "rope.freq_base", o->rotation.base > 0 ? o->rotation.base : 10000);
    return put_scaling(d);
}

/* Llama 3's divisors, which follow from a few numbers. */
static int64_t llama3_divisors(const weft__published *p, float *out) {
    const weft_rotary_options *r = &p->gpt.rotation;
    const int64_t width = weft__head_width(&p->gpt.form, p->gpt.width, p->gpt.heads);
    const int64_t count = (r->channels > 0 ? r->channels : width) / 2;
    const weft_rotary_scaling *s = &r->scaling;
    if (s->kind != WEFT_ROTARY_LLAMA3 || count > WEFT__GGUF_DIVISORS) return 0;
    for (int64_t i = 0; i < count; i++) {
        const double rotations =
            (double)s->context / (2 * acos(-1.0)) * pow(r->base, -(double)i / (double)count);
        const double kept = fmin(fmax((rotations - s->slow) / (s->fast - s->slow), 0), 1);
        out[i] = (float)(1 / (kept + (1 - kept) / s->factor));
    }
    return count;
}

int weft__gguf_divisors(const weft__published *p, weft__gguf_divisor_list out[2]) {
    static const char *const names[WEFT__LONGROPE_LISTS] = {"rope_factors_short.weight",
                                                            "rope_factors_long.weight"};
    const int64_t count = weft__longrope_count(p);
    const bool rates = count && are_rates(p);
    for (int i = 0; count && i < WEFT__LONGROPE_LISTS; i++) {
        out[i].name = rates ? "rope_freqs.weight" : names[i];
        out[i].count = count;
        memcpy(out[i].values, p->longrope[i], (size_t)count * sizeof(float));
    }
    if (count) return rates ? 1 : WEFT__LONGROPE_LISTS;
    out[0].name = "rope_freqs.weight";
    out[0].count = llama3_divisors(p, out[0].values);
    return out[0].count > 0;
}

/* ---- the model ---- */

static bool is_gemma(const describing *d) { return d->p->architecture->traits & WEFT__GEMMA; }

/* Architectures of GGUF files fix what config.json may choose. */
static weft_status check_choices(const describing *d) {
    const weft_gpt_options *o = &d->p->gpt;
    const weft_activation_kind usual = o->gated && !is_gemma(d) ? WEFT_SILU : WEFT_GELU_TANH;
    if (o->activation != usual && o->activation != WEFT_ACTIVATION_DEFAULT)
        return describe_fail(d, "the activation of this model's MLP");
    const bool biases = o->form.out_bias || o->mlp_bias, llama = d->architecture->names & GGUF_TURNED;
    const char *lacks = biases && !llama     ? "biases of projections"
                        : is_gemma(d)        ? weft__gguf_gemma_lacks(d->p)
                        : o->form.scale != 0 ? "queries and keys that are not scaled"
                                             : NULL;
    return lacks ? describe_fail(d, lacks) : WEFT_OK;
}

/* Whether the architecture has a key for sliding windows. */
static bool knows_windows(const describing *d) {
    return is_gemma(d) || strcmp(d->architecture->name, "phi3") == 0;
}

/* Soft caps, and the rotation in layers with windows. */
static void put_gemma(const describing *d) {
    const weft_gpt_options *o = &d->p->gpt;
    if (o->form.softcap > 0) put_real(d, "attn_logit_softcapping", o->form.softcap);
    if (o->form.softcap > 0 || o->logit_softcap > 0)
        put_real(d, "final_logit_softcapping",
                 weft__value_or(o->logit_softcap, 0)); /* llama.cpp's default is no 0 */
    if (o->window_rotation.base > 0) put_real(d, "rope.freq_base_swa", o->window_rotation.base);
}

/* The tokens for which the file's architecture computes what the model does: a window does not change texts
 * that are not longer. */
static int64_t usable_context(const describing *d) {
    const int64_t window = d->p->gpt.form.window;
    return window > 0 && !knows_windows(d) ? weft__smaller(d->p->context, window) : d->p->context;
}

static weft_status put_model(const describing *d) {
    const weft_gpt_options *o = &d->p->gpt;
    const bool rotary = o->positions == WEFT_POSITION_ROTARY;
    put_count(d, "context_length", usable_context(d));
    put_count(d, "embedding_length", o->width);
    put_count(d, "block_count", o->layers);
    put_count(d, "feed_forward_length", o->hidden > 0 ? o->hidden : 4 * o->width);
    put_count(d, "attention.head_count", o->heads);
    put_count(d, "attention.head_count_kv", o->kv_heads > 0 ? o->kv_heads : o->heads);
    if (o->norm == WEFT_NORM_RMS)
        put_real(d, "attention.layer_norm_rms_epsilon", weft__value_or(o->eps, 1e-5));
    else
        put_real(d, "attention.layer_norm_epsilon", weft__value_or(o->eps, 1e-5));
    put_count(d, "vocab_size", o->vocab);
    if (o->form.window > 0 && knows_windows(d)) put_count(d, "attention.sliding_window", o->form.window);
    if (is_gemma(d)) put_gemma(d);
    if (!rotary) return WEFT_OK;
    const int64_t width = weft__head_width(&o->form, o->width, o->heads);
    put_count(d, "attention.key_length", width);
    put_count(d, "attention.value_length", width);
    return put_rotation(d);
}

/* The last part of a path, without ".gguf". */
static const char *base_name(const char *path, size_t *bytes) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    *bytes = end - begin;
    if (*bytes > 5 && strncmp(path + end - 5, ".gguf", 5) == 0) *bytes -= 5;
    return path + begin;
}

weft_status weft__gguf_describe(weft_context *ctx, const char *path, const weft__published *p,
                                const weft__gguf_architecture *architecture, weft__gguf_header *header) {
    const describing d = {ctx, path, p, architecture, header};
    size_t bytes;
    const char *name = base_name(path, &bytes);
    WEFT_TRY(check_choices(&d));
    weft__gguf_put_text(header, "general.architecture", architecture->name, strlen(architecture->name));
    weft__gguf_put_text(header, "general.type", "model", 5);
    weft__gguf_put_text(header, "general.name", name, bytes);
    return put_model(&d);
}
