/* What GGUF files leave to the reader of a Gemma, as llama.cpp reads them: the factor of the scores, the
 * layers with windows, soft caps. Must not know: other architectures. Read next: gguf_config.c,
 * gguf_describe.c. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "nn/module.h"
#include "published/gguf.h"
#include "published/published.h"

enum { GEMMA2_EVERY = 2, GEMMA3_EVERY = 6 }; /* each layer of this number has no window */

/* The largest models divide the scores by the root of width / heads, others by that of a head's channels. */
static int64_t scalar_of(bool third, int64_t layers, int64_t width, int64_t heads, int64_t head_width) {
    return layers == (third ? 62 : 46) ? width / heads : head_width;
}

static int64_t count_of(const json_t *config, const char *field, int64_t otherwise) {
    const json_int_t value = json_integer_value(json_object_get(config, field));
    return value > 0 ? (int64_t)value : otherwise;
}

static void set_default(json_t *config, const char *field, double value) {
    if (!json_object_get(config, field)) json_object_set_new(config, field, json_real(value));
}

void weft__gguf_gemma_config(json_t *config) {
    const bool third = strcmp(json_string_value(json_object_get(config, "model_type")), "gemma3_text") == 0;
    const int64_t width = count_of(config, "hidden_size", 1),
                  heads = count_of(config, "num_attention_heads", 1);
    const int64_t scalar = scalar_of(third, count_of(config, "num_hidden_layers", 0), width, heads,
                                     count_of(config, "head_dim", width / heads));
    json_object_set_new(config, "query_pre_attn_scalar", json_integer(scalar));
    if (third) {
        set_default(config, "rope_local_base_freq", 10000);
    } else {
        set_default(config, "attn_logit_softcapping", 50);
        set_default(config, "final_logit_softcapping", 30);
        if (!json_object_get(config, "sliding_window"))
            json_object_set_new(config, "sliding_window", json_integer(4096));
    }
}

const char *weft__gguf_gemma_lacks(const weft__published *p) {
    const weft_gpt_options *o = &p->gpt;
    const bool third = p->architecture->traits & WEFT__QK_NORM;
    const int64_t head_width = weft__head_width(&o->form, o->width, o->heads);
    const double scale = 1 / sqrt((double)scalar_of(third, o->layers, o->width, o->heads, head_width));
    if (fabs(o->form.scale - scale) > 1e-6 * scale) return "this query_pre_attn_scalar";
    if (o->form.window > 0 && o->window_except != (third ? GEMMA3_EVERY : GEMMA2_EVERY))
        return "windows in these layers";
    if (!third && o->untied_head) return "a head of its own";
    if (third != (o->form.softcap == 0)) return third ? "soft caps of scores" : "scores without a soft cap";
    if (third && o->form.window > 0 && o->window_rotation.scaling.kind != WEFT_ROTARY_PLAIN)
        return "scaled positions in layers with windows";
    return NULL;
}
