/* Names of tensors: which tensors of a file make a parameter of a module. Must not know: files. Read next:
 * load.c. */
#include <stdio.h>
#include <string.h>

#include "nn/module.h"
#include "published/published.h"

typedef struct name_row {
    unsigned set;
    const char *weft, *file;
    weft__published_part part;
} name_row;

static const name_row rows[] = {
#define NAME(set, weft, file, part) {set, weft, file, WEFT__PART_##part},
#include "published/architectures.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Whether a name matches a pattern in which * stands for a number of a layer; *layer gets it, -1 without. */
static bool is_like(const char *pattern, const char *name, int *layer) {
    *layer = -1;
    for (; *pattern && *pattern != '*'; pattern++, name++)
        if (*pattern != *name) return false;
    if (!*pattern) return !*name;
    const size_t digits = strspn(name, "0123456789");
    if (digits < 1 || digits > 6) return false;
    *layer = 0;
    for (size_t i = 0; i < digits; i++) *layer = 10 * *layer + (name[i] - '0');
    return strcmp(pattern + 1, name + digits) == 0;
}

/* Writes a pattern with the number of a layer. */
static void spell(const char *pattern, int layer, char *out, size_t bytes) {
    const char *star = strchr(pattern, '*');
    if (star)
        snprintf(out, bytes, "%.*s%d%s", (int)(star - pattern), pattern, layer, star + 1);
    else
        snprintf(out, bytes, "%s", pattern);
}

/* Sets the rows of a parameter that a part has. */
static void set_rows(const weft_gpt_options *o, int64_t rows_of_all, weft__placed *placed) {
    const int64_t d = weft__head_width(&o->form, o->width, o->heads);
    const int64_t queries = o->heads * d, keys = (o->kv_heads ? o->kv_heads : o->heads) * d;
    placed->first = 0;
    placed->rows = rows_of_all;
    switch (placed->part) {
    case WEFT__PART_QUERIES:
    case WEFT__PART_TURNED_QUERIES: placed->rows = queries; break;
    case WEFT__PART_KEYS:
    case WEFT__PART_TURNED_KEYS:
    case WEFT__PART_VALUES:
        placed->first = placed->part == WEFT__PART_VALUES ? queries + keys : queries;
        placed->rows = keys;
        break;
    case WEFT__PART_GATE: placed->rows = rows_of_all / 2; break;
    case WEFT__PART_UP: placed->first = placed->rows = rows_of_all / 2; break;
    case WEFT__PART_WHOLE:
    case WEFT__PART_PLUS_ONE:
    case WEFT__PART_FIRST:
    case WEFT__PART_TRANSPOSED:
    case WEFT__PART_BY_HEAD: break;
    }
}

int weft__published_names_of(const weft__published *p, const char *parameter, int64_t rows_of_all,
                             weft__placed out[WEFT__PARTS]) {
    int count = 0, layer;
    for (int i = 0; i < ROWS && count < WEFT__PARTS; i++) {
        if (!(rows[i].set & p->names) || !is_like(rows[i].weft, parameter, &layer)) continue;
        weft__placed *placed = &out[count++];
        *placed = (weft__placed){.part = rows[i].part, .bare = rows[i].file[0] == '/'};
        set_rows(&p->gpt, rows_of_all, placed);
        spell(rows[i].file + placed->bare, layer, placed->name, sizeof placed->name);
    }
    return count;
}

int weft__published_names(const weft__published *p, const weft_parameter_info *parameter,
                          weft__placed out[WEFT__PARTS]) {
    int64_t all = weft_dim(parameter->tensor, 0), width;
    const bool packed = weft_dtype_of(parameter->tensor) == WEFT_U8;
    if (packed) weft__packing_of(parameter->module, &all, &width);
    return weft__published_names_of(p, parameter->name, all, out);
}

/* BY_HEAD: the file has the rows (heads, 3, d), the parameter has (3, heads, d). TURNED: the file has (heads,
 * d / 2, 2), the parameter has (heads, 2, d / 2). */
int64_t weft__published_row(const weft__published *p, const weft__placed *placed, int64_t row) {
    const int64_t heads = p->gpt.heads, d = weft__head_width(&p->gpt.form, p->gpt.width, p->gpt.heads);
    switch (placed->part) {
    case WEFT__PART_BY_HEAD: return (row / d % 3 * heads + row / (3 * d)) * d + row % d;
    case WEFT__PART_TURNED_QUERIES:
    case WEFT__PART_TURNED_KEYS: return placed->first + row / d * d + row % 2 * (d / 2) + row % d / 2;
    default: return placed->first + row;
    }
}

bool weft__published_added(const weft_parameter_info *parameter) {
    return strstr(parameter->name, ".lora_A.") || strstr(parameter->name, ".lora_B.") ||
           strstr(parameter->name, ".weight_");
}

/* Heads of encoders that Weft does not compute, and tables that are no weights. */
static bool is_other_head(const char *name) {
    static const char *const begins[] = {"cls.",    "lm_head.",    "vocab_",
                                         "pooler.", "qa_outputs.", "embeddings.position_ids"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(begins[i], name, strlen(begins[i])) == 0) return true;
    return false;
}

/* Tensors that are no weights: masks, rates of rotation, and a head that equals the token table. */
bool weft__published_ignores(const weft__published *p, const char *name) {
    static const char *const patterns[] = {"h.*.attn.bias",
                                           "h.*.attn.masked_bias",
                                           "layers.*.attention.bias",
                                           "layers.*.attention.masked_bias",
                                           "layers.*.attention.rotary_emb.inv_freq",
                                           "layers.*.self_attn.rotary_emb.inv_freq",
                                           "rotary_emb.inv_freq",
                                           "rope_freqs.weight",
                                           "rope_factors_long.weight",
                                           "rope_factors_short.weight"};
    const size_t prefix = strlen(p->prefix);
    int layer;
    if (!p->gpt.untied_head && (strcmp(name, "lm_head.weight") == 0 || strcmp(name, "embed_out.weight") == 0))
        return true;
    if (strncmp(name, p->prefix, prefix) == 0) name += prefix;
    if (p->encodes) return is_other_head(name);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (is_like(patterns[i], name, &layer)) return true;
    return false;
}
