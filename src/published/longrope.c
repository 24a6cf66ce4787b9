/* LongRoPE (Ding et al., "LongRoPE: Extending LLM context window beyond 2 million tokens", 2024), as in
 * Phi 3 with long contexts. Each rate of the rotary positions has a divisor of its own. There is one list of
 * divisors for texts as in the training, and one for longer ones. transformers chooses by the length of each
 * text. Weft, like llama.cpp, chooses by the context of the module, so that a cache has keys of one kind.
 * Must not know: modules, names of tensors. Read next: config.c. */
#include <math.h>
#include <string.h>

#include "published/fields.h"

static const char *const list_names[WEFT__LONGROPE_LISTS] = {"short_factor", "long_factor"};

bool weft__is_longrope(const char *type) {
    return strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0; /* the name in older files */
}

/* Reads one list of divisors. */
static void read_list(weft__fields *f, const json_t *scaling, int which, int64_t count, float *out) {
    const json_t *list = json_object_get(scaling, list_names[which]);
    bool good = json_array_size(list) == (size_t)count;
    for (int64_t i = 0; good && i < count; i++) {
        const double divisor = json_number_value(json_array_get(list, (size_t)i));
        good = divisor > 0 && divisor < 1e30;
        out[i] = good ? (float)divisor : 1.0F;
    }
    if (!good)
        weft__field_fail(f, WEFT_ERR_FORMAT, list_names[which],
                         "the list must have a positive number for each pair of rotated channels");
}

void weft__field_longrope(weft__fields *f, const json_t *scaling, weft__published *p) {
    weft__fields of = *f; /* the same file, another object */
    weft_rotary_options *r = &p->gpt.rotation;
    const int64_t count = r->channels / 2;
    of.root = scaling;
    r->scaling.context = weft__field_int(f, "original_max_position_embeddings", r->scaling.context);
    const double factor = (double)p->context / (double)r->scaling.context;
    const double grown = factor > 1 ? sqrt(1 + log(factor) / log((double)r->scaling.context)) : 1;
    r->scaling.magnitude = weft__field_number(&of, "attention_factor", grown);
    if (count > WEFT__LONGROPE_MOST || count < 1)
        weft__field_fail(&of, WEFT_ERR_FORMAT, "rope_scaling", "Weft knows longrope of at most 512 channels");
    for (int which = 0; which < WEFT__LONGROPE_LISTS && of.status == WEFT_OK; which++)
        read_list(&of, scaling, which, count, p->longrope[which]);
    f->status = of.status;
}

int64_t weft__longrope_count(const weft__published *p) {
    return p->gpt.rotation.scaling.kind == WEFT_ROTARY_LONG ? p->gpt.rotation.channels / 2 : 0;
}

weft_tensor *weft__longrope_divisors(weft_context *ctx, const weft__published *p, int64_t context) {
    const int64_t count = weft__longrope_count(p);
    const bool is_long = context > p->gpt.rotation.scaling.context;
    return weft_variable_new(ctx, "rope.divisors", WEFT_F32, 1, &count,
                             p->longrope[is_long ? WEFT__LONGROPE_LONG : WEFT__LONGROPE_SHORT]);
}
